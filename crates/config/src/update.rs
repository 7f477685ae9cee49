//! `[update]`: where releases of Hob are.

use crate::kind::{HTTP_URL, quote};
use crate::settings_schema::{Exposure, Kind, keys_of};

/// Settings of `hob update`.
#[derive(Debug, Clone, Default)]
pub struct UpdateConfig {
    /// `None` uses the address from which `install.sh` installed.
    pub url: Option<String>,
}

const RELEASES: Kind<Option<String>> = Kind {
    expected: "an http or https address such as https://example.org/hob, or \"\" for none",
    read: |typed| match typed.text()?.trim() {
        "" => Some(None),
        _ => (HTTP_URL.read)(typed).map(Some),
    },
    write: |url| quote(url.as_deref().unwrap_or_default()),
    exposure: Exposure::Open,
};

keys_of! {
    UpdateConfig {
        url: RELEASES, "Address of the newest release, whose latest.json 'hob update' reads; \"\" is the address that install.sh used, if any. Nothing else uses it.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::read_as;

    #[test]
    fn releases_are_at_an_http_address_or_nowhere() {
        assert_eq!(read_as(&RELEASES, "''"), Some(None));
        let read = read_as(&RELEASES, "'https://example.org/hob/'");
        assert_eq!(read, Some(Some("https://example.org/hob".to_owned())));
        for bad in ["'file:///srv/hob'", "'https://ann:secret@example.org'", "'https://'", "7"] {
            assert_eq!(read_as(&RELEASES, bad), None, "{bad}");
        }
    }
}
