//! Detects a model that repeats the same call with the same arguments.

use serde_json::Value;

/// A repeated call runs twice, gets one warning, and then stops the run.
const WARNED_AT: u32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoopVerdict {
    Run,
    /// Warn the model that it repeats a call.
    Warn,
    /// The model ignored the warning.
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
    /// Judges the next call. Arguments are the same if they are equal as JSON, in any order of fields.
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
    fn the_order_of_fields_makes_no_difference() {
        let mut guard = LoopGuard::default();
        guard.judge("add", &json!({ "a": 1, "b": 2 }));
        guard.judge("add", &json!({ "b": 2, "a": 1 }));
        assert_eq!(guard.judge("add", &json!({ "a": 1, "b": 2 })), LoopVerdict::Warn);
    }

    #[test]
    fn other_tools_or_arguments_are_not_a_repetition() {
        let mut guard = LoopGuard::default();
        for n in 0..20 {
            assert_eq!(guard.judge("add", &json!({ "a": n })), LoopVerdict::Run);
            assert_eq!(guard.judge("subtract", &json!({ "a": n })), LoopVerdict::Run);
        }
        assert!(!guard.stopped());
    }
}
