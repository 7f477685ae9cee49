//! The configuration file of a running server, which requests read and change. Knows no route.

use hob_config::{Environment, SettingsFile};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The configuration file of a running server.
pub struct ServerSettings {
    /// Locked while it is changed, so that no change is lost.
    pub(crate) file: Mutex<SettingsFile>,
    pub(crate) changed: Notify,
}

impl ServerSettings {
    pub fn new(environment: Environment) -> Self {
        ServerSettings { file: Mutex::new(SettingsFile::new(environment)), changed: Notify::new() }
    }

    /// Waits until a request has changed the file. The program that runs the server then reloads it.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}
