//! The contract of an agent: something that answers by asking an engine, perhaps several times and with tools.

use std::sync::Arc;

use async_trait::async_trait;

use crate::engine::Engine;
use crate::engine_error::EngineError;
use crate::event::RunEvents;
use crate::generate::{GenerateRequest, Generation};
use crate::stream::{Delta, TextDelta};
use crate::tool::{ToolResult, ToolRunner};

/// What an agent may use during one run.
#[derive(Clone)]
pub struct AgentContext {
    pub engine: Arc<dyn Engine>,
    pub tools: Arc<dyn ToolRunner>,
    pub events: RunEvents,
    /// How often the engine may be asked.
    pub max_turns: u32,
    /// Receives the answer piece by piece; `None` for the whole answer at the end.
    pub listener: Option<Arc<dyn TextSink>>,
}

/// Receives an answer piece by piece.
#[async_trait]
pub trait TextSink: Send + Sync {
    /// The next piece of the final answer's text. Waits while the receiver is busy.
    async fn text(&self, piece: &str);

    /// The next piece of the answer, of any kind. A sink of text gets the text of the first answer.
    async fn delta(&self, delta: Delta) {
        if let Delta::Text(TextDelta { choice: 0, text, .. }) = delta {
            self.text(&text).await;
        }
    }
}

/// An agent's answer and how it got there.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentOutcome {
    /// The final answer; its usage is the sum over all turns.
    pub generation: Generation,
    pub turns: u32,
    pub tool_results: Vec<ToolResult>,
}

/// Answers a request. Dropping the future cancels the run, including its engine and its tools.
#[async_trait]
pub trait Agent: Send + Sync {
    fn name(&self) -> &str;

    async fn run(
        &self,
        request: &GenerateRequest,
        context: &AgentContext,
    ) -> Result<AgentOutcome, EngineError>;
}
