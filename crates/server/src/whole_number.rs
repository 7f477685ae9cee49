//! Whole numbers as clients write them: `20`, or `20.0` in languages that have only floats.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

/// A whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WholeNumber(pub(crate) i64);

/// The number of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenId(pub(crate) u32);

impl<'de> Deserialize<'de> for TokenId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let WholeNumber(number) = WholeNumber::deserialize(deserializer)?;
        let expected = "a token, which is a whole number from 0 to 4294967295";
        u32::try_from(number)
            .map(TokenId)
            .map_err(|_| D::Error::invalid_value(Unexpected::Signed(number), &expected))
    }
}

impl<'de> Deserialize<'de> for WholeNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WholeNumberVisitor;

        impl Visitor<'_> for WholeNumberVisitor {
            type Value = WholeNumber;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a whole number")
            }

            fn visit_i64<E>(self, number: i64) -> Result<WholeNumber, E> {
                Ok(WholeNumber(number))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<WholeNumber, E> {
                let whole = i64::try_from(number).map(WholeNumber);
                whole.map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<WholeNumber, E> {
                whole(number)
                    .map(WholeNumber)
                    .ok_or_else(|| E::invalid_type(Unexpected::Float(number), &self))
            }
        }

        deserializer.deserialize_any(WholeNumberVisitor)
    }
}

/// The number as an integer, if it has no fraction.
pub(crate) fn whole(number: f64) -> Option<i64> {
    // Every whole float in this range has an exact integer.
    let range = -9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0;
    (number.fract() == 0.0 && range.contains(&number)).then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_fraction_is_whole() {
        let read = |text: &str| serde_json::from_str::<WholeNumber>(text).map(|whole| whole.0).ok();
        assert_eq!(read("20"), Some(20));
        assert_eq!(read("20.0"), Some(20));
        assert_eq!(read("-4.0"), Some(-4));
        assert_eq!(read("2e1"), Some(20));
        assert_eq!(read("-9223372036854775808"), Some(i64::MIN));
        assert_eq!(read("1.5"), None);
        assert_eq!(read("1e30"), None);
        assert_eq!(read("9223372036854775808"), None);
        assert_eq!(read("9223372036854775808.0"), None);
        assert_eq!(read("\"20\""), None);
    }
}
