//! Notes changes that callers make over HTTP in the audit log.

use hob_keys::AuditActor;
use serde_json::json;

use crate::state::ServerState;

/// Notes a change that was made.
pub(crate) async fn note(state: &ServerState, actor: AuditActor, action: &'static str, subject: String) {
    let Some(keys) = &state.keys else { return };
    let audit = keys.audit();
    // Waits until it is written, so that an answer means that the change is in the log.
    let work = move || audit.note(actor, action, &subject, &json!({}));
    if tokio::task::spawn_blocking(work).await.is_err() {
        tracing::error!(action, "a change is missing in the audit log");
    }
}
