//! Items as they are stored: each has an id, and a message is written out.

use std::collections::HashSet;

use hob_conversations::ConversationItem;
use serde_json::{Map, Value, json};

use super::input::Item;

/// Begins the ids of messages.
const MESSAGE: &str = "msg";

/// The items of an input with ids of their own where the caller gave none, or one that is `taken` or occurs twice. `suffix` is what
/// the ids of a response share.
pub(super) fn identified(items: Vec<Value>, suffix: &str, mut taken: HashSet<String>) -> Vec<Value> {
    let identify = |(index, item): (usize, Value)| {
        let prefix = prefix(Item::kind(&item).unwrap_or_default());
        let Value::Object(mut fields) = item else { return item };
        if prefix == MESSAGE {
            fields = message(fields);
        }
        let is_free = fields.get("id").and_then(Value::as_str).is_some_and(|id| taken.insert(id.to_owned()));
        if !is_free {
            fields.insert("id".to_owned(), Value::String(format!("{prefix}_{suffix}i{index}")));
        }
        Value::Object(fields)
    };
    items.into_iter().enumerate().map(identify).collect()
}

/// Items with ids as a conversation stores them.
pub(super) fn conversation_items(items: &[Value]) -> Vec<ConversationItem> {
    let stored = items.iter().map(|item| ConversationItem {
        id: item["id"].as_str().unwrap_or_default().to_owned(),
        item: item.to_string(),
    });
    stored.collect()
}

fn prefix(kind: &str) -> &'static str {
    match kind {
        "message" => MESSAGE,
        "reasoning" => "rs",
        "function_call" => "fc",
        "function_call_output" => "fco",
        "custom_tool_call" => "ctc",
        "custom_tool_call_output" => "ctco",
        _ => "item",
    }
}

/// A message in its long form.
fn message(mut fields: Map<String, Value>) -> Map<String, Value> {
    fields.insert("type".to_owned(), json!("message"));
    fields.entry("status").or_insert_with(|| json!("completed"));
    let is_answer = fields.get("role").is_some_and(|role| role == "assistant");
    if let Some(content) = fields.get_mut("content")
        && content.is_string()
    {
        let text = content.take();
        let mut part = Map::from_iter([("text".to_owned(), text)]);
        part.insert("type".to_owned(), json!(if is_answer { "output_text" } else { "input_text" }));
        if is_answer {
            part.insert("annotations".to_owned(), json!([]));
        }
        *content = Value::Array(vec![Value::Object(part)]);
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_has_an_id_and_a_message_its_long_form() {
        let items = vec![
            json!({ "role": "user", "content": "hi" }),
            json!({ "role": "assistant", "content": "ho", "id": "msg_mine" }),
            json!({ "type": "function_call_output", "call_id": "c", "output": "1", "id": null }),
        ];
        assert_eq!(
            identified(items, "abc", HashSet::new()),
            [
                json!({
                    "id": "msg_abci0", "type": "message", "status": "completed", "role": "user",
                    "content": [{ "type": "input_text", "text": "hi" }],
                }),
                json!({
                    "id": "msg_mine", "type": "message", "status": "completed", "role": "assistant",
                    "content": [{ "type": "output_text", "text": "ho", "annotations": [] }],
                }),
                json!({ "id": "fco_abci2", "type": "function_call_output", "call_id": "c", "output": "1" }),
            ]
        );
    }

    #[test]
    fn an_id_occurs_once() {
        let items: Vec<Value> = ["a", "a", "b"].map(|id| json!({ "type": "reasoning", "id": id })).to_vec();
        let ids: Vec<Value> = identified(items, "x", HashSet::from(["b".to_owned()]))
            .into_iter()
            .map(|mut item| item["id"].take())
            .collect();
        assert_eq!(ids, ["a", "rs_xi1", "rs_xi2"]);
    }
}
