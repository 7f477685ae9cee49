use serde_json::json;

use super::*;
use crate::responses::encrypted_reasoning::{sealed_block, sealed_text};

fn messages(items: Value) -> Vec<Message> {
    let mut ignored = IgnoredFields::default();
    let mut transcript = Transcript::new(None);
    for (index, item) in items.as_array().unwrap().iter().enumerate() {
        transcript.push(format_args!("input[{index}]"), item, &mut ignored).unwrap();
    }
    transcript.finish()
}

fn refused(items: Value) -> (String, String) {
    let mut transcript = Transcript::new(None);
    for (index, item) in items.as_array().unwrap().iter().enumerate() {
        if let Err(error) =
            transcript.push(format_args!("input[{index}]"), item, &mut IgnoredFields::default())
        {
            return (error.param().unwrap_or_default().to_owned(), error.message().to_owned());
        }
    }
    panic!("accepted: {items}");
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
}

fn thought(text: &str) -> serde_json::Map<String, Value> {
    [(REASONING.to_owned(), json!(text))].into_iter().collect()
}

#[test]
fn what_the_model_thought_said_and_called_is_one_message() {
    let items = json!([
        { "role": "user", "content": "What is the weather?" },
        { "type": "reasoning", "id": "rs_1", "summary": [{ "type": "summary_text", "text": "hm" }], "content": null },
        { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Let me ", "annotations": [] }, { "type": "output_text", "text": "see." }] },
        { "type": "function_call", "call_id": "a", "name": "weather", "arguments": "{}", "id": "fc_1", "status": "completed" },
        { "type": "custom_tool_call", "call_id": "b", "name": "shell", "input": "ls" },
        { "type": "function_call_output", "call_id": "a", "output": "rain", "id": "fco_1" },
        { "type": "custom_tool_call_output", "call_id": "b", "output": [{ "type": "input_text", "text": "x" }] },
        { "type": "message", "role": "assistant", "content": "Rain." },
    ]);
    assert_eq!(
        messages(items),
        [
            Message::new(Role::User, "What is the weather?"),
            Message {
                tool_calls: vec![call("a", "weather", "{}"), call("b", "shell", "{\"input\":\"ls\"}")],
                extra: thought("hm"),
                ..Message::new(Role::Assistant, "Let me see.")
            },
            Message::tool_result("a", "rain"),
            Message::tool_result("b", "x"),
            Message::new(Role::Assistant, "Rain."),
        ]
    );
}

#[test]
fn reasoning_comes_back_from_its_text_its_seal_or_its_summary() {
    let seal = sealed_text("as it was ü");
    for (item, expected) in [
        (
            json!({ "content": [{ "type": "reasoning_text", "text": "a" }, { "text": "b" }], "encrypted_content": seal }),
            "a\nb",
        ),
        (
            json!({ "content": null, "summary": [{ "text": "short" }], "encrypted_content": seal }),
            "as it was ü",
        ),
        (json!({ "summary": [{ "text": "short" }], "encrypted_content": "gAAAA" }), "short"),
    ] {
        let mut item = item;
        item["type"] = json!("reasoning");
        let turn = json!([item, { "role": "assistant", "content": "done" }]);
        let expected = Message { extra: thought(expected), ..Message::new(Role::Assistant, "done") };
        assert_eq!(messages(turn), [expected]);
    }
}

#[test]
fn what_a_provider_sealed_goes_back_to_it() {
    let signed = SealedReasoning::Signed { text: "hm".into(), signature: "s1".into() };
    let redacted = SealedReasoning::Redacted { data: "d".into() };
    let items = json!([
        { "role": "user", "content": "go" },
        { "type": "reasoning", "summary": [{ "type": "summary_text", "text": "hm" }], "content": null, "encrypted_content": sealed_block(&signed) },
        { "type": "reasoning", "summary": [], "encrypted_content": sealed_block(&redacted) },
        { "type": "function_call", "call_id": "a", "name": "f", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "a", "output": "1" },
    ]);
    let mut extra = thought("hm");
    extra.insert(
        "thinking_blocks".into(),
        json!([
            { "type": "thinking", "thinking": "hm", "signature": "s1" },
            { "type": "redacted_thinking", "data": "d" },
        ]),
    );
    assert_eq!(
        messages(items),
        [
            Message::new(Role::User, "go"),
            Message {
                tool_calls: vec![call("a", "f", "{}")],
                extra,
                ..Message::new(Role::Assistant, Content::Empty)
            },
            Message::tool_result("a", "1"),
        ]
    );
}

#[test]
fn a_seal_of_another_service_is_named() {
    let mut ignored = IgnoredFields::default();
    let item = json!({ "type": "reasoning", "summary": [], "encrypted_content": "gAAAA" });
    Transcript::new(None).push(format_args!("input[0]"), &item, &mut ignored).unwrap();
    let named: Vec<_> = ignored.into_warnings().iter().map(|warning| warning.text().into_owned()).collect();
    assert_eq!(named, ["ignored=input[].encrypted_content"]);
}

#[test]
fn a_thought_that_led_to_nothing_is_no_message() {
    let items = json!([
        { "type": "reasoning", "summary": [{ "text": "hm" }] },
        { "role": "user", "content": "go on" },
        { "type": "reasoning", "summary": [{ "text": "hm" }] },
    ]);
    assert_eq!(messages(items), [Message::new(Role::User, "go on")]);
}

#[test]
fn a_message_between_calls_and_outputs_stays_with_the_calls() {
    let items = json!([
        { "type": "function_call", "call_id": "a", "name": "f", "arguments": { "x": 1 } },
        { "role": "assistant", "content": "wait" },
        { "type": "reasoning", "summary": [{ "text": "more" }] },
        { "type": "function_call", "call_id": "b", "name": "f", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "a", "output": "1" },
        { "type": "function_call_output", "call_id": "b", "output": "2" },
    ]);
    let first = Message {
        tool_calls: vec![call("a", "f", "{\"x\":1}"), call("b", "f", "{}")],
        extra: thought("more"),
        ..Message::new(Role::Assistant, "wait")
    };
    assert_eq!(messages(items), [first, Message::tool_result("a", "1"), Message::tool_result("b", "2")]);
}

#[test]
fn answers_in_a_row_stay_apart() {
    let items = json!([{ "role": "assistant", "content": "a" }, { "role": "assistant", "content": "b" }]);
    assert_eq!(messages(items), [Message::new(Role::Assistant, "a"), Message::new(Role::Assistant, "b")]);
}

#[test]
fn instructions_come_first_and_developers_speak_as_the_system() {
    let mut transcript = Transcript::new(Some("be brief"));
    let developer = json!({ "role": "developer", "content": [{ "type": "input_text", "text": "in verse" }] });
    transcript.push(format_args!("input[0]"), &developer, &mut IgnoredFields::default()).unwrap();
    assert_eq!(transcript.finish(), [Message::new(Role::System, "be brief\n\nin verse")]);
}

#[test]
fn there_is_one_system_message_and_turns_alternate() {
    let image = json!({ "type": "input_image", "image_url": "data:image/png;base64,AAAA" });
    let items = json!([
        { "role": "developer", "content": "rules" },
        { "role": "system", "content": "more rules" },
        { "role": "user", "content": "context" },
        { "role": "user", "content": "question" },
        { "role": "assistant", "content": "answer" },
        { "role": "developer", "content": "new rules" },
        { "role": "user", "content": [{ "type": "input_text", "text": "look" }, image] },
    ]);
    let picture = hob_core::Image { url: "data:image/png;base64,AAAA".into(), detail: None };
    let last = Content::Parts(vec![
        ContentPart::Text("<system>\nnew rules\n</system>".into()),
        ContentPart::Text("look".into()),
        ContentPart::Image(picture),
    ]);
    assert_eq!(
        messages(items),
        [
            Message::new(Role::System, "rules\n\nmore rules"),
            Message::new(Role::User, "context\n\nquestion"),
            Message::new(Role::Assistant, "answer"),
            Message::new(Role::User, last),
        ]
    );
}

#[test]
fn parts_that_are_only_text_become_one_text() {
    let parts = |texts: &[&str]| {
        let parts = texts.iter().map(|text| json!({ "type": "input_text", "text": text }));
        Value::Array(parts.collect())
    };
    // As Codex sends them.
    let items = json!([
        { "type": "message", "id": "msg_1", "role": "developer", "content": parts(&["permissions", "skills"]) },
        { "type": "message", "id": "msg_2", "role": "user", "content": parts(&["AGENTS.md", "environment"]) },
        { "type": "function_call", "call_id": "a", "name": "exec", "arguments": "{}" },
        { "type": "function_call_output", "id": "fco_1", "call_id": "a", "output": parts(&["Exit code: 0", "done"]) },
    ]);
    assert_eq!(
        messages(items),
        [
            Message::new(Role::System, "permissions\nskills"),
            Message::new(Role::User, "AGENTS.md\nenvironment"),
            Message {
                tool_calls: vec![call("a", "exec", "{}")],
                ..Message::new(Role::Assistant, Content::Empty)
            },
            Message::tool_result("a", "Exit code: 0\ndone"),
        ]
    );
}

#[test]
fn an_error_names_the_place() {
    let text = |param: &str, message: &str| (param.to_owned(), message.to_owned());
    for (items, expected) in [
        (json!([7]), text("input[0]", "input[0]: expected an object")),
        (json!([{}]), text("input[0].type", "input[0].type is missing")),
        (json!([{ "role": "user" }]), text("input[0].content", "input[0].content is missing")),
        (
            json!([{ "role": "tool", "content": "x" }]),
            text("input[0].role", "'tool' is not a role. Roles are user, assistant, system and developer"),
        ),
        (
            json!([{ "role": "user", "content": [{ "type": "input_image" }] }]),
            text("input[0].content[0].image_url", "input[0].content[0].image_url is missing"),
        ),
        (
            json!([{ "role": "user", "content": [{ "type": "input_image", "file_id": "f" }] }]),
            text("input[0].content[0].file_id", "this server stores no files; send the content itself"),
        ),
        (
            json!([{ "role": "user", "content": [{ "type": "input_file", "file_url": 7 }] }]),
            text("input[0].content[0].file_url", "input[0].content[0].file_url: expected a string"),
        ),
        (
            json!([{ "type": "item_reference", "id": "x" }]),
            text("input[0].id", "an item cannot be referred to here; send the item itself"),
        ),
        (
            json!([{ "type": "function_call_output", "call_id": "x", "output": "" }]),
            text("input[0].call_id", "no call with the id 'x' comes before this output"),
        ),
        (
            json!([{ "type": "function_call", "call_id": "x", "name": "f" }]),
            text("input[0].arguments", "input[0].arguments is missing"),
        ),
    ] {
        assert_eq!(refused(items), expected);
    }
}

#[test]
fn images_of_outputs_follow_all_outputs_as_a_message_of_the_user() {
    let image = json!({ "type": "input_image", "image_url": "data:image/png;base64,AAAA" });
    let picture =
        ContentPart::Image(hob_core::Image { url: "data:image/png;base64,AAAA".into(), detail: None });
    let text = |text: &str| ContentPart::Text(text.to_owned());
    let items = |after: &[Value]| {
        let mut items = vec![
            json!({ "type": "function_call", "call_id": "a", "name": "view_image", "arguments": "{}" }),
            json!({ "type": "function_call", "call_id": "b", "name": "view_image", "arguments": "{}" }),
            json!({ "type": "function_call_output", "call_id": "a", "output": [image] }),
            json!({ "type": "function_call_output", "call_id": "b", "output": [{ "type": "input_text", "text": "two" }, image] }),
        ];
        items.extend_from_slice(after);
        json!(items)
    };
    let calls = Message {
        tool_calls: vec![call("a", "view_image", "{}"), call("b", "view_image", "{}")],
        ..Message::new(Role::Assistant, Content::Empty)
    };
    let attached = vec![
        text("From the result of view_image (a):"),
        picture.clone(),
        text("From the result of view_image (b):"),
        picture,
    ];
    let mut expected = vec![
        calls,
        Message::tool_result("a", "The result is in the next message."),
        Message::tool_result("b", "two"),
        Message::new(Role::User, Content::Parts(attached.clone())),
    ];
    assert_eq!(messages(items(&[])), expected);
    expected.push(Message::new(Role::Assistant, "I see."));
    assert_eq!(messages(items(&[json!({ "role": "assistant", "content": "I see." })])), expected);
    let asked = [attached, vec![text("and?")]].concat();
    expected.truncate(3);
    expected.push(Message::new(Role::User, Content::Parts(asked)));
    assert_eq!(messages(items(&[json!({ "role": "user", "content": "and?" })])), expected);
}
