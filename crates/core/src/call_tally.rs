//! What one request has used, for its log line: the model that answered last, and the tokens of all calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::generate::Usage;

#[derive(Debug, Default)]
pub struct CallTally {
    model: Mutex<Option<String>>,
    prompt_tokens: AtomicU64,
    completion_tokens: AtomicU64,
}

impl CallTally {
    /// Adds a call that has ended.
    pub fn add(&self, model: &str, usage: Usage) {
        *self.model.lock().unwrap_or_else(PoisonError::into_inner) = Some(model.to_owned());
        self.prompt_tokens.fetch_add(usage.prompt_tokens, Ordering::Relaxed);
        self.completion_tokens.fetch_add(usage.completion_tokens, Ordering::Relaxed);
    }

    /// The model that answered last; `None` if no model was asked.
    pub fn model(&self) -> Option<String> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Of prompts, and of answers.
    pub fn tokens(&self) -> (u64, u64) {
        (self.prompt_tokens.load(Ordering::Relaxed), self.completion_tokens.load(Ordering::Relaxed))
    }
}
