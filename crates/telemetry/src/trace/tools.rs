//! Traces the tool calls of a run.

use std::sync::Arc;

use async_trait::async_trait;
use hob_core::{ToolCall, ToolDefinition, ToolResult, ToolRunner, TraceParent};
use hob_net::trace_context::within;

use super::span::{SpanKind, Tracer};

pub struct TracedTools {
    pub tools: Arc<dyn ToolRunner>,
    pub tracer: Tracer,
    pub parent: Option<TraceParent>,
}

#[async_trait]
impl ToolRunner for TracedTools {
    fn definitions(&self) -> Vec<ToolDefinition> {
        self.tools.definitions()
    }

    fn begin_turn(&self) {
        self.tools.begin_turn();
    }

    async fn execute(&self, call: &ToolCall) -> ToolResult {
        let mut span =
            self.tracer.start(self.parent, SpanKind::Internal, || format!("execute_tool {}", call.name));
        span.set("gen_ai.operation.name", "execute_tool");
        span.set("gen_ai.tool.name", call.name.as_str());
        span.set("gen_ai.tool.call.id", call.id.as_str());
        // A call to an engine by the tool is a part of this span.
        let result = within(span.trace_parent(), self.tools.execute(call)).await;
        if !result.success {
            span.fail("tool_error");
        }
        span.end();
        result
    }

    fn stopped(&self) -> bool {
        self.tools.stopped()
    }
}
