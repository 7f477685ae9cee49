//! Tools that change tasks, with a note of each change in the audit log. The tools themselves know nothing of the log.

use std::sync::Arc;

use async_trait::async_trait;
use hob_core::{Permit, Reach, Tool, ToolError, ToolSpec};
use hob_keys::{AuditActor, AuditService};
use serde_json::{Value, json};

/// The tools that change tasks, and what the log calls the change.
const ACTIONS: [(&str, &str); 4] = [
    ("schedule_task", "task.create"),
    ("pause_scheduled_task", "task.pause"),
    ("resume_scheduled_task", "task.resume"),
    ("cancel_scheduled_task", "task.cancel"),
];

/// Notes the changes of those tools that make any.
pub(crate) fn audited(tools: Vec<Arc<dyn Tool>>, audit: &AuditService) -> Vec<Arc<dyn Tool>> {
    let with_log = |tool: Arc<dyn Tool>| -> Arc<dyn Tool> {
        let name = tool.spec().name.as_str();
        match ACTIONS.iter().find(|(changing, _)| *changing == name) {
            Some((_, action)) => Arc::new(AuditedTool { tool, action, audit: audit.clone() }),
            None => tool,
        }
    };
    tools.into_iter().map(with_log).collect()
}

struct AuditedTool {
    tool: Arc<dyn Tool>,
    action: &'static str,
    audit: AuditService,
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
        let subject = answer["task_id"].as_str().unwrap_or_default().to_owned();
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

#[cfg(test)]
mod tests {
    use hob_db::Database;
    use hob_keys::{AuditEntry, SqliteKeyStore};
    use hob_tasks::store::SqliteTaskStore;
    use hob_tasks::{TaskOptions, TaskService, task_tools};

    use super::*;

    #[tokio::test]
    async fn changes_of_tasks_by_agents_are_in_the_audit_log() {
        let tasks = Database::in_memory(&[hob_tasks::MIGRATIONS]).unwrap();
        let options = TaskOptions { agents: vec!["simple".to_owned()], ..TaskOptions::default() };
        let tasks = TaskService::new(Arc::new(SqliteTaskStore::new(tasks)), options);
        let keys = Database::in_memory(&[hob_keys::MIGRATIONS]).unwrap();
        let audit = AuditService::new(Arc::new(SqliteKeyStore::new(keys)));
        let tools = audited(task_tools(&tasks), &audit);
        let tool = |name: &str| tools.iter().find(|tool| tool.spec().name == name).unwrap();
        let owner = Permit::up_to(Reach::Act);
        let ana = Permit { key: Some("ana".into()), ..owner.clone() };

        let new = json!({ "prompt": "say hi", "schedule_type": "interval", "schedule_value": "3600" });
        let made = tool("schedule_task").call_for(new, &ana).await.unwrap();
        let id = serde_json::from_str::<Value>(&made).unwrap()["task_id"].as_str().unwrap().to_owned();
        let task = json!({ "task_id": id });
        tool("pause_scheduled_task").call_for(task.clone(), &owner).await.unwrap();
        tool("list_scheduled_tasks").call_for(json!({}), &owner).await.unwrap();
        let message = Permit { tainted: true, ..owner.clone() };
        tool("cancel_scheduled_task").call_for(task.clone(), &message).await.unwrap();
        tool("resume_scheduled_task").call_for(task, &owner).await.unwrap_err();

        let noted: Vec<(String, String, String, String)> = audit
            .after(0, 10)
            .unwrap()
            .into_iter()
            .map(|AuditEntry { event, .. }| {
                (event.action, event.actor.name, event.actor.origin, event.subject)
            })
            .collect();
        let change = |action: &str, name: &str| (action.into(), name.into(), "agent".into(), id.clone());
        assert_eq!(
            noted,
            [change("task.create", "ana"), change("task.pause", "owner"), change("task.cancel", "(message)")]
        );
    }
}
