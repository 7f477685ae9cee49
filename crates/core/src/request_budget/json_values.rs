//! Counts the values of JSON before it is parsed: a value of two bytes takes a hundred bytes of memory.

use memchr::memchr2;

use super::{BODY_VALUES, OverBudget};

/// Refuses a body with too many values. A body with fewer bytes than the limit is not counted.
pub fn check_body_values(body: &[u8]) -> Result<(), OverBudget> {
    if body.len() > BODY_VALUES && json_values(body, BODY_VALUES) > BODY_VALUES {
        return Err(OverBudget::body_values());
    }
    Ok(())
}

/// The number of values in `body`, which need not be JSON. Stops soon after `enough`. A comma separates two values; the first
/// value of an array or object has no comma before it.
pub fn json_values(body: &[u8], enough: usize) -> usize {
    let mut values = 1;
    let mut opened = false;
    let mut at = 0;
    while let Some(byte) = body.get(at) {
        at += 1;
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => continue,
            b']' | b'}' => opened = false,
            byte => {
                values += usize::from(std::mem::take(&mut opened));
                match byte {
                    b'"' => at = after_string(body, at),
                    b',' => values += 1,
                    b'[' | b'{' => opened = true,
                    _ => {}
                }
            }
        }
        if values > enough {
            break;
        }
    }
    values
}

/// The index after the string that starts before `at`.
fn after_string(body: &[u8], mut at: usize) -> usize {
    while let Some(found) = body.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found + 1;
        if body[at - 1] == b'"' {
            return at;
        }
        // Skips the escaped character, which can be a quote.
        at += 1;
    }
    body.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn values_of(value: &Value) -> usize {
        1 + match value {
            Value::Array(items) => items.iter().map(values_of).sum(),
            Value::Object(fields) => fields.values().map(values_of).sum(),
            _ => 0,
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a\"\\\\,{}\\[\\]: é]*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::btree_map("[a\"\\\\,{}]{0,3}", inner, 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    #[test]
    fn only_values_count() {
        for (body, expected) in [
            (json!({}).to_string(), 1),
            (json!([[], {}, "a,b", 1]).to_string(), 5),
            (r#" { "a\"]," : [ ] , "b" : { "c" : "\\" } } "#.to_owned(), 4),
            (r#"{"a": "never ends, and never"#.to_owned(), 2),
            (r#"{"a": "\"#.to_owned(), 2),
            (String::new(), 1),
        ] {
            assert_eq!(json_values(body.as_bytes(), 100), expected, "{body}");
        }
    }

    proptest! {
        #[test]
        fn a_body_counts_the_values_that_a_parser_finds(value in any_json(), pretty in any::<bool>()) {
            let body = if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) }.unwrap();
            prop_assert_eq!(json_values(&body, usize::MAX), values_of(&value));
        }

        #[test]
        fn any_bytes_can_be_counted(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(json_values(&bytes, usize::MAX) <= bytes.len() + 1);
        }
    }
}
