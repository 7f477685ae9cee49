//! `channel_status`: whether messages get through.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use hob_core::{Effect, Reach, Tool, ToolError, ToolSpec};
use serde_json::{Value, json};

use crate::service::ChannelService;

/// The tool.
pub struct ChannelStatusTool {
    channels: Arc<ChannelService>,
}

impl ChannelStatusTool {
    pub fn new(channels: Arc<ChannelService>) -> Self {
        ChannelStatusTool { channels }
    }
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    name: "channel_status".to_owned(),
    description: "Shows whether messaging is connected.".to_owned(),
    parameters: json!({ "type": "object", "properties": {}, "additionalProperties": false }),
    reach: Reach::Read,
    effect: Effect::None,
    untrusted_output: false,
    timeout: None,
});

#[async_trait]
impl Tool for ChannelStatusTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    async fn call(&self, _arguments: Value) -> Result<String, ToolError> {
        let report = self.channels.report();
        Ok(match report.trouble {
            Some(trouble) => format!("{}: {trouble}", report.status),
            None => report.status.to_string(),
        })
    }
}
