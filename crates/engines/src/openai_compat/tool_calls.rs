//! Tool calls as services send them: nested under `function`, or flat as some proxies do.

use std::collections::HashMap;

use hob_core::{ToolCall, ToolCallDelta, random_id};
use serde::Deserialize;
use serde_json::Value;

/// A new id for a call without one.
pub(crate) fn new_call_id() -> String {
    random_id("call_")
}

/// A call, or one fragment of a streamed call.
#[derive(Debug, Deserialize)]
pub struct WireCall {
    pub index: Option<u32>,
    id: Option<String>,
    function: Option<Function>,
    name: Option<String>,
    arguments: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Function {
    name: Option<String>,
    arguments: Option<Value>,
}

/// A call or fragment in one shape.
#[derive(Debug)]
pub struct FlatCall {
    pub id: Option<String>,
    pub name: Option<String>,
    pub arguments: String,
}

impl WireCall {
    pub fn flatten(self) -> FlatCall {
        let (name, arguments) = match self.function {
            Some(function) => (function.name, function.arguments),
            None => (self.name, self.arguments),
        };
        FlatCall {
            id: self.id.filter(|id| !id.is_empty()),
            name: name.filter(|name| !name.is_empty()),
            arguments: match arguments {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(text)) => text,
                Some(object) => object.to_string(),
            },
        }
    }

    /// A complete call. A call without an id gets one, so that its result can refer to it.
    pub fn into_tool_call(self) -> ToolCall {
        let FlatCall { id, name, arguments } = self.flatten();
        ToolCall {
            id: id.unwrap_or_else(new_call_id),
            name: name.unwrap_or_default(),
            arguments: if arguments.is_empty() { "{}".to_owned() } else { arguments },
        }
    }
}

/// Assigns streamed fragments to calls. Services omit the index or the id, or use one index for several calls;
/// callers get a unique index and an id for each call.
#[derive(Debug, Default)]
pub struct CallTracker {
    /// The number of calls so far.
    begun: u32,
    /// The latest call for each index that the service sent.
    latest: HashMap<u32, StartedCall>,
}

#[derive(Debug)]
struct StartedCall {
    index: u32,
    /// As the service sent it.
    id: Option<String>,
}

impl CallTracker {
    /// The fragment with the index of its call. The first fragment of a call has its id.
    pub fn place(&mut self, call: WireCall) -> ToolCallDelta {
        let given = call.index;
        let piece = call.flatten();
        match self.continued(given, &piece) {
            Some(index) => ToolCallDelta {
                index,
                name: piece.name,
                arguments: piece.arguments,
                ..ToolCallDelta::default()
            },
            None => {
                let index = self.begun;
                self.begun = self.begun.saturating_add(1);
                self.latest.insert(given.unwrap_or(index), StartedCall { index, id: piece.id.clone() });
                ToolCallDelta {
                    index,
                    id: Some(piece.id.unwrap_or_else(new_call_id)),
                    name: piece.name,
                    arguments: piece.arguments,
                    ..ToolCallDelta::default()
                }
            }
        }
    }

    /// The index of the call that a fragment continues; `None` for a new call.
    fn continued(&self, given: Option<u32>, piece: &FlatCall) -> Option<u32> {
        match given {
            Some(given) => {
                let place = self.latest.get(&given)?;
                // A new id together with a name starts a new call. An id alone does not: some versions of vLLM send a
                // new one with every fragment.
                let is_new = piece.name.is_some() && piece.id.is_some() && piece.id != place.id;
                (!is_new).then_some(place.index)
            }
            None if piece.id.is_none() && piece.name.is_none() => self.begun.checked_sub(1),
            None => {
                let same = |place: &&StartedCall| piece.id.is_some() && place.id == piece.id;
                self.latest.values().find(same).map(|place| place.index)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> ToolCall {
        serde_json::from_str::<WireCall>(json).unwrap().into_tool_call()
    }

    #[test]
    fn nested_and_flat_calls_are_the_same() {
        let expected = ToolCall { id: "c1".into(), name: "f".into(), arguments: "{\"a\":1}".into() };
        assert_eq!(
            read(r#"{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}"#),
            expected
        );
        assert_eq!(read(r#"{"id":"c1","name":"f","arguments":"{\"a\":1}"}"#), expected);
        assert_eq!(read(r#"{"id":"c1","name":"f","arguments":{"a":1}}"#), expected);
    }

    #[test]
    fn a_call_without_id_or_arguments_is_completed() {
        let call = read(r#"{"id":"","function":{"name":"now"}}"#);
        assert_eq!((call.name.as_str(), call.arguments.as_str()), ("now", "{}"));
        assert!(call.id.starts_with("call_") && call.id.len() == 29, "{}", call.id);
    }
}
