//! Items as they are stored: each has an id, and a message is written out.

use serde_json::{Map, Value, json};

use super::input::Item;

/// The items of an input with ids of their own where the caller gave none. `suffix` is what the ids of a response share.
pub(super) fn identified(items: Vec<Value>, suffix: &str) -> Vec<Value> {
    let identify = |(index, item): (usize, Value)| {
        let prefix = prefix(Item::kind(&item).unwrap_or_default());
        with_id(item, format!("{prefix}_{suffix}i{index}"))
    };
    items.into_iter().enumerate().map(identify).collect()
}

fn prefix(kind: &str) -> &'static str {
    match kind {
        "message" => "msg",
        "reasoning" => "rs",
        "function_call" => "fc",
        "function_call_output" => "fco",
        "custom_tool_call" => "ctc",
        "custom_tool_call_output" => "ctco",
        _ => "item",
    }
}

fn with_id(item: Value, id: String) -> Value {
    let Value::Object(mut fields) = item else { return item };
    if Item::kind(&Value::Object(fields.clone())) == Some("message") {
        fields = message(fields);
    }
    if !fields.get("id").is_some_and(Value::is_string) {
        fields.insert("id".to_owned(), Value::String(id));
    }
    Value::Object(fields)
}

/// A message in its long form.
fn message(mut fields: Map<String, Value>) -> Map<String, Value> {
    fields.insert("type".to_owned(), json!("message"));
    fields.entry("status").or_insert_with(|| json!("completed"));
    if let Some(Value::String(text)) = fields.get("content") {
        let part = match fields.get("role").is_some_and(|role| role == "assistant") {
            true => json!({ "type": "output_text", "text": text, "annotations": [] }),
            false => json!({ "type": "input_text", "text": text }),
        };
        fields.insert("content".to_owned(), json!([part]));
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
            identified(items, "abc"),
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
}
