//! Answers as the whole program does, as far as a test of what asks needs it.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use hob_core::{AnswerSource, Answered, Ask, AskError, Caller, Engine, GenerateRequest, ToolResult};

/// Answers with an engine alone: no agents, no tools, no record. Remembers its callers.
pub struct EngineAsk {
    engine: Arc<dyn Engine>,
    callers: Mutex<Vec<Caller>>,
    sources: Vec<AnswerSource>,
    first_results: Vec<ToolResult>,
}

impl EngineAsk {
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        EngineAsk { engine, callers: Mutex::default(), sources: Vec::new(), first_results: Vec::new() }
    }

    /// The same with a passage of this document as the source of every answer.
    pub fn with_source(self, document: &str) -> Self {
        let source =
            AnswerSource { document: document.to_owned(), passage: "a passage".to_owned(), score: 1.0 };
        EngineAsk { sources: vec![source], ..self }
    }

    /// The same with these results of calls before the question.
    pub fn with_first_results(self, first_results: Vec<ToolResult>) -> Self {
        EngineAsk { first_results, ..self }
    }

    /// All that asked so far.
    pub fn callers(&self) -> Vec<Caller> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Ask for EngineAsk {
    async fn ask(&self, request: GenerateRequest, caller: &Caller) -> Result<Answered, AskError> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner).push(caller.clone());
        let generation = self.engine.generate(&request).await?;
        let engine = self.engine.key().to_owned();
        Ok(Answered {
            engine,
            generation,
            turns: 1,
            tool_results: Vec::new(),
            reason: None,
            sources: self.sources.clone(),
        })
    }

    async fn make_first_calls(
        &self,
        _request: &GenerateRequest,
        _caller: &Caller,
    ) -> Result<Vec<ToolResult>, AskError> {
        Ok(self.first_results.clone())
    }
}
