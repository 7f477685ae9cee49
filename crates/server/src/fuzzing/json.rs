//! The same JSON written in another way must be the same request.

use std::fmt;

use axum::response::IntoResponse;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::error::ApiError;

/// Checks the promises of every parser of a body, and returns what it parses.
pub(crate) fn check_parser<T: PartialEq + fmt::Debug>(
    body: &[u8],
    parse: impl Fn(&[u8]) -> Result<T, ApiError>,
) -> Option<T> {
    let parsed = match parse(body) {
        Ok(parsed) => parsed,
        Err(error) => {
            check_error(error);
            return None;
        }
    };
    if let Some(written) = rewritten(body) {
        match parse(&written) {
            Ok(again) => assert_eq!(parsed, again, "the same JSON is another request"),
            Err(error) => panic!("the same JSON is refused: {}", error.message()),
        }
    }
    Some(parsed)
}

/// A refusal says why, and blames the caller.
fn check_error(error: ApiError) {
    assert!(!error.message().is_empty(), "an error has no message");
    let status = error.into_response().status();
    assert!(status.is_client_error(), "a wrong body is answered with {status}");
}

/// The same JSON without blanks and escapes. `None` if it has a name twice, which parsers refuse or not, or a number that is not
/// the same after it was written.
fn rewritten(body: &[u8]) -> Option<Vec<u8>> {
    let UniqueNames(value) = serde_json::from_slice(body).ok()?;
    let mut written = serde_json::to_vec(&value).ok()?;
    let again: Value = serde_json::from_slice(&written).ok()?;
    if again != value {
        return None;
    }
    // Some limits depend on the length of the body.
    written.resize(written.len().max(body.len()), b' ');
    Some(written)
}

/// A value whose objects have each name once.
struct UniqueNames(Value);

impl<'de> Deserialize<'de> for UniqueNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;

        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = Value;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a JSON value")
            }

            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
                Ok(value.into())
            }

            fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
                Ok(value.into())
            }

            fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
                Ok(value.into())
            }

            fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
                Ok(value.into())
            }

            fn visit_str<E>(self, value: &str) -> Result<Value, E> {
                Ok(value.into())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
                let mut values = Vec::new();
                while let Some(UniqueNames(value)) = items.next_element()? {
                    values.push(value);
                }
                Ok(Value::Array(values))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
                let mut map = Map::new();
                while let Some((name, UniqueNames(value))) = fields.next_entry::<String, _>()? {
                    if map.insert(name, value).is_some() {
                        return Err(A::Error::custom("a name occurs twice"));
                    }
                }
                Ok(Value::Object(map))
            }
        }

        deserializer.deserialize_any(ValueVisitor).map(UniqueNames)
    }
}
