//! Tool calls as services send them: nested under `function`, or already flat as some proxies do.

use hob_core::ToolCall;
use serde::Deserialize;
use serde_json::Value;

use super::new_call_id;

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
