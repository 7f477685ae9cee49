//! The tools of messaging: `channel_send`, `channel_list` and `channel_status`.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use hob_core::{Effect, Reach, Tool, ToolError, ToolSpec, object_schema, tool_arguments};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::service::ChannelService;

pub fn channel_tools(channels: &Arc<ChannelService>) -> [Arc<dyn Tool>; 3] {
    [
        Arc::new(ChannelSend(Arc::clone(channels))),
        Arc::new(ChannelList(Arc::clone(channels))),
        Arc::new(ChannelStatusTool(Arc::clone(channels))),
    ]
}

struct ChannelSend(Arc<ChannelService>);

#[derive(Deserialize)]
struct SendArguments {
    channel: String,
    content: String,
    conversation_id: Option<String>,
}

static SEND: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    effect: Effect::Sends,
    // A little longer than the timeouts of the channels, so that the model gets their error.
    timeout: Some(Duration::from_secs(60)),
    ..ToolSpec::new(
        "channel_send",
        "Sends a message to a channel from channel_list.",
        Reach::Act,
        object_schema(
            json!({
                "channel": { "type": "string", "description": "A name from channel_list, followed by the recipient if needed, such as telegram:12345" },
                "content": { "type": "string" },
                "conversation_id": { "type": ["string", "null"], "description": "The thread of the message, if any" }
            }),
            &["channel", "content"],
        ),
    )
});

#[async_trait]
impl Tool for ChannelSend {
    fn spec(&self) -> &ToolSpec {
        &SEND
    }

    fn rare_arguments(&self) -> &[&str] {
        &["conversation_id"]
    }

    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        let SendArguments { channel, content, conversation_id } = tool_arguments::read(arguments)?;
        self.0.send(&channel, &content, conversation_id.as_deref()).await.map_err(ToolError::new)?;
        Ok(format!("The message to {channel} was sent."))
    }
}

struct ChannelList(Arc<ChannelService>);

static LIST: LazyLock<ToolSpec> = LazyLock::new(|| {
    ToolSpec::new("channel_list", "Lists messaging channels.", Reach::Read, object_schema(json!({}), &[]))
});

#[async_trait]
impl Tool for ChannelList {
    fn spec(&self) -> &ToolSpec {
        &LIST
    }

    async fn call(&self, _arguments: Value) -> Result<String, ToolError> {
        let names = self.0.list().await.map_err(ToolError::new)?;
        Ok(if names.is_empty() { "There are no channels.".to_owned() } else { names.join("\n") })
    }
}

struct ChannelStatusTool(Arc<ChannelService>);

static STATUS: LazyLock<ToolSpec> = LazyLock::new(|| {
    ToolSpec::new(
        "channel_status",
        "Shows whether messaging is connected.",
        Reach::Read,
        object_schema(json!({}), &[]),
    )
});

#[async_trait]
impl Tool for ChannelStatusTool {
    fn spec(&self) -> &ToolSpec {
        &STATUS
    }

    async fn call(&self, _arguments: Value) -> Result<String, ToolError> {
        let report = self.0.report();
        Ok(match report.problem {
            Some(problem) => format!("{}: {problem}", report.status),
            None => report.status.to_string(),
        })
    }
}
