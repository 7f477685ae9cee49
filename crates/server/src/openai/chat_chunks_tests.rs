use hob_core::{EngineError, FinishReason};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn chunks(include_usage: bool) -> ChatChunks {
    ChatChunks::new("chatcmpl-1", 7, "m", include_usage)
}

fn rendered(mut chunks: ChatChunks, deltas: &[Delta]) -> String {
    let mut out = Vec::new();
    for delta in deltas {
        chunks.push(delta, &mut out);
    }
    String::from_utf8(out).unwrap()
}

fn finish(choice: u32, reason: FinishReason) -> Delta {
    Delta::Finish { choice, reason }
}

const DONE: Delta = Delta::Done { usage: None };

fn usage() -> Usage {
    Usage {
        prompt_tokens: 3,
        completion_tokens: 2,
        cached_tokens: Some(1),
        reasoning_tokens: Some(1),
        load_time: None,
    }
}

/// The events of a stream: every line is one, and every one is JSON but for `[DONE]`.
fn events(text: &str) -> Vec<Value> {
    assert!(text.ends_with("\n\n"), "{text:?}");
    text.trim_end_matches('\n')
        .split("\n\n")
        .map(|event| {
            let data = event.strip_prefix("data: ").expect(event);
            assert!(!data.contains(['\n', '\r']), "{data:?}");
            match data {
                "[DONE]" => Value::from("[DONE]"),
                json => serde_json::from_str(json).expect(json),
            }
        })
        .collect()
}

#[test]
fn text_is_role_pieces_finish_and_done() {
    let deltas = [Delta::text("Hel"), Delta::text("lo"), finish(0, FinishReason::Stop), DONE];
    let text = rendered(chunks(false), &deltas);
    assert!(
        text.ends_with("}]}\n\ndata: [DONE]\n\n"),
        "a snapshot does not see the last line feeds: {text:?}"
    );
    insta::assert_snapshot!(text, @r#"
    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}]}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

    data: [DONE]
    "#);
}

#[test]
fn usage_comes_last_and_without_choices_when_it_was_asked_for() {
    let deltas = [Delta::text("Hi"), finish(0, FinishReason::Length), Delta::Done { usage: Some(usage()) }];
    insta::assert_snapshot!(rendered(chunks(true), &deltas), @r#"
    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"length"}]}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"prompt_tokens_details":{"cached_tokens":1},"completion_tokens_details":{"reasoning_tokens":1}}}

    data: [DONE]
    "#);
}

#[test]
fn usage_without_counts_is_zero() {
    let text = rendered(chunks(true), &[finish(0, FinishReason::Stop), DONE]);
    assert_eq!(
        events(&text)[2]["usage"],
        json!({ "prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0 })
    );
}

#[test]
fn usage_is_sent_only_on_request() {
    let deltas = [finish(0, FinishReason::Stop), Delta::Done { usage: Some(usage()) }];
    assert!(!rendered(chunks(false), &deltas).contains("usage"));
}

#[test]
fn tool_calls_come_in_fragments_with_one_id_each() {
    let piece = |index, id: Option<&str>, name: Option<&str>, arguments: &str| {
        Delta::ToolCall(ToolCallDelta {
            choice: 0,
            index,
            id: id.map(str::to_owned),
            name: name.map(str::to_owned),
            arguments: arguments.into(),
        })
    };
    let deltas = [
        piece(0, Some("c1"), Some("add"), ""),
        piece(0, None, None, "{\"a\":"),
        piece(0, None, None, "1}"),
        piece(1, Some("c2"), Some("now"), "{}"),
        finish(0, FinishReason::ToolCalls),
        DONE,
    ];
    insta::assert_snapshot!(rendered(chunks(false), &deltas), @r#"
    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"add","arguments":""}}]},"finish_reason":null}]}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]},"finish_reason":null}]}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]},"finish_reason":null}]}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"c2","type":"function","function":{"name":"now","arguments":"{}"}}]},"finish_reason":null}]}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

    data: [DONE]
    "#);
}

#[test]
fn thoughts_stay_apart_from_the_answer() {
    let thought = Delta::Reasoning { choice: 0, text: "Hm.".into() };
    let deltas = [thought, Delta::text("42"), finish(0, FinishReason::Stop), DONE];
    insta::assert_snapshot!(rendered(chunks(false), &deltas), @r#"
    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"reasoning_content":"Hm."},"finish_reason":null}]}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"42"},"finish_reason":null}]}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

    data: [DONE]
    "#);
}

#[test]
fn probabilities_go_with_their_text() {
    let text = Delta::Text(TextDelta {
        choice: 0,
        text: "Hi".into(),
        logprobs: Some(Box::new(json!({ "content": [{ "token": "Hi", "logprob": -0.5 }] }))),
    });
    insta::assert_snapshot!(rendered(chunks(false), &[text, finish(0, FinishReason::Stop), DONE]), @r#"
    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"logprobs":{"content":[{"token":"Hi","logprob":-0.5}]},"finish_reason":null}]}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

    data: [DONE]
    "#);
}

#[test]
fn several_answers_are_introduced_and_finished_each() {
    let of = |choice, text: &str| Delta::Text(TextDelta { choice, text: text.into(), logprobs: None });
    let deltas =
        [of(1, "b"), of(0, "a"), finish(0, FinishReason::Stop), finish(1, FinishReason::Length), DONE];
    insta::assert_snapshot!(rendered(chunks(false), &deltas), @r#"
    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":1,"delta":{"role":"assistant"},"finish_reason":null}]}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":1,"delta":{"content":"b"},"finish_reason":null}]}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":1,"delta":{},"finish_reason":"length"}]}

    data: [DONE]
    "#);
}

#[test]
fn an_answer_of_nothing_still_has_its_role() {
    let deltas = [finish(0, FinishReason::Stop), DONE];
    insta::assert_snapshot!(rendered(chunks(false), &deltas), @r#"
    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

    data: [DONE]
    "#);
}

#[test]
fn a_reason_that_only_the_engine_knows_becomes_one_that_clients_know() {
    let reason = FinishReason::Other("so \"it\"\nsays".into());
    let text = rendered(chunks(false), &[finish(0, reason), DONE]);
    assert_eq!(events(&text)[1]["choices"][0]["finish_reason"], "stop");
}

/// What breaks line-based readers, JavaScript or JSON when it is not escaped.
const HOSTILE: &str =
    "\"quotes\" \\ back\r\nlines\n\ndata: [DONE]\n\n \u{2028}\u{2029} \u{0}\u{1b}\u{7f} \u{1f600} </script>";

#[test]
fn hostile_text_cannot_break_out_of_its_event() {
    let call = ToolCallDelta {
        id: Some(HOSTILE.into()),
        name: Some(HOSTILE.into()),
        arguments: HOSTILE.into(),
        ..ToolCallDelta::default()
    };
    let thought = Delta::Reasoning { choice: 0, text: HOSTILE.into() };
    let deltas = [Delta::text(HOSTILE), thought, Delta::ToolCall(call), finish(0, FinishReason::Stop), DONE];
    let events = events(&rendered(ChatChunks::new(HOSTILE, 7, HOSTILE, false), &deltas));
    let deltas: Vec<&Value> = events.iter().map(|event| &event["choices"][0]["delta"]).collect();
    assert_eq!(events.len(), 6);
    assert_eq!((&events[0]["id"], &events[0]["model"]), (&json!(HOSTILE), &json!(HOSTILE)));
    assert_eq!(*deltas[1], json!({ "content": HOSTILE }));
    assert_eq!(*deltas[2], json!({ "reasoning_content": HOSTILE }));
    let function = json!({ "name": HOSTILE, "arguments": HOSTILE });
    assert_eq!(
        *deltas[3],
        json!({ "tool_calls": [{ "index": 0, "id": HOSTILE, "type": "function", "function": function }] })
    );
    assert_eq!(events[5], "[DONE]");
}

#[test]
fn a_failure_is_one_event_and_never_looks_complete() {
    let mut out = Vec::new();
    let error = EngineError::Interrupted { engine: "vllm".into(), reason: HOSTILE.into() };
    chunks(true).fail(&ApiError::from(error), &mut out);
    let error = json!({
        "message": format!("vllm broke off its answer: {HOSTILE}"),
        "type": "engine_error",
        "param": null,
        "code": "engine_answer_interrupted",
    });
    assert_eq!(events(&String::from_utf8(out).unwrap()), [json!({ "error": error })]);
}

proptest! {
    #[test]
    fn any_text_arrives_as_the_model_wrote_it(texts in proptest::collection::vec(any::<String>(), 0..20)) {
        let mut deltas: Vec<Delta> = texts.iter().map(Delta::text).collect();
        deltas.extend([finish(0, FinishReason::Stop), DONE]);
        let told: String = events(&rendered(chunks(false), &deltas))
            .iter()
            .filter_map(|event| event["choices"][0]["delta"]["content"].as_str())
            .collect();
        prop_assert_eq!(told, texts.concat());
    }
}
