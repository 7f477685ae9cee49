//! The reach of a tool, and the highest reach that a sender may use.

use hob_core::Reach;

use crate::kind::quote;
use crate::settings_schema::{Exposure, Kind};

pub(crate) const REACH: Kind<Reach> = Kind {
    expected: "pure, read or act",
    read: |typed| Reach::parse(typed.text()?.trim()),
    write: |reach| quote(reach.as_str()),
    exposure: Exposure::OneOf(&["pure", "read", "act"]),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::read_as;

    #[test]
    fn a_reach_is_one_of_three_words() {
        assert_eq!(read_as(&REACH, "'read'"), Some(Reach::Read));
        for bad in ["'all'", "''", "1"] {
            assert_eq!(read_as(&REACH, bad), None, "{bad}");
        }
    }
}
