use hob_core::{AgentStep, TextDelta};
use serde_json::{Value, json};

use super::*;

fn encoder(display: ThinkingDisplay) -> MessageEvents {
    let mut events = MessageEvents::new("msg_1".into(), display, vec!["END".to_owned()]);
    events.answered_by("m");
    events
}

/// The events of these pieces, each as its data. The name of an event is the type of its data.
fn events(display: ThinkingDisplay, deltas: &[Delta]) -> Vec<Value> {
    let mut encoder = encoder(display);
    let mut out = Vec::new();
    deltas.iter().for_each(|delta| encoder.push(delta, &mut out));
    read(&out)
}

fn read(out: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(out).unwrap();
    let frames = text.split_terminator("\n\n").filter(|frame| !frame.starts_with(':'));
    frames
        .map(|frame| {
            let (name, data) = frame.split_once('\n').unwrap();
            let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
            data
        })
        .collect()
}

fn reasoning(text: &str) -> Delta {
    Delta::Reasoning { choice: 0, text: text.to_owned() }
}

fn called(index: u32, name: Option<&str>, arguments: &str) -> Delta {
    Delta::ToolCall(ToolCallDelta {
        choice: 0,
        index,
        id: name.map(|name| format!("call_{name}")),
        name: name.map(str::to_owned),
        arguments: arguments.to_owned(),
    })
}

fn finish(reason: FinishReason) -> Delta {
    Delta::Finish { choice: 0, reason }
}

fn done(prompt_tokens: u64, completion_tokens: u64) -> Delta {
    Delta::Done {
        usage: Some(Usage {
            prompt_tokens,
            completion_tokens,
            cached_tokens: None,
            reasoning_tokens: None,
            load_time: None,
        }),
    }
}

fn opening() -> [Value; 2] {
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": { "input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 0 },
    });
    [json!({ "type": "message_start", "message": message }), json!({ "type": "ping" })]
}

fn ending(stop_reason: &str, stop_sequence: Option<&str>, input: u64, output: u64) -> [Value; 2] {
    [
        json!({
            "type": "message_delta",
            "delta": { "stop_reason": stop_reason, "stop_sequence": stop_sequence },
            "usage": { "input_tokens": input, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": output },
        }),
        json!({ "type": "message_stop" }),
    ]
}

fn start(index: u32, block: Value) -> Value {
    json!({ "type": "content_block_start", "index": index, "content_block": block })
}

fn delta(index: u32, delta: Value) -> Value {
    json!({ "type": "content_block_delta", "index": index, "delta": delta })
}

fn stop(index: u32) -> Value {
    json!({ "type": "content_block_stop", "index": index })
}

#[test]
fn a_text_is_one_block() {
    let written = events(
        ThinkingDisplay::Absent,
        &[Delta::text("Hel\"\n"), Delta::text(""), Delta::text("lo"), finish(FinishReason::Stop), done(3, 2)],
    );
    let mut expected = opening().to_vec();
    expected.extend([
        start(0, json!({ "type": "text", "text": "" })),
        delta(0, json!({ "type": "text_delta", "text": "Hel\"\n" })),
        delta(0, json!({ "type": "text_delta", "text": "lo" })),
        stop(0),
    ]);
    expected.extend(ending("end_turn", None, 3, 2));
    assert_eq!(written, expected);
}

#[test]
fn reasoning_text_and_calls_are_blocks_in_their_order() {
    let written = events(
        ThinkingDisplay::Shown,
        &[
            reasoning("let "),
            reasoning("me"),
            Delta::text("I look."),
            called(0, Some("look"), ""),
            called(0, None, "{\"a\":"),
            called(0, None, "1}"),
            called(1, Some("add"), "{}"),
            finish(FinishReason::ToolCalls),
            done(30, 20),
        ],
    );
    let mut expected = opening().to_vec();
    expected.extend([
        start(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
        delta(0, json!({ "type": "thinking_delta", "thinking": "let " })),
        delta(0, json!({ "type": "thinking_delta", "thinking": "me" })),
        delta(0, json!({ "type": "signature_delta", "signature": "hob." })),
        stop(0),
        start(1, json!({ "type": "text", "text": "" })),
        delta(1, json!({ "type": "text_delta", "text": "I look." })),
        stop(1),
        start(2, json!({ "type": "tool_use", "id": "call_look", "name": "look", "input": {} })),
        delta(2, json!({ "type": "input_json_delta", "partial_json": "{\"a\":" })),
        delta(2, json!({ "type": "input_json_delta", "partial_json": "1}" })),
        stop(2),
        start(3, json!({ "type": "tool_use", "id": "call_add", "name": "add", "input": {} })),
        delta(3, json!({ "type": "input_json_delta", "partial_json": "{}" })),
        stop(3),
    ]);
    expected.extend(ending("tool_use", None, 30, 20));
    assert_eq!(written, expected);
}

#[test]
fn reasoning_that_is_not_shown_is_in_its_signature() {
    let deltas =
        [reasoning("let "), reasoning("me"), Delta::text("4"), finish(FinishReason::Stop), done(1, 1)];
    let written = events(ThinkingDisplay::Omitted, &deltas);
    assert_eq!(
        written[2..5],
        [
            start(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
            delta(0, json!({ "type": "signature_delta", "signature": signature("let me") })),
            stop(0),
        ]
    );
    let without = events(ThinkingDisplay::Absent, &deltas);
    assert_eq!(without[2], start(0, json!({ "type": "text", "text": "" })));
}

#[test]
fn a_block_that_its_provider_sealed_keeps_the_seal() {
    let sealed = |seal| Delta::ReasoningSeal { choice: 0, seal };
    let deltas = [
        reasoning("let me"),
        sealed(ReasoningSeal::Signature("EqQB".into())),
        sealed(ReasoningSeal::Redacted("Emw".into())),
        sealed(ReasoningSeal::Signature("Eoo".into())),
        Delta::text("4"),
        finish(FinishReason::Stop),
        done(1, 1),
    ];
    let written = events(ThinkingDisplay::Shown, &deltas);
    assert_eq!(
        written[2..11],
        [
            start(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
            delta(0, json!({ "type": "thinking_delta", "thinking": "let me" })),
            delta(0, json!({ "type": "signature_delta", "signature": "EqQB" })),
            stop(0),
            start(1, json!({ "type": "redacted_thinking", "data": "Emw" })),
            stop(1),
            start(2, json!({ "type": "thinking", "thinking": "", "signature": "" })),
            delta(2, json!({ "type": "signature_delta", "signature": "Eoo" })),
            stop(2),
        ]
    );
    assert_eq!(events(ThinkingDisplay::Absent, &deltas)[2], start(0, json!({ "type": "text", "text": "" })));
}

#[test]
fn the_end_says_why() {
    for (reason, stop_reason, stop_sequence) in [
        (FinishReason::Length, "max_tokens", None),
        (FinishReason::ContentFilter, "refusal", None),
        (FinishReason::StopSequence("END".into()), "stop_sequence", Some("END")),
    ] {
        let written = events(ThinkingDisplay::Absent, &[finish(reason), Delta::Done { usage: None }]);
        let mut expected = opening().to_vec();
        expected.extend(ending(stop_reason, stop_sequence, 0, 0));
        assert_eq!(written, expected);
    }
}

#[test]
fn a_call_without_an_id_gets_one() {
    let piece = Delta::ToolCall(ToolCallDelta { name: Some("f".into()), ..ToolCallDelta::default() });
    let written = events(ThinkingDisplay::Absent, &[piece]);
    let id = written[2]["content_block"]["id"].as_str().unwrap();
    assert!(id.starts_with("toolu_") && id.len() > 20, "{id}");
}

#[test]
fn a_stream_that_breaks_never_looks_complete() {
    let mut encoder = encoder(ThinkingDisplay::Absent);
    let mut out = Vec::new();
    encoder.push(&Delta::text("half"), &mut out);
    let cable = EngineError::Interrupted { engine: "vllm".into(), reason: "cable".into() };
    encoder.fail(&cable.into(), &mut out);
    let written = read(&out);
    assert_eq!(
        written.last().unwrap(),
        &json!({ "type": "error", "error": { "type": "api_error", "message": "vllm broke off its answer: cable" } })
    );
    assert!(!written.iter().any(|event| event["type"] == "message_stop"));
}

#[test]
fn pieces_of_two_calls_that_are_mixed_break_the_stream() {
    let written = events(
        ThinkingDisplay::Absent,
        &[
            called(0, Some("a"), "{"),
            called(1, Some("b"), "{"),
            called(0, None, "}"),
            finish(FinishReason::ToolCalls),
            done(1, 1),
        ],
    );
    let last = written.last().unwrap();
    assert_eq!(last["type"], "error");
    assert!(last["error"]["message"].as_str().unwrap().contains("mixed the pieces of two tool calls"));
}

#[test]
fn steps_of_an_agent_are_comments() {
    let step = AgentStep { name: "TOOL_STARTED", data: json!({ "tool": "add\n" }), tool: None };
    let mut encoder = encoder(ThinkingDisplay::Absent);
    let mut out = Vec::new();
    encoder.push(&Delta::Text(TextDelta::default()), &mut out);
    out.clear();
    encoder.push(&Delta::Step(Box::new(step)), &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), ": hob TOOL_STARTED {\"tool\":\"add\\n\"}\n\n");
}

#[test]
fn while_the_engine_is_silent_there_are_pings() {
    let mut out = Vec::new();
    encoder(ThinkingDisplay::Absent).keep_alive(&mut out);
    assert_eq!(read(&out), [json!({ "type": "ping" })]);
}
