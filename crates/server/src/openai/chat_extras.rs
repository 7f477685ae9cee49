//! Hob's own fields in chat completions: passages of the memory (`documents`), the calls of tools (`steps`), and the tools that an agent may use
//! (`agent_tools`). Answers have them only where the request asks for them.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use hob_core::{Caller, EventBus, MemoryUse, Permit, Subscription, ToolStep};
use serde::Serialize;

use crate::admin::memory::selected;
use crate::error::{ApiError, ApiResult};

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
pub(crate) fn memory_use(caller: &Caller, names: Option<Vec<String>>) -> ApiResult<MemoryUse> {
    let Some(names) = names else { return Ok(MemoryUse::default()) };
    let allowed = caller.rights().collections();
    if allowed.is_empty() {
        return Err(match &caller.key {
            Some(key) => ApiError::no_collections(&key.name),
            None => ApiError::owner_only("'documents'"),
        });
    }
    Ok(MemoryUse::Wanted(selected(&allowed, "documents", names)?))
}

/// The tools that a request may name.
const MAX_AGENT_TOOLS: usize = 64;

/// The permit of a caller whose agent may use only these tools. A tool that the caller may not use stays forbidden.
pub(crate) fn narrowed(
    permit: Permit,
    wanted: Option<Vec<String>>,
    is_known: impl Fn(&str) -> bool,
) -> ApiResult<Permit> {
    let Some(wanted) = wanted else { return Ok(permit) };
    if wanted.len() > MAX_AGENT_TOOLS {
        let message = format!("'agent_tools' has {} names; the limit is {MAX_AGENT_TOOLS}", wanted.len());
        return Err(ApiError::invalid("agent_tools", message));
    }
    if let Some(unknown) = wanted.iter().find(|name| !is_known(name)) {
        let shown: String = unknown.chars().take(60).collect();
        let message = format!("there is no tool '{shown}'. GET /v1/agents lists the tools.");
        return Err(ApiError::invalid("agent_tools", message));
    }
    let only = match permit.only {
        Some(allowed) => allowed.into_iter().filter(|name| wanted.contains(name)).collect(),
        None => wanted,
    };
    Ok(Permit { only: Some(only), ..permit })
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

#[cfg(test)]
mod tests {
    use hob_core::Reach;

    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_selection_of_tools_only_takes_away() {
        let known = |name: &str| matches!(name, "a" | "b" | "c");
        let all = Permit::up_to(Reach::Pure);
        let of_key = Permit { only: Some(names(&["a", "b"])), ..all.clone() };
        for (permit, wanted, only) in [
            (&all, None, None),
            (&all, Some(names(&["a"])), Some(names(&["a"]))),
            (&all, Some(Vec::new()), Some(Vec::new())),
            (&of_key, Some(names(&["b", "c"])), Some(names(&["b"]))),
        ] {
            let narrow =
                narrowed(permit.clone(), wanted, known).ok().map(|permit| (permit.only, permit.most));
            assert_eq!(narrow, Some((only, Reach::Pure)));
        }
        assert!(narrowed(all.clone(), Some(names(&["d"])), known).is_err());
        assert!(narrowed(all, Some(vec!["a".to_owned(); MAX_AGENT_TOOLS + 1]), known).is_err());
    }
}
