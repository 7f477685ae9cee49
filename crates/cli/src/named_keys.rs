//! Whether there are named keys, for commands that say who can use the server.

use std::path::Path;

use hob_app::Databases;
use hob_config::Config;
use hob_db::DbResult;
use hob_keys::{has_keys, has_valid_keys};
use jiff::Timestamp;

/// Whether keys were ever created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedKeys {
    None,
    Some,
    /// All of them are disabled, revoked or expired. The server does not let callers in without a key then.
    NoneValid,
    /// The database cannot be read.
    Unknown,
}

impl NamedKeys {
    /// Of the server with this configuration and home. Creates and migrates nothing.
    pub async fn look_up(config: &Config, home: &Path) -> Self {
        let Ok(databases) = Databases::open(config, home) else { return NamedKeys::Unknown };
        let look = move || -> DbResult<(bool, bool)> {
            Ok((has_keys(&databases.hob)?, has_valid_keys(&databases.hob, Timestamp::now())?))
        };
        match tokio::task::spawn_blocking(look).await {
            Ok(Ok((_, true))) => NamedKeys::Some,
            Ok(Ok((true, false))) => NamedKeys::NoneValid,
            Ok(Ok((false, false))) => NamedKeys::None,
            Ok(Err(_)) | Err(_) => NamedKeys::Unknown,
        }
    }
}
