//! The contract of an agent: something that answers by asking an engine, perhaps several times and with tools.

use std::sync::Arc;

use async_trait::async_trait;

use crate::engine::Engine;
use crate::engine_error::EngineError;
use crate::event::RunEvents;
use crate::generate::{GenerateRequest, Generation};
use crate::tool::{ToolResult, ToolRunner};

/// What an agent may use during one run.
#[derive(Clone)]
pub struct AgentContext {
    pub engine: Arc<dyn Engine>,
    pub tools: Arc<dyn ToolRunner>,
    pub events: RunEvents,
    /// How often the engine may be asked.
    pub max_turns: u32,
    /// Who wants to hear the answer as it comes; `None` for the whole answer at the end.
    pub listener: Option<Arc<dyn TextSink>>,
}

/// Hears an answer as it comes.
#[async_trait]
pub trait TextSink: Send + Sync {
    /// The next piece of the final answer's text. Waits while the hearer is busy.
    async fn text(&self, piece: &str);
}

/// An agent's answer and how it got there.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentOutcome {
    /// The final answer; its usage is the sum over all turns.
    pub generation: Generation,
    pub turns: u32,
    pub tool_results: Vec<ToolResult>,
}

/// Answers a request its own way. Dropping the future cancels the run, down to the engine and the tools.
#[async_trait]
pub trait Agent: Send + Sync {
    fn name(&self) -> &str;

    async fn run(
        &self,
        request: &GenerateRequest,
        context: &AgentContext,
    ) -> Result<AgentOutcome, EngineError>;
}
