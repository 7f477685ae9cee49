//! A call of a tool with fixed arguments, before the prompt of a task. The model gets the result, so it need not call tools itself. Pure.

use hob_core::ToolCall;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::types::{TaskError, TaskField};

const MOST_CALLS: usize = 16;
const LONGEST_NAME: usize = 128;
const LARGEST_ARGUMENTS: usize = 4096;

/// A call before the prompt of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstCall {
    pub tool: String,
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

impl FirstCall {
    /// Reads a name, which a JSON object with arguments may follow: `calendar {"from": "today"}`.
    pub fn parse(text: &str) -> Result<Self, TaskError> {
        let text = text.trim();
        let (tool, arguments) = text.split_once(char::is_whitespace).unwrap_or((text, "{}"));
        let arguments = serde_json::from_str(arguments).map_err(|error| {
            let shown: String = text.chars().filter(|letter| !letter.is_control()).take(60).collect();
            let reason = format!(
                "the arguments in '{shown}' are not a JSON object: {error}. Write it such as 'calendar {{\"from\": \"today\"}}'"
            );
            TaskError::invalid(TaskField::FirstCalls, reason)
        })?;
        Ok(FirstCall { tool: tool.to_owned(), arguments })
    }

    /// The call as a model would write it. `number` is in its id.
    pub(crate) fn to_tool_call(&self, number: usize) -> ToolCall {
        let arguments = Value::Object(self.arguments.clone()).to_string();
        ToolCall { id: format!("first-{number}"), name: self.tool.clone(), arguments }
    }
}

pub(crate) fn check(calls: &[FirstCall]) -> Result<(), TaskError> {
    let refuse = |reason: &str| Err(TaskError::invalid(TaskField::FirstCalls, reason));
    if calls.len() > MOST_CALLS {
        return refuse("at most 16 calls before the prompt");
    }
    for FirstCall { tool, arguments } in calls {
        if tool.trim().is_empty() || tool.len() > LONGEST_NAME {
            return refuse("each call needs the name of a tool, of at most 128 letters");
        }
        let size = serde_json::to_string(arguments).map_or(usize::MAX, |text| text.len());
        if size > LARGEST_ARGUMENTS {
            return refuse("the arguments of a call are larger than 4 KiB");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_a_name_and_arguments() {
        let plain = FirstCall::parse(" weather ").unwrap();
        assert_eq!(plain, FirstCall { tool: "weather".into(), arguments: Map::new() });
        let call = FirstCall::parse(r#"calendar {"from": "today"}"#).unwrap();
        assert_eq!(json!(call), json!({ "tool": "calendar", "arguments": { "from": "today" } }));
        let made = call.to_tool_call(2);
        assert_eq!((made.id.as_str(), made.arguments.as_str()), ("first-2", r#"{"from":"today"}"#));
        for wrong in ["calendar today", "calendar [1]", "calendar {"] {
            let error = FirstCall::parse(wrong).unwrap_err().to_string();
            assert!(error.contains("not a JSON object"), "{wrong}: {error}");
        }
    }

    #[test]
    fn calls_have_limits() {
        let call = |tool: &str| FirstCall { tool: tool.into(), arguments: Map::new() };
        assert!(check(&vec![call("a"); 16]).is_ok());
        assert!(check(&vec![call("a"); 17]).is_err());
        assert!(check(&[call(" ")]).is_err());
        assert!(check(&[call(&"a".repeat(129))]).is_err());
        let arguments = [("text".to_owned(), json!("x".repeat(5000)))].into_iter().collect();
        assert!(check(&[FirstCall { arguments, ..call("a") }]).is_err());
        assert!(serde_json::from_str::<FirstCall>(r#"{"tool":"a","argument":{}}"#).is_err());
    }
}
