//! Defaults for answers: a value, or `"engine"` for the engine's own default.

use hob_core::{MaxTokens, Temperature};

use super::quote;
use crate::settings_schema::{Exposure, Kind, Typed};

/// Leaves a setting to the engine.
const ENGINE: &str = "engine";

/// `None` leaves it to the engine.
pub(crate) const TEMPERATURE: Kind<Option<Temperature>> = Kind {
    expected: "a number from 0.0 to 2.0, or \"engine\"",
    read: |typed| value_or_engine(typed, || Temperature::new(typed.number()?).ok()),
    write: |value| value.map_or_else(|| quote(ENGINE), |value| format!("{:?}", value.get())),
    exposure: Exposure::Open,
};

/// `None` leaves it to the engine.
pub(crate) const MAX_TOKENS: Kind<Option<MaxTokens>> = Kind {
    expected: "a whole number from 1 to 4294967295, or \"engine\"",
    read: |typed| value_or_engine(typed, || MaxTokens::new(typed.integer()?).ok()),
    write: |value| value.map_or_else(|| quote(ENGINE), |value| value.get().to_string()),
    exposure: Exposure::Open,
};

/// The outer option is whether the value makes sense.
fn value_or_engine<T>(typed: &Typed<'_>, value: impl FnOnce() -> Option<T>) -> Option<Option<T>> {
    match typed.text() {
        Some(ENGINE) => Some(None),
        Some(_) => None,
        None => value().map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::read_as;

    #[test]
    fn a_value_or_the_engines_own() {
        let temperature = |toml: &str| read_as(&TEMPERATURE, toml).map(|value| value.map(Temperature::get));
        assert_eq!(temperature("0.2"), Some(Some(0.2)));
        assert_eq!(temperature("1"), Some(Some(1.0)));
        assert_eq!(temperature("\"engine\""), Some(None));
        for bad in ["2.1", "-0.1", "nan", "\"0.2\"", "\"\"", "true"] {
            assert_eq!(temperature(bad), None, "{bad}");
        }
        let most = |toml: &str| read_as(&MAX_TOKENS, toml).map(|value| value.map(MaxTokens::get));
        assert_eq!(most("4096"), Some(Some(4096)));
        assert_eq!(most("\"engine\""), Some(None));
        for bad in ["0", "-1", "4294967296", "10.5", "\"many\""] {
            assert_eq!(most(bad), None, "{bad}");
        }
    }
}
