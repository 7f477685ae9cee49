//! Whether there are named keys, for commands that say who can use the server.

use std::path::Path;

use hob_app::Databases;
use hob_config::Config;
use hob_keys::has_keys;

/// Whether keys were ever created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedKeys {
    None,
    /// Also if all of them are disabled or revoked: the server does not let callers in without a key then.
    Some,
    /// The database cannot be read.
    Unknown,
}

impl NamedKeys {
    /// Of the server with this configuration and home. Creates and migrates nothing.
    pub async fn look_up(config: &Config, home: &Path) -> Self {
        let Ok(databases) = Databases::open(config, home) else { return NamedKeys::Unknown };
        match tokio::task::spawn_blocking(move || has_keys(&databases.hob)).await {
            Ok(Ok(true)) => NamedKeys::Some,
            Ok(Ok(false)) => NamedKeys::None,
            Ok(Err(_)) | Err(_) => NamedKeys::Unknown,
        }
    }
}
