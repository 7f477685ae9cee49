//! Tool calls as services send them: nested under `function`, or already flat as some proxies do.

use std::collections::HashMap;

use hob_core::{ToolCall, ToolCallDelta};
use serde::Deserialize;
use serde_json::Value;

/// A fresh id for a call that came without one.
pub(crate) fn new_call_id() -> String {
    let suffix: String = std::iter::repeat_with(fastrand::alphanumeric).take(24).collect();
    format!("call_{suffix}")
}

/// A call, or in a stream a piece of one.
#[derive(Debug, Deserialize)]
pub struct WireCall {
    #[serde(default)]
    pub index: Option<u32>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<Function>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Function {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<Value>,
}

/// What a piece of a call says, whichever of the two shapes it came in.
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

    /// A whole call. One without an id gets one, so that its result can be matched to it.
    pub fn into_tool_call(self) -> ToolCall {
        let FlatCall { id, name, arguments } = self.flatten();
        ToolCall {
            id: id.unwrap_or_else(new_call_id),
            name: name.unwrap_or_default(),
            arguments: if arguments.is_empty() { "{}".to_owned() } else { arguments },
        }
    }
}

/// Which call of one answer each streamed piece belongs to. Services leave the index out, or the id, or give several calls
/// the same index; our callers get an index of its own and an id for each.
#[derive(Debug, Default)]
pub struct CallTracker {
    /// How many calls have begun.
    begun: u32,
    /// The latest call under each of the service's own indexes.
    latest: HashMap<u32, StartedCall>,
}

#[derive(Debug)]
struct StartedCall {
    index: u32,
    /// As the service gave it.
    id: Option<String>,
}

impl CallTracker {
    /// The piece with the index of its call. The first piece of a call has its id.
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

    /// The call that a piece continues; `None` when it begins one.
    fn continued(&self, given: Option<u32>, piece: &FlatCall) -> Option<u32> {
        match given {
            Some(given) => {
                let place = self.latest.get(&given)?;
                // A new id begins a new call, if a name comes with it: some versions of vLLM make up an id for every piece.
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
    fn a_call_without_id_or_arguments_is_made_whole() {
        let call = read(r#"{"id":"","function":{"name":"now"}}"#);
        assert_eq!((call.name.as_str(), call.arguments.as_str()), ("now", "{}"));
        assert!(call.id.starts_with("call_") && call.id.len() == 29, "{}", call.id);
    }
}
