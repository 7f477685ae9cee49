//! Converts the tool list of a server into [`hob_core::Tool`]s.

use std::sync::Arc;
use std::time::Duration;

use hob_core::{Effect, Reach, Tool, ToolSpec};
use rmcp::model;
use serde_json::Value;
use tokio::sync::watch;

use crate::connection::ServerHandle;
use crate::names::tool_names;
use crate::pins::{ToolPins, WithheldTool};
use crate::tool::McpTool;

/// Models cannot choose from more tools.
const MAX_TOOLS: usize = 512;

/// A longer description or schema costs every request too much.
const MAX_TOOL_BYTES: usize = 64 << 10;

/// The common properties of the tools of a server.
pub struct ToolList {
    pub server: String,
    /// The prefix of their names.
    pub prefix: String,
    pub reach: Reach,
    /// The effect of its tools.
    pub effect: Effect,
    pub call_timeout: Duration,
    pub handle: watch::Receiver<Option<ServerHandle>>,
    pub pins: ToolPins,
}

/// The tools of a server: offered, and withheld until the owner accepts them.
#[derive(Default)]
pub struct CheckedTools {
    pub offered: Vec<Arc<dyn Tool>>,
    pub withheld: Vec<WithheldTool>,
}

impl ToolList {
    pub fn tools(&self, mut listed: Vec<model::Tool>) -> CheckedTools {
        let server = &self.server;
        if listed.len() > MAX_TOOLS {
            tracing::warn!(
                %server,
                count = listed.len(),
                "an MCP server has too many tools, and Hob uses the first {MAX_TOOLS}. Let the server offer \
                 fewer"
            );
            listed.truncate(MAX_TOOLS);
        }
        listed.retain(|tool| {
            let is_short = size_of(tool) <= MAX_TOOL_BYTES;
            if !is_short {
                tracing::warn!(
                    %server,
                    tool = %crate::shortened(&tool.name),
                    "a tool is skipped: its description is too long. Shorten it in the server"
                );
            }
            is_short
        });
        let (offered, withheld) = match self.pins.check(server, listed) {
            Ok(checked) => checked,
            Err(error) => {
                tracing::warn!(
                    %server,
                    %error,
                    "the recorded tools of an MCP server cannot be read, so none is offered. Correct \
                     mcp_tools.json, or delete it to accept all tools again"
                );
                return CheckedTools::default();
            }
        };
        let names = tool_names(&self.prefix, offered.iter().map(|tool| tool.name.as_ref()));
        let offered = names.into_iter().zip(offered).map(|(name, tool)| self.tool(name, tool)).collect();
        CheckedTools { offered, withheld }
    }

    fn tool(&self, name: String, listed: model::Tool) -> Arc<dyn Tool> {
        let description = listed.description.map(String::from).or(listed.title).unwrap_or_default();
        Arc::new(McpTool {
            server: self.server.clone(),
            remote_name: listed.name.into_owned(),
            call_timeout: self.call_timeout,
            handle: self.handle.clone(),
            spec: ToolSpec {
                name,
                description,
                parameters: Value::Object(Arc::unwrap_or_clone(listed.input_schema)),
                reach: self.reach,
                effect: self.effect,
                untrusted_output: true,
                // The tool's own timeout comes first, because its error is more precise.
                timeout: Some(self.call_timeout + Duration::from_secs(1)),
            },
        })
    }
}

fn size_of(tool: &model::Tool) -> usize {
    let schema = serde_json::to_string(&tool.input_schema).map_or(usize::MAX, |text| text.len());
    let description = tool.description.as_ref().map_or(0, |text| text.len());
    schema.saturating_add(description).saturating_add(tool.name.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool_list() -> ToolList {
        let (_, handle) = watch::channel(None);
        ToolList {
            server: "files".to_owned(),
            prefix: "files".to_owned(),
            reach: Reach::Read,
            effect: Effect::None,
            call_timeout: Duration::from_secs(5),
            handle,
            pins: ToolPins::default(),
        }
    }

    fn listed(tools: Value) -> Vec<model::Tool> {
        serde_json::from_value(tools).unwrap()
    }

    #[test]
    fn a_tool_keeps_its_schema_and_has_the_configured_reach() {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        let CheckedTools { offered: tools, .. } = tool_list().tools(listed(json!([{
            "name": "read.file",
            "description": "Reads a file.",
            "inputSchema": schema,
            "annotations": {"readOnlyHint": true},
        }])));
        let expected = ToolSpec {
            name: "files__read_file".to_owned(),
            description: "Reads a file.".to_owned(),
            parameters: schema,
            reach: Reach::Read,
            effect: Effect::None,
            untrusted_output: true,
            timeout: Some(Duration::from_secs(6)),
        };
        assert_eq!(tools.iter().map(|tool| tool.spec()).collect::<Vec<_>>(), [&expected]);
    }

    #[test]
    fn a_tool_that_would_fill_the_context_is_skipped() {
        let CheckedTools { offered: tools, .. } = tool_list().tools(listed(json!([
            {"name": "big", "description": "x".repeat(MAX_TOOL_BYTES), "inputSchema": {"type": "object"}},
            {"name": "small", "inputSchema": {"type": "object"}},
        ])));
        assert_eq!(tools.iter().map(|tool| tool.spec().name.as_str()).collect::<Vec<_>>(), ["files__small"]);
    }

    #[test]
    fn of_too_many_tools_the_first_are_used() {
        let many: Vec<Value> =
            (0..MAX_TOOLS + 3).map(|number| json!({"name": number.to_string(), "inputSchema": {}})).collect();
        let CheckedTools { offered: tools, .. } = tool_list().tools(listed(Value::Array(many)));
        assert_eq!(tools.len(), MAX_TOOLS);
        assert_eq!(tools[MAX_TOOLS - 1].spec().name, format!("files__{}", MAX_TOOLS - 1));
    }
}
