//! The names of the routing policies.

use std::str::FromStr;

use thiserror::Error;

use crate::kind::quote;
use crate::settings_schema::{Exposure, Kind};

/// The policy that chooses the model for `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RouterName {
    /// Rules.
    #[default]
    Heuristic,
    /// Learned from outcomes and ratings.
    Grpo,
}

hob_core::named_variants! {
    RouterName {
        Heuristic => "heuristic",
        Grpo => "grpo",
    }
}

/// A name that no policy has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown routing policy '{0}'; known policies: heuristic, grpo")]
pub struct UnknownRouter(String);

impl FromStr for RouterName {
    type Err = UnknownRouter;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        RouterName::parse(name).ok_or_else(|| UnknownRouter(name.escape_debug().to_string()))
    }
}

/// A policy.
pub(crate) const ROUTER: Kind<RouterName> = Kind {
    expected: "one of heuristic, grpo",
    read: |typed| typed.text()?.trim().parse().ok(),
    write: |key| quote(key.as_str()),
    exposure: Exposure::OneOf(&["heuristic", "grpo"]),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::read_as;

    #[test]
    fn every_policy_is_read_by_its_name_and_named_in_the_messages() {
        let refusal = UnknownRouter(String::new()).to_string();
        for key in RouterName::ALL {
            assert_eq!(key.as_str().parse(), Ok(key));
            assert_eq!(read_as(&ROUTER, &quote(key.as_str())), Some(key));
            assert!(refusal.contains(key.as_str()), "{key} is missing in: {refusal}");
            assert!(ROUTER.expected.contains(key.as_str()), "{key} is missing in: {}", ROUTER.expected);
        }
        assert_eq!(read_as(&ROUTER, "'random'"), None);
        assert_eq!(read_as(&ROUTER, "''"), None);
    }
}
