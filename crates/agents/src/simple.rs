//! The agent that just asks: one turn, no tools.

use hob_core::{Answer, EngineError, GenerateRequest, ToolCall, ToolDefinition, ToolResult};

use crate::protocol::{Earshot, Everything, Protocol, Reading, Shown, refuse_forced_call};

pub(crate) struct Simple;

impl Protocol for Simple {
    fn name(&self) -> &'static str {
        "simple"
    }

    fn prepare(&self, request: &mut GenerateRequest, _tools: &[ToolDefinition]) -> Result<(), EngineError> {
        refuse_forced_call(self.name(), request)
    }

    fn read(&self, answer: &Answer, _tools: &[ToolDefinition]) -> Reading {
        Reading::Answer(answer.content.clone())
    }

    fn show(&self, _calls: &[ToolCall], _results: &[ToolResult]) -> Vec<Shown> {
        Vec::new()
    }

    fn earshot(&self) -> Box<dyn Earshot> {
        Box::new(Everything::default())
    }
}
