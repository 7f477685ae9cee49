//! Answers as the whole program does, as far as a test of what asks needs it.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use hob_core::{Answered, Ask, AskError, Caller, Engine, GenerateRequest};

/// Answers with an engine alone: no agents, no tools, no record. Remembers its callers.
pub struct EngineAsk {
    engine: Arc<dyn Engine>,
    callers: Mutex<Vec<Caller>>,
}

impl EngineAsk {
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        EngineAsk { engine, callers: Mutex::default() }
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
            sources: Vec::new(),
        })
    }
}
