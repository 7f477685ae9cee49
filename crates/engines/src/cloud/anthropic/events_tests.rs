use hob_core::FinishReason;
use serde_json::json;

use super::*;

fn decode(events: &[Value]) -> Result<Vec<Delta>, DecodeError> {
    let mut decoder = AnthropicDecoder::default();
    let mut deltas = VecDeque::new();
    for event in events {
        let block = format!("event: {}\ndata: {event}", event["type"].as_str().unwrap_or_default());
        decoder.frame(block.as_bytes(), &mut deltas)?;
    }
    if !deltas.iter().any(|delta| matches!(delta, Delta::Done { .. })) {
        decoder.end(&mut deltas)?;
    }
    Ok(deltas.into())
}

fn start(index: u64, block: Value) -> Value {
    json!({ "type": "content_block_start", "index": index, "content_block": block })
}

fn delta(index: u64, delta: Value) -> Value {
    json!({ "type": "content_block_delta", "index": index, "delta": delta })
}

fn stop(index: u64) -> Value {
    json!({ "type": "content_block_stop", "index": index })
}

fn opening() -> Value {
    json!({ "type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": [],
        "usage": { "input_tokens": 25, "cache_read_input_tokens": 5, "output_tokens": 1 },
    } })
}

fn closing(reason: &str) -> [Value; 2] {
    [
        json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null }, "usage": { "output_tokens": 15 } }),
        json!({ "type": "message_stop" }),
    ]
}

fn call(index: u32, id: Option<&str>, name: Option<&str>, arguments: &str) -> Delta {
    Delta::ToolCall(ToolCallDelta {
        choice: 0,
        index,
        id: id.map(str::to_owned),
        name: name.map(str::to_owned),
        arguments: arguments.to_owned(),
    })
}

fn finish(reason: FinishReason) -> Delta {
    Delta::Finish { choice: 0, reason }
}

const DONE: Delta = Delta::Done {
    usage: Some(Usage {
        prompt_tokens: 30,
        completion_tokens: 15,
        cached_tokens: Some(5),
        reasoning_tokens: None,
        load_time: None,
    }),
};

#[test]
fn thoughts_and_text_come_in_order_with_the_last_usage() {
    let [message_delta, message_stop] = closing("end_turn");
    let deltas = decode(&[
        opening(),
        json!({ "type": "ping" }),
        start(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
        delta(0, json!({ "type": "thinking_delta", "thinking": "hm" })),
        delta(0, json!({ "type": "signature_delta", "signature": "EqQB" })),
        stop(0),
        start(1, json!({ "type": "text", "text": "" })),
        delta(1, json!({ "type": "text_delta", "text": "Hé" })),
        json!({ "type": "brand_new", "index": "seven", "delta": 7 }),
        delta(1, json!({ "type": "text_delta", "text": "llo\n" })),
        stop(1),
        message_delta,
        message_stop,
    ]);
    let expected = vec![
        Delta::Reasoning { choice: 0, text: "hm".into() },
        Delta::ReasoningSeal { choice: 0, seal: ReasoningSeal::Signature("EqQB".into()) },
        Delta::text("Hé"),
        Delta::text("llo\n"),
        finish(FinishReason::Stop),
        DONE,
    ];
    assert_eq!(deltas, Ok(expected));
}

#[test]
fn calls_are_counted_among_calls_and_always_have_arguments() {
    let [message_delta, message_stop] = closing("tool_use");
    let fragment = |index, json| delta(index, json!({ "type": "input_json_delta", "partial_json": json }));
    let deltas = decode(&[
        opening(),
        start(0, json!({ "type": "text", "text": "Let me see." })),
        stop(0),
        start(1, json!({ "type": "tool_use", "id": "t1", "name": "weather", "input": {} })),
        fragment(1, ""),
        fragment(1, "{\"city\":"),
        fragment(1, "\"Rome\"}"),
        stop(1),
        start(2, json!({ "type": "server_tool_use", "id": "s1", "name": "web_search", "input": {} })),
        fragment(2, "{\"query\":\"x\"}"),
        stop(2),
        start(3, json!({ "type": "tool_use", "id": "t2", "name": "now", "input": {} })),
        fragment(3, ""),
        stop(3),
        start(4, json!({ "type": "tool_use", "id": "t3", "name": "add", "input": { "a": 1 } })),
        stop(4),
        message_delta,
        message_stop,
    ]);
    let expected = vec![
        Delta::text("Let me see."),
        call(0, Some("t1"), Some("weather"), ""),
        call(0, None, None, "{\"city\":"),
        call(0, None, None, "\"Rome\"}"),
        call(1, Some("t2"), Some("now"), ""),
        call(1, None, None, "{}"),
        call(2, Some("t3"), Some("add"), "{\"a\":1}"),
        finish(FinishReason::ToolCalls),
        DONE,
    ];
    assert_eq!(deltas, Ok(expected));
}

#[test]
fn a_stream_without_its_last_event_is_incomplete() {
    let text = delta(0, json!({ "type": "text_delta", "text": "half" }));
    let [message_delta, message_stop] = closing("end_turn");
    for cut in [
        vec![opening()],
        vec![opening(), text.clone()],
        vec![opening(), text.clone(), message_delta],
        vec![opening(), text, message_stop],
    ] {
        assert_eq!(decode(&cut), Err(DecodeError::Incomplete), "{cut:?}");
    }
}

#[test]
fn errors_have_the_status_that_their_kind_means() {
    for (kind, status, code) in [
        ("overloaded_error", Some(529), Some("overloaded_error")),
        ("rate_limit_error", Some(429), None),
        ("invalid_request_error", Some(400), None),
        ("authentication_error", Some(401), Some("authentication_error")),
        ("permission_error", Some(403), Some("permission_error")),
        ("api_error", Some(500), Some("api_error")),
        ("brand_new_error", None, Some("brand_new_error")),
    ] {
        let error = json!({ "type": "error", "error": { "type": kind, "message": "sorry" } });
        let (message, code) = ("sorry".to_owned(), code.map(str::to_owned));
        assert_eq!(decode(&[opening(), error]), Err(DecodeError::Reported { message, code, status }));
    }
    // Without the kind of the event, as proxies send it.
    let error = json!({ "error": { "type": "overloaded_error", "message": "sorry" } });
    let (message, code) = ("sorry".to_owned(), Some("overloaded_error".to_owned()));
    assert_eq!(decode(&[opening(), error]), Err(DecodeError::Reported { message, code, status: None }));
}

#[test]
fn usage_that_never_comes_is_not_invented() {
    let deltas = decode(&[
        json!({ "type": "message_delta", "delta": { "stop_reason": "max_tokens" } }),
        json!({ "type": "message_stop" }),
    ]);
    assert_eq!(deltas, Ok(vec![finish(FinishReason::Length), Delta::Done { usage: None }]));
}

#[test]
fn garbage_is_malformed_and_never_panics() {
    for garbage in [
        "data: {",
        "data: 7",
        "data: {}",
        "data: {\"type\":\"error\"}",
        "data: {\"type\":\"content_block_delta\",\"delta\":7}",
        "data: \u{fffd}",
    ] {
        let refused = AnthropicDecoder::default().frame(garbage.as_bytes(), &mut VecDeque::new());
        assert!(matches!(refused, Err(DecodeError::Malformed(_))), "{garbage}");
    }
}

#[test]
fn what_anthropic_signs_and_hides_is_kept() {
    let mut events = vec![
        opening(),
        start(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
        delta(0, json!({ "type": "thinking_delta", "thinking": "hm" })),
        delta(0, json!({ "type": "signature_delta", "signature": "EqQB" })),
        stop(0),
        start(1, json!({ "type": "redacted_thinking", "data": "Emw" })),
        stop(1),
    ];
    events.extend(closing("end_turn"));
    let sealed = |seal| Delta::ReasoningSeal { choice: 0, seal };
    assert_eq!(
        decode(&events).unwrap(),
        [
            Delta::Reasoning { choice: 0, text: "hm".into() },
            sealed(ReasoningSeal::Signature("EqQB".into())),
            sealed(ReasoningSeal::Redacted("Emw".into())),
            finish(FinishReason::Stop),
            DONE,
        ]
    );
}

#[test]
fn the_stop_sequence_is_told() {
    let events = [
        opening(),
        json!({ "type": "message_delta", "delta": { "stop_reason": "stop_sequence", "stop_sequence": "END" }, "usage": { "output_tokens": 15 } }),
        json!({ "type": "message_stop" }),
    ];
    assert_eq!(decode(&events).unwrap(), [finish(FinishReason::StopSequence("END".into())), DONE]);
}
