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

/// Whether the grammar engine keeps a pattern in a JSON string exactly. It lets `\"` and `\\` through where a class has all control
/// characters, and not the quote or the backslash. False negatives do no harm.
pub(super) fn is_exact_in_quotes(pattern: &str) -> bool {
    if has_unusual_class(pattern) {
        return false;
    }
    let mut rest = pattern;
    while let Some(start) = rest.find("[^") {
        rest = &rest[start + 2..];
        // The first bracket of a class is a character.
        let end =
            rest.char_indices().skip(1).find(|(at, letter)| *letter == ']' && !rest[..*at].ends_with('\\'));
        let class = &rest[..end.map_or(rest.len(), |(at, _)| at)];
        if !is_exact_without(class) {
            return false;
        }
    }
    true
}

/// Whether a pattern may have a class with all control characters, so with the first of them, that is not written as `[^…]`.
fn has_unusual_class(pattern: &str) -> bool {
    // Letters, marks, numbers, punctuation, symbols, separators.
    let is_usual = |name: &str| name.trim_start_matches('{').starts_with(['L', 'M', 'N', 'P', 'S', 'Z']);
    let spellings = ["\0", "\\0", "\\x00", "\\x{0", "\\u0000", "\\u{0", "\\c", "\\P", "[:"];
    spellings.iter().any(|spelling| pattern.contains(spelling))
        || pattern.split("\\p").skip(1).any(|name| !is_usual(name))
}

/// Whether a class that has all characters but these is exact in a JSON string.
fn is_exact_without(class: &str) -> bool {
    let letters: Vec<char> = class.chars().collect();
    let has_special = |from: char, to: char| ['"', '\\'].iter().any(|special| (from..=to).contains(special));
    let begins_range = |at: usize| letters.get(at + 1) == Some(&'-') && at + 2 < letters.len();
    let mut at = 0;
    while let Some(letter) = letters.get(at) {
        match letter {
            // Classes of words, digits and blanks have neither.
            '\\' if letters
                .get(at + 1)
                .is_some_and(|escaped| "wWdDsSnrtf.-/*+?()[]{}^$|".contains(*escaped))
                && !begins_range(at + 1) =>
            {
                at += 2
            }
            '\\' | '[' | '&' => return false,
            letter if begins_range(at) => {
                if has_special(*letter, letters[at + 2]) {
                    return false;
                }
                at += 3;
            }
            letter if has_special(*letter, *letter) => return false,
            _ => at += 1,
        }
    }
    true
}

/// Whether a pattern may require a control character that JSON writes as `\u001b`. False positives do no harm.
pub(super) fn names_control_characters(pattern: &str) -> bool {
    let escapes = ["\\x", "\\u", "\\c", "\\p", "\\P", "\\0", "\\a", "\\e", "\\v", "[:"];
    escapes.iter().any(|escape| pattern.contains(escape))
}

/// Whether a schema has a control character that JSON writes as `\u001b`, in any text.
pub(super) fn has_control_characters(schema: &Value) -> bool {
    let is_control = |text: &str| {
        text.chars().any(|letter| letter.is_ascii_control() && !"\u{8}\t\n\u{c}\r".contains(letter))
    };
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) if is_control(text) => return true,
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => {
                if fields.keys().any(|name| is_control(name)) {
                    return true;
                }
                open.extend(fields.values());
            }
            _ => {}
        }
    }
    false
}
