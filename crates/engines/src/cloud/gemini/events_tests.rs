use hob_core::FinishReason;
use serde_json::json;

use super::*;

fn decode(chunks: &[Value]) -> Result<Vec<Delta>, DecodeError> {
    decode_with(GeminiDecoder::default(), chunks)
}

fn decode_with(mut decoder: GeminiDecoder, chunks: &[Value]) -> Result<Vec<Delta>, DecodeError> {
    let mut deltas = VecDeque::new();
    for chunk in chunks {
        decoder.frame(format!("data: {chunk}").as_bytes(), &mut deltas)?;
    }
    decoder.end(&mut deltas)?;
    Ok(deltas.into())
}

fn chunk(index: u32, part: Value, finish_reason: Option<&str>) -> Value {
    json!({ "candidates": [
        { "index": index, "content": { "role": "model", "parts": [part] }, "finishReason": finish_reason }
    ] })
}

fn finish(choice: u32, reason: FinishReason) -> Delta {
    Delta::Finish { choice, reason }
}

const DONE: Delta = Delta::Done { usage: None };

#[test]
fn thoughts_and_text_come_in_order_with_the_last_usage() {
    let mut last = chunk(0, json!({ "text": "llo" }), Some("STOP"));
    last["usageMetadata"] = json!({ "promptTokenCount": 4, "candidatesTokenCount": 2 });
    let mut first = chunk(0, json!({ "text": "hm", "thought": true }), None);
    first["usageMetadata"] = json!({ "promptTokenCount": 4 });
    let deltas = decode(&[first, chunk(0, json!({ "text": "Hé" }), None), last]);
    let usage = Usage {
        prompt_tokens: 4,
        completion_tokens: 2,
        cached_tokens: None,
        reasoning_tokens: None,
        load_time: None,
    };
    let expected = vec![
        Delta::Reasoning { choice: 0, text: "hm".into() },
        Delta::text("Hé"),
        Delta::text("llo"),
        finish(0, FinishReason::Stop),
        Delta::Done { usage: Some(usage) },
    ];
    assert_eq!(deltas, Ok(expected));
}

#[test]
fn calls_in_several_chunks_are_counted_and_keep_their_signature() {
    let call = |id: &str, name: &str| json!({ "id": id, "name": name, "args": { "a": 1 } });
    let deltas = decode(&[
        chunk(0, json!({ "functionCall": call("fc-1", "f"), "thoughtSignature": "Ab+/zQ==" }), None),
        chunk(0, json!({ "functionCall": call("fc-2", "g") }), None),
        chunk(0, json!({ "text": "" }), Some("STOP")),
    ]);
    let piece = |index, id: &str, name: &str| {
        Delta::ToolCall(ToolCallDelta {
            choice: 0,
            index,
            id: Some(id.into()),
            name: Some(name.into()),
            arguments: "{\"a\":1}".into(),
        })
    };
    let expected = vec![
        piece(0, "fc-1--thought--Ab-_zQ", "f"),
        piece(1, "fc-2", "g"),
        finish(0, FinishReason::ToolCalls),
        DONE,
    ];
    assert_eq!(deltas, Ok(expected));
}

#[test]
fn calls_of_later_chunks_are_dropped_without_parallel_calls() {
    let call = |name: &str| json!({ "functionCall": { "id": name, "name": name, "args": {} } });
    let request = GenerateRequest { parallel_tool_calls: Some(false), ..GenerateRequest::default() };
    let chunks = [chunk(0, call("f"), None), chunk(0, call("g"), None), chunk(0, call("h"), Some("STOP"))];
    let first = Delta::ToolCall(ToolCallDelta {
        choice: 0,
        index: 0,
        id: Some("f".into()),
        name: Some("f".into()),
        arguments: "{}".into(),
    });
    let deltas = decode_with(GeminiDecoder::new(&request), &chunks);
    assert_eq!(deltas, Ok(vec![first, finish(0, FinishReason::ToolCalls), DONE]));
}

#[test]
fn a_reason_given_with_every_piece_ends_the_answer_once() {
    let deltas = decode(&[
        chunk(0, json!({ "text": "a" }), Some("STOP")),
        chunk(0, json!({ "text": "b" }), Some("STOP")),
        json!({ "usageMetadata": null }),
    ]);
    assert_eq!(deltas, Ok(vec![Delta::text("a"), Delta::text("b"), finish(0, FinishReason::Stop), DONE]));
}

#[test]
fn a_stream_in_which_any_candidate_never_stops_is_incomplete() {
    let half = chunk(0, json!({ "text": "half" }), None);
    let whole = chunk(1, json!({ "text": "whole" }), Some("STOP"));
    for cut in [vec![], vec![half.clone()], vec![half, whole], vec![json!({})]] {
        assert_eq!(decode(&cut), Err(DecodeError::Incomplete), "{cut:?}");
    }
}

#[test]
fn errors_and_blocked_prompts_are_reported() {
    let reported = |message: &str, code: &str, status| {
        Err(DecodeError::Reported { message: message.into(), code: Some(code.into()), status: Some(status) })
    };
    assert_eq!(
        decode(&[json!({ "error": { "code": 503, "message": "overloaded", "status": "UNAVAILABLE" } })]),
        reported("overloaded", "UNAVAILABLE", 503)
    );
    assert_eq!(
        decode(&[json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" } })]),
        reported("the prompt was blocked (PROHIBITED_CONTENT)", "content_filter", 400)
    );
}

#[test]
fn a_bare_error_where_events_were_asked_for_is_reported() {
    let bare = br#"[{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}]"#;
    let refused = GeminiDecoder::default().frame(bare, &mut VecDeque::new());
    let (message, code) = ("slow down".to_owned(), None);
    assert_eq!(refused, Err(DecodeError::Reported { message, code, status: Some(429) }));
}

#[test]
fn garbage_is_malformed_and_never_panics() {
    for garbage in ["data: {", "data: 7", "data: [DONE]", "data: {\"candidates\":7}", "data: \u{fffd}"] {
        let refused = GeminiDecoder::default().frame(garbage.as_bytes(), &mut VecDeque::new());
        assert!(matches!(refused, Err(DecodeError::Malformed(_))), "{garbage}");
    }
}
