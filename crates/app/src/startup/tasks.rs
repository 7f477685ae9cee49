//! The tasks of a home directory: the agents that answer them, the channels that deliver their results, and the tools that change them.

use std::sync::Arc;

use async_trait::async_trait;
use hob_channels::{ChannelError, ChannelService};
use hob_core::Tool;
use hob_db::Storage;
use hob_keys::{AuditService, AuditedTool};
use hob_tasks::store::task_store;
use hob_tasks::{Deliver, DeliverError, DeliverTo, TaskOptions, TaskService, task_tools};

use crate::service_slot::ChannelSlot;

/// The tools that change tasks, and what the audit log calls the change.
const AUDITED_TOOLS: [(&str, &str); 4] = [
    ("schedule_task", "task.create"),
    ("pause_scheduled_task", "task.pause"),
    ("resume_scheduled_task", "task.resume"),
    ("cancel_scheduled_task", "task.cancel"),
];

/// The tasks in a database. Creates nothing until a task is created.
pub fn task_service(storage: impl Into<Storage>, options: TaskOptions) -> TaskService {
    TaskService::new(task_store(storage), options)
}

/// Tasks that all agents can answer, and whose results go to `channels`, if there are any.
pub fn task_options(channels: Option<Arc<ChannelService>>) -> TaskOptions {
    task_options_for(ChannelSlot::holding(channels))
}

/// The same with channels that may be opened later.
pub(crate) fn task_options_for(channels: ChannelSlot) -> TaskOptions {
    TaskOptions {
        deliver: Arc::new(ChannelDelivery { channels }),
        agents: hob_agents::AGENTS.map(str::to_owned).to_vec(),
        agent_aliases: hob_agents::AGENT_ALIASES.map(str::to_owned).to_vec(),
        ..TaskOptions::default()
    }
}

/// The tools of tasks. Their changes are in the audit log.
pub(crate) fn audited_task_tools(tasks: &TaskService, audit: &AuditService) -> Vec<Arc<dyn Tool>> {
    let with_log = |tool: Arc<dyn Tool>| -> Arc<dyn Tool> {
        let name = tool.spec().name.as_str();
        match AUDITED_TOOLS.iter().find(|(changing, _)| *changing == name) {
            Some((_, action)) => {
                Arc::new(AuditedTool { tool, action, id_field: "task_id", audit: audit.clone() })
            }
            None => tool,
        }
    };
    task_tools(tasks).into_iter().map(with_log).collect()
}

/// Why a task cannot have this target. Nothing is sent yet, so the error does not speak of a message.
fn refusal(error: ChannelError) -> DeliverError {
    match error {
        ChannelError::Invalid { reason } => DeliverError(reason),
        error => DeliverError(error.to_string()),
    }
}

/// Sends the results of tasks through the channels.
struct ChannelDelivery {
    channels: ChannelSlot,
}

#[async_trait]
impl Deliver for ChannelDelivery {
    async fn check(&self, to: DeliverTo) -> Result<DeliverTo, DeliverError> {
        let Some(channels) = self.channels.get() else {
            let shown: String = to.channel.chars().take(60).collect();
            let reason = format!("there is no channel '{shown}': {}", ChannelError::NotConfigured);
            return Err(DeliverError(reason));
        };
        // Saved with its recipient, so that it stays the same when another sender is approved.
        let checked = channels.check_target(&to.channel, to.conversation.as_deref()).await;
        Ok(DeliverTo { channel: checked.map_err(refusal)?, ..to })
    }

    async fn deliver(&self, text: &str, to: &DeliverTo) -> Result<(), DeliverError> {
        let sent = match self.channels.get() {
            Some(channels) => channels.send(&to.channel, text, to.conversation.as_deref()).await,
            None => Err(ChannelError::NotConfigured),
        };
        sent.map_err(|error| DeliverError(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use hob_core::{Permit, Reach};
    use hob_db::Database;
    use hob_keys::{AuditEntry, SqliteKeyStore};
    use hob_tasks::store::SqliteTaskStore;
    use serde_json::{Value, json};

    use super::*;

    #[tokio::test]
    async fn changes_of_tasks_by_agents_are_in_the_audit_log() {
        let tasks = Database::in_memory(&[hob_tasks::MIGRATIONS]).unwrap();
        let options = TaskOptions { agents: vec!["simple".to_owned()], ..TaskOptions::default() };
        let tasks = TaskService::new(Arc::new(SqliteTaskStore::new(tasks)), options);
        let keys = Database::in_memory(&[hob_keys::MIGRATIONS]).unwrap();
        let audit = AuditService::new(Arc::new(SqliteKeyStore::new(keys)));
        let tools = audited_task_tools(&tasks, &audit);
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
