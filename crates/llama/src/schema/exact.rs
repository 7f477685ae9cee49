//! What the grammar compiler enforces exactly: numbers and patterns within its arithmetic and regular expressions.

use llguidance::derivre::RegexBuilder;
use llguidance::regex_to_lark;
use serde_json::{Map, Value};

/// Beyond this, the arithmetic of the grammar compiler is not exact.
const EXACT_NUMBER: f64 = 1e12;
const MAX_MULTIPLE: f64 = 65_535.0;

/// The largest integer that all JSON parsers read exactly.
const MAX_WHOLE: i64 = 9_007_199_254_740_991;

pub(super) const BOUNDS: [&str; 4] = ["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"];

/// A count, also as `5.0`.
pub(super) fn whole(value: &Value) -> Option<u64> {
    let rounded =
        |number: f64| (number >= 0.0 && number.fract() == 0.0 && number < 1e18).then_some(number as u64);
    value.as_u64().or_else(|| value.as_f64().and_then(rounded))
}

/// Whether a schema requires integers or multiples.
pub(super) fn counts(schema: &Map<String, Value>) -> bool {
    let whole = match schema.get("type") {
        Some(Value::Array(names)) => names.iter().any(|name| name == "integer"),
        Some(name) => name == "integer",
        None => false,
    };
    let listed = schema.contains_key("const") || schema.contains_key("enum");
    (whole || schema.contains_key("multipleOf")) && !listed
}

/// Adds bounds to numbers without any: with more digits, whether a number is an integer depends on the parser.
pub(super) fn bound(schema: &mut Map<String, Value>) {
    for (sides, most) in [(&BOUNDS[..2], -MAX_WHOLE), (&BOUNDS[2..], MAX_WHOLE)] {
        if !sides.iter().any(|keyword| schema.contains_key(*keyword)) {
            schema.insert(sides[0].to_owned(), most.into());
        }
    }
}

/// Whether the grammar compiler keeps a bound exactly.
pub(super) fn is_exact(number: f64) -> bool {
    let hundredths_of_millionths = number * 1e8;
    number.abs() <= EXACT_NUMBER
        && (number == 0.0 || number.abs() >= 1e-6)
        && (hundredths_of_millionths - hundredths_of_millionths.round()).abs() < 1e-3
}

/// Whether the grammar can enforce a multiple.
pub(super) fn is_exact_multiple(number: f64) -> bool {
    (0..=4).any(|digits| {
        let steps = number * 10f64.powi(digits);
        steps.fract() == 0.0 && (1.0..=MAX_MULTIPLE).contains(&steps)
    })
}

/// The pattern with ASCII `\s` and `\S`, because dialects differ.
pub(super) fn with_plain_blanks(pattern: &str) -> String {
    let mut plain = String::with_capacity(pattern.len());
    let mut rest = pattern.chars();
    while let Some(char) = rest.next() {
        match (char, if char == '\\' { rest.next() } else { None }) {
            (_, Some('s')) => plain.push_str("[ \\t\\n\\r\\f]"),
            (_, Some('S')) => plain.push_str("[^\\s\\x{FEFF}]"),
            (char, escaped) => {
                plain.push(char);
                plain.extend(escaped);
            }
        }
    }
    plain
}

/// Whether the grammar engine supports a pattern: no look-around, no anchors in the middle.
pub(super) fn is_regular(pattern: &str) -> bool {
    let mut builder = RegexBuilder::new();
    builder.mk_regex_for_serach(&regex_to_lark(pattern, "dw")).is_ok()
}
