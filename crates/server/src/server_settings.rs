//! The configuration file of a running server, which requests read and change. Knows no route.

use hob_config::{Environment, SettingsFile};
use hob_keys::AuditActor;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The configuration file of a running server.
pub struct ServerSettings {
    /// Locked while it is changed, so that no change is lost.
    pub(crate) file: Mutex<SettingsFile>,
    changed: Notify,
    /// Who made the last change that was not reloaded yet.
    changed_by: Mutex<Option<AuditActor>>,
}

impl ServerSettings {
    pub fn new(environment: Environment) -> Self {
        ServerSettings {
            file: Mutex::new(SettingsFile::new(environment)),
            changed: Notify::new(),
            changed_by: Mutex::default(),
        }
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
