//! Tools of agents, with a note of each change in the audit log. The tools themselves know nothing of the log.

use std::sync::Arc;

use async_trait::async_trait;
use hob_core::{Permit, Reach, Tool, ToolError, ToolSpec};
use serde_json::{Value, json};

use crate::audit::AuditActor;
use crate::audit_service::AuditService;

/// A tool whose changes are noted.
pub struct AuditedTool {
    pub tool: Arc<dyn Tool>,
    /// What the log calls the change, such as `task.create`.
    pub action: &'static str,
    /// The field of the tool's answer with the id of what was changed.
    pub id_field: &'static str,
    pub audit: AuditService,
}

#[async_trait]
impl Tool for AuditedTool {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn alias_of(&self) -> Option<&str> {
        self.tool.alias_of()
    }

    fn rare_arguments(&self) -> &[&str] {
        self.tool.rare_arguments()
    }

    fn is_named_by_owner(&self, arguments: &Value, owner_words: &str) -> bool {
        self.tool.is_named_by_owner(arguments, owner_words)
    }

    fn asks_engine(&self) -> bool {
        self.tool.asks_engine()
    }

    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        self.call_for(arguments, &Permit::up_to(Reach::Pure)).await
    }

    async fn call_for(&self, arguments: Value, permit: &Permit) -> Result<String, ToolError> {
        let result = self.tool.call_for(arguments, permit).await?;
        let name = match &permit.key {
            Some(key) => &**key,
            // No key can have this name.
            None if permit.tainted => "(message)",
            None => "owner",
        };
        let actor = AuditActor { name: name.to_owned(), origin: "agent".to_owned() };
        let answer: Value = serde_json::from_str(&result).unwrap_or_default();
        let subject = answer[self.id_field].as_str().unwrap_or_default().to_owned();
        let (audit, action, tool) = (self.audit.clone(), self.action, self.spec().name.clone());
        let note = move || audit.note(actor, action, &subject, &json!({ "tool": tool }));
        // Waits until it is written, so that a result means that the change is in the log.
        if hob_db::spawn_blocking(note).await.is_err() {
            tracing::error!(
                action,
                "a change was made, but is not in the audit log. Report this bug with the panic message on \
                 standard error"
            );
        }
        Ok(result)
    }
}
