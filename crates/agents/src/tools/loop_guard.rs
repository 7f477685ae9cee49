//! Notices a model that goes in circles: the same call with the same arguments, again and again.

use serde_json::Value;

/// How often a call is answered with the same words before the run is stopped: twice run, once warned.
const WARNED_AT: u32 = 3;

/// What to do with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoopVerdict {
    Run,
    /// Tell the model that it repeats itself.
    Warn,
    /// It was told, and goes on.
    Stop,
}

/// The calls of one run.
#[derive(Debug, Default)]
pub(super) struct LoopGuard {
    seen: Vec<SeenCall>,
    stopped: bool,
}

#[derive(Debug)]
struct SeenCall {
    tool: String,
    arguments: Value,
    times: u32,
}

impl LoopGuard {
    /// Judges the next call. Arguments are the same when they are equal as JSON, whatever the order of their fields.
    pub(super) fn judge(&mut self, tool: &str, arguments: &Value) -> LoopVerdict {
        if self.stopped {
            return LoopVerdict::Stop;
        }
        let known = self.seen.iter_mut().find(|seen| seen.tool == tool && seen.arguments == *arguments);
        let Some(seen) = known else {
            self.seen.push(SeenCall { tool: tool.to_owned(), arguments: arguments.clone(), times: 1 });
            return LoopVerdict::Run;
        };
        seen.times += 1;
        self.stopped = seen.times > WARNED_AT;
        match seen.times {
            ..WARNED_AT => LoopVerdict::Run,
            WARNED_AT => LoopVerdict::Warn,
            _ => LoopVerdict::Stop,
        }
    }

    pub(super) fn stopped(&self) -> bool {
        self.stopped
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_third_same_call_is_warned_and_the_fourth_stops_everything() {
        let mut guard = LoopGuard::default();
        let same: Vec<LoopVerdict> = (0..4).map(|_| guard.judge("add", &json!({ "a": 1, "b": 2 }))).collect();
        assert_eq!(same, [LoopVerdict::Run, LoopVerdict::Run, LoopVerdict::Warn, LoopVerdict::Stop]);
        assert!(guard.stopped());
        assert_eq!(guard.judge("another", &json!({})), LoopVerdict::Stop);
    }

    #[test]
    fn the_order_of_fields_makes_no_other_call() {
        let mut guard = LoopGuard::default();
        guard.judge("add", &json!({ "a": 1, "b": 2 }));
        guard.judge("add", &json!({ "b": 2, "a": 1 }));
        assert_eq!(guard.judge("add", &json!({ "a": 1, "b": 2 })), LoopVerdict::Warn);
    }

    #[test]
    fn another_tool_or_other_arguments_are_no_circle() {
        let mut guard = LoopGuard::default();
        for n in 0..20 {
            assert_eq!(guard.judge("add", &json!({ "a": n })), LoopVerdict::Run);
            assert_eq!(guard.judge("subtract", &json!({ "a": n })), LoopVerdict::Run);
        }
        assert!(!guard.stopped());
    }
}
