//! The agent that only asks: one turn, no tools.

use hob_core::{Answer, EngineError, GenerateRequest, ToolCall, ToolDefinition, ToolResult};

use crate::protocol::{ModelTurn, Protocol, ShownResult, TextFilter, refuse_forced_call};

pub(crate) struct Simple;

impl Protocol for Simple {
    fn name(&self) -> &'static str {
        "simple"
    }

    fn prepare(&self, request: &mut GenerateRequest, _tools: &[ToolDefinition]) -> Result<(), EngineError> {
        refuse_forced_call(self.name(), request)
    }

    fn read(&self, answer: &Answer, _tools: &[ToolDefinition]) -> ModelTurn {
        ModelTurn::Answer(answer.content.clone())
    }

    fn show(&self, _calls: &[ToolCall], _results: &[ToolResult]) -> Vec<ShownResult> {
        Vec::new()
    }

    fn text_filter(&self) -> Option<Box<dyn TextFilter>> {
        None
    }
}
