//! `channel_list`: where messages can be sent.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use hob_core::{Channels, Reach, Tool, ToolError, ToolSpec};
use serde_json::{Value, json};

/// The tool.
pub struct ChannelList {
    channels: Arc<dyn Channels>,
}

impl ChannelList {
    pub fn new(channels: Arc<dyn Channels>) -> Self {
        ChannelList { channels }
    }
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    name: "channel_list".to_owned(),
    description: "Lists the messaging channels on which messages can be sent.".to_owned(),
    parameters: json!({ "type": "object", "properties": {}, "additionalProperties": false }),
    reach: Reach::Read,
    timeout: None,
});

#[async_trait]
impl Tool for ChannelList {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    async fn call(&self, _arguments: Value) -> Result<String, ToolError> {
        let names = self.channels.list().await.map_err(|error| ToolError::new(error.to_string()))?;
        Ok(if names.is_empty() { "There are no channels.".to_owned() } else { names.join("\n") })
    }
}
