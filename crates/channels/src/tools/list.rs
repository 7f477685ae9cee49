//! `channel_list`: where messages can be sent.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use hob_core::{Effect, Reach, Tool, ToolError, ToolSpec};
use serde_json::{Value, json};

use crate::service::ChannelService;

/// The tool.
pub struct ChannelList {
    channels: Arc<ChannelService>,
}

impl ChannelList {
    pub fn new(channels: Arc<ChannelService>) -> Self {
        ChannelList { channels }
    }
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    name: "channel_list".to_owned(),
    description: "Lists messaging channels.".to_owned(),
    parameters: json!({ "type": "object", "properties": {}, "additionalProperties": false }),
    reach: Reach::Read,
    effect: Effect::None,
    untrusted_output: false,
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
