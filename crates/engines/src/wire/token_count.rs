//! Counts of tokens as engines write them. A count that is no number must not cost the caller an answer that is complete otherwise:
//! some engines write `null`, -1 or 12.0.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A count that is zero if the engine does not give one.
pub(crate) fn or_zero<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    optional(deserializer).map(Option::unwrap_or_default)
}

/// A count; `None` for what is no number, and zero for a negative one.
pub(crate) fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    // The conversion of a fraction saturates, and makes zero of a negative one.
    Ok(value.as_u64().or_else(|| value.as_f64().map(|number| number as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Counts {
        #[serde(default, deserialize_with = "or_zero")]
        known: u64,
        #[serde(default, deserialize_with = "optional")]
        given: Option<u64>,
    }

    #[test]
    fn nonsense_is_read_as_the_nearest_count() {
        for (written, expected) in [
            ("7", Some(7)),
            ("18446744073709551615", Some(u64::MAX)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("12.0", Some(12)),
            ("-1", Some(0)),
            ("-0.5", Some(0)),
            ("null", None),
            ("\"many\"", None),
            ("{}", None),
        ] {
            let json = format!(r#"{{"known":{written},"given":{written}}}"#);
            let counts: Counts = serde_json::from_str(&json).expect("it is read");
            assert_eq!((counts.known, counts.given), (expected.unwrap_or(0), expected), "{written}");
        }
        let none: Counts = serde_json::from_str("{}").expect("it is read");
        assert_eq!((none.known, none.given), (0, None));
    }
}
