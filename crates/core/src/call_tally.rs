//! What one request has used, for its log line: its key, the model that answered last, and the tokens of all calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::generate::Usage;

#[derive(Debug, Default)]
pub struct CallTally {
    key: OnceLock<Arc<str>>,
    model: Mutex<Option<String>>,
    prompt_tokens: AtomicU64,
    completion_tokens: AtomicU64,
}

impl CallTally {
    /// Notes the name of the key that pays, before the first call. Only the first one counts.
    pub fn set_key(&self, name: Arc<str>) {
        self.key.get_or_init(|| name);
    }

    /// The name of the key; `None` without one.
    pub fn key(&self) -> Option<&str> {
        self.key.get().map(AsRef::as_ref)
    }

    /// Adds a call that has ended.
    pub fn add(&self, model: &str, usage: Usage) {
        *self.model.lock().unwrap_or_else(PoisonError::into_inner) = Some(model.to_owned());
        let Usage { prompt_tokens, completion_tokens, .. } = usage.plausible();
        self.prompt_tokens.fetch_add(prompt_tokens, Ordering::Relaxed);
        self.completion_tokens.fetch_add(completion_tokens, Ordering::Relaxed);
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
