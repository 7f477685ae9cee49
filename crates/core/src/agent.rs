//! The contract of an agent: something that answers by asking an engine, perhaps several times and with tools.

use std::sync::Arc;

use async_trait::async_trait;

use crate::engine::{Engine, EngineError};
use crate::generate::{GenerateRequest, Generation};

/// What an agent may use.
#[derive(Clone)]
pub struct AgentContext {
    pub engine: Arc<dyn Engine>,
}

/// What a tool gave back during a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    pub tool_name: String,
    pub content: String,
    pub success: bool,
}

/// An agent's answer and how it got there.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentOutcome {
    /// The final answer; its usage is the sum over all turns.
    pub generation: Generation,
    pub turns: u32,
    pub tool_results: Vec<ToolResult>,
}

/// Answers a request its own way. Dropping the future cancels the run, down to the engine.
#[async_trait]
pub trait Agent: Send + Sync {
    fn name(&self) -> &str;

    async fn run(
        &self,
        request: &GenerateRequest,
        context: &AgentContext,
    ) -> Result<AgentOutcome, EngineError>;
}
