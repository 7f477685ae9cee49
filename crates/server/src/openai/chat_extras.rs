//! Hob's own fields in chat completions: passages of the memory (`documents`), and the calls of tools (`steps`). Answers have them only where
//! the request asks for them.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use hob_core::{CallerRights, CollectionSet, EventBus, MemoryUse, Subscription, ToolStep};
use serde::Serialize;

use crate::admin::memory::selected;
use crate::error::ApiError;

/// What the answer has beyond OpenAI's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ChatExtras {
    pub(crate) sources: bool,
    pub(crate) steps: bool,
}

/// A call of a tool in a whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct WireStep {
    id: String,
    tool: String,
    arguments: String,
    result: Option<String>,
    success: Option<bool>,
}

/// What a request for documents means for its caller. `names` are the collections; none names all that it may read.
pub(crate) fn memory_use(rights: &CallerRights, names: Option<Vec<String>>) -> Result<MemoryUse, ApiError> {
    let Some(names) = names else { return Ok(MemoryUse::default()) };
    let allowed: CollectionSet = rights.collections();
    if allowed.is_empty() {
        return Err(match &rights.key {
            Some(key) => ApiError::no_collections(&key.name),
            None => ApiError::owner_only("'documents'"),
        });
    }
    Ok(MemoryUse::Wanted(selected(&allowed, "documents", names)?))
}

/// Collects the calls of tools of a run.
pub(crate) struct StepCollector {
    steps: Arc<Mutex<Vec<WireStep>>>,
    _subscription: Subscription,
}

impl StepCollector {
    pub(crate) fn of(bus: &EventBus, run: &str) -> Self {
        let steps: Arc<Mutex<Vec<WireStep>>> = Arc::default();
        let writer = Arc::clone(&steps);
        let subscription = bus.subscribe_run(run, move |event| {
            if let Some(step) = event.event.tool_step() {
                add(&mut writer.lock().unwrap_or_else(PoisonError::into_inner), step);
            }
        });
        StepCollector { steps, _subscription: subscription }
    }

    pub(crate) fn take(self) -> Vec<WireStep> {
        mem::take(&mut *self.steps.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn add(steps: &mut Vec<WireStep>, step: ToolStep) {
    match step {
        ToolStep::Started { id, tool, arguments } => {
            steps.push(WireStep { id, tool, arguments, result: None, success: None });
        }
        ToolStep::Ended { id, result, success, .. } => {
            // Models may give two calls the same id: the last that is open has ended.
            if let Some(open) = steps.iter_mut().rfind(|step| step.id == id && step.success.is_none()) {
                (open.result, open.success) = (Some(result), Some(success));
            }
        }
    }
}
