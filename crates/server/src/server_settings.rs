//! The configuration file of a running server, which requests read and change. Knows no route.

use std::collections::BTreeMap;

use hob_config::{Environment, SettingsFile};
use hob_keys::AuditActor;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;

/// The configuration file of a running server.
pub struct ServerSettings {
    /// Locked while it is changed, so that no change is lost.
    pub(crate) file: Mutex<SettingsFile>,
    /// The values that options of the command line set, by key. They override the file.
    pub(crate) options: BTreeMap<&'static str, Value>,
    changed: Notify,
    /// Who made the last change that was not reloaded yet.
    changed_by: Mutex<Option<AuditActor>>,
}

impl ServerSettings {
    pub fn new(environment: Environment) -> Self {
        ServerSettings {
            file: Mutex::new(SettingsFile::new(environment)),
            options: BTreeMap::new(),
            changed: Notify::new(),
            changed_by: Mutex::default(),
        }
    }

    /// The same, for a server that was started with options for these keys.
    pub fn with_options(self, options: BTreeMap<&'static str, Value>) -> Self {
        ServerSettings { options, ..self }
    }

    /// Waits until a request has changed the file, and returns who sent it. The program that runs the server then reloads it.
    pub async fn changed(&self) -> AuditActor {
        self.changed.notified().await;
        self.changed_by.lock().take().unwrap_or_else(AuditActor::terminal)
    }

    /// Announces a change by this caller.
    pub(crate) fn note_change(&self, actor: AuditActor) {
        *self.changed_by.lock() = Some(actor);
        self.changed.notify_one();
    }
}
