//! `channel_send`: sends a message.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use hob_core::tool_arguments;
use hob_core::{Effect, Reach, Tool, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::service::ChannelService;

/// The tool.
pub struct ChannelSend {
    channels: Arc<ChannelService>,
}

impl ChannelSend {
    pub fn new(channels: Arc<ChannelService>) -> Self {
        ChannelSend { channels }
    }
}

#[derive(Deserialize)]
struct Arguments {
    channel: String,
    content: String,
    conversation_id: Option<String>,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    name: "channel_send".to_owned(),
    description: "Sends a message to a channel from channel_list.".to_owned(),
    parameters: json!({
        "type": "object",
        "properties": {
            "channel": { "type": "string", "description": "A name from channel_list, followed by the recipient if needed, such as telegram:12345" },
            "content": { "type": "string" },
            "conversation_id": { "type": ["string", "null"], "description": "The thread of the message, if any" }
        },
        "required": ["channel", "content"],
        "additionalProperties": false
    }),
    reach: Reach::Act,
    effect: Effect::Sends,
    untrusted_output: false,
    // A little more than a channel takes to give up by itself, so that the model hears why.
    timeout: Some(Duration::from_secs(60)),
});

#[async_trait]
impl Tool for ChannelSend {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn rare_arguments(&self) -> &[&str] {
        &["conversation_id"]
    }

    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        let Arguments { channel, content, conversation_id } = tool_arguments::read(arguments)?;
        self.channels
            .send(&channel, &content, conversation_id.as_deref())
            .await
            .map_err(|error| ToolError::new(error.to_string()))?;
        Ok(format!("The message to {channel} was sent."))
    }
}
