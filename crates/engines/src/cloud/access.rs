//! How to reach one provider.

use std::time::Duration;

use secrecy::SecretString;

pub(super) struct ProviderAccess<'a> {
    /// The provider's name in errors.
    pub(super) label: &'static str,
    pub(super) host: &'a str,
    pub(super) key: SecretString,
    pub(super) timeout: Duration,
}
