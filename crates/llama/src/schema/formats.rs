//! The formats of strings as patterns for a grammar.
//!
//! A pattern allows only strings that are valid for every strict parser of the format. So there are no leap seconds, no year 0,
//! and no names with a doubled hyphen.

/// How a format is kept.
pub(super) enum Format {
    /// By a pattern.
    Held(String),
    /// By a check of the finished answer.
    Checked,
    /// Unknown to JSON Schema, so an annotation.
    Unknown,
}

const YEAR: &str = "(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})";
const DAY: &str = "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))";
const LEAP_YEAR: &str = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)";
const CLOCK: &str =
    "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
const LABEL: &str = "[a-zA-Z0-9]{1,15}(?:-[a-zA-Z0-9]{1,15}){0,2}";
const BYTE: &str = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
const HEX: &str = "[0-9a-fA-F]";

/// How a format is kept.
pub(super) fn of(name: &str) -> Format {
    let date = format!("(?:{YEAR}-{DAY}|{LEAP_YEAR}-02-29)");
    let host = format!("{LABEL}(?:\\.{LABEL}){{0,3}}");
    let pattern = match name {
        "date" => date,
        "time" => CLOCK.to_owned(),
        "date-time" => format!("{date}T{CLOCK}"),
        "duration" => duration(),
        "email" | "idn-email" => {
            let atom = "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]{1,15}";
            format!("{atom}(?:\\.{atom}){{0,2}}@{LABEL}(?:\\.{LABEL}){{1,3}}")
        }
        "hostname" | "idn-hostname" => host,
        "ipv4" => format!("(?:{BYTE}\\.){{3}}{BYTE}"),
        "ipv6" => ipv6(),
        "uuid" => format!("{HEX}{{8}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{12}}"),
        "uri" | "iri" => format!(
            "https?://{host}(?::[1-9][0-9]{{0,3}})?(?:/[a-zA-Z0-9._~-]{{0,64}}){{0,8}}(?:\\?[a-zA-Z0-9._~=&-]{{0,64}})?(?:#[a-zA-Z0-9._~-]{{0,64}})?"
        ),
        "uri-reference"
        | "iri-reference"
        | "uri-template"
        | "json-pointer"
        | "relative-json-pointer"
        | "regex" => {
            return Format::Checked;
        }
        _ => return Format::Unknown,
    };
    Format::Held(format!("^(?:{pattern})$"))
}

fn duration() -> String {
    let chain = |units: &[&str]| -> String {
        // From the largest unit, the smaller ones may follow in order.
        let from: Vec<String> = (0..units.len())
            .map(|at| {
                let rest = units[at + 1..]
                    .iter()
                    .rev()
                    .fold(String::new(), |inner, unit| format!("(?:[0-9]{{1,4}}{unit}{inner})?"));
                format!("[0-9]{{1,4}}{}{rest}", units[at])
            })
            .collect();
        format!("(?:{})", from.join("|"))
    };
    let (date, time) = (chain(&["Y", "M", "D"]), chain(&["H", "M", "S"]));
    format!("P(?:{date}(?:T{time})?|T{time}|[0-9]{{1,4}}W)")
}

fn ipv6() -> String {
    let group = format!("{HEX}{{1,4}}");
    let mut forms = vec![format!("(?:{group}:){{7}}{group}"), "::".to_owned()];
    // One run of at least two zero groups is omitted.
    for before in 0..=6usize {
        let after = 6 - before;
        let head = match before {
            0 => ":".to_owned(),
            _ => format!("(?:{group}:){{{before}}}"),
        };
        forms.push(match after {
            0 => format!("{head}:"),
            _ => format!("{head}(?::{group}){{1,{after}}}"),
        });
    }
    forms.join("|")
}
