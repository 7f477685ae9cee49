//! How far a tool, or somebody's words, may reach.

use crate::keys::{Exposure, Kind};
use crate::kind::quote;

/// How far something may reach: `pure` computes, `read` sees private data, `act` changes the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReachKey {
    Pure,
    Read,
    Act,
}

impl ReachKey {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ReachKey::Pure => "pure",
            ReachKey::Read => "read",
            ReachKey::Act => "act",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        [ReachKey::Pure, ReachKey::Read, ReachKey::Act].into_iter().find(|reach| reach.as_str() == word)
    }
}

pub(crate) const REACH: Kind<ReachKey> = Kind {
    expected: "pure, read or act",
    read: |typed| ReachKey::parse(typed.text()?.trim()),
    write: |reach| quote(reach.as_str()),
    exposure: Exposure::OneOf(&["pure", "read", "act"]),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::read_as;

    #[test]
    fn a_reach_is_one_of_three_words() {
        assert_eq!(read_as(&REACH, "'read'"), Some(ReachKey::Read));
        for bad in ["'all'", "''", "1"] {
            assert_eq!(read_as(&REACH, bad), None, "{bad}");
        }
    }
}
