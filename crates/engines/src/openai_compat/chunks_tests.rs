use super::super::answer::read;
use super::*;

fn decode(answers: u32, blocks: &[&str]) -> Result<Vec<Delta>, DecodeError> {
    let mut chunks = ChatChunkDecoder::new(answers);
    let mut deltas = VecDeque::new();
    for block in blocks {
        chunks.frame(block.as_bytes(), &mut deltas)?;
    }
    if !deltas.iter().any(|delta| matches!(delta, Delta::Done { .. })) {
        chunks.end(&mut deltas)?;
    }
    Ok(deltas.into())
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

const STOP: Delta = Delta::Finish { choice: 0, reason: FinishReason::Stop };
const DONE: Delta = Delta::Done { usage: None };

#[test]
fn text_thought_and_usage_come_in_order() {
    let deltas = decode(
        1,
        &[
            r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}"#,
            ": keep-alive",
            r#"data: {"choices":[{"index":0,"delta":{"content":"Hé\n"},"finish_reason":null}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
            r#"data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":1}}}"#,
            "data: [DONE]",
        ],
    );
    let usage = Usage {
        prompt_tokens: 4,
        completion_tokens: 2,
        cached_tokens: Some(3),
        reasoning_tokens: Some(1),
        load_time: None,
    };
    let expected = vec![
        Delta::Reasoning { choice: 0, text: "hm".into() },
        Delta::text("Hé\n"),
        STOP,
        Delta::Done { usage: Some(usage) },
    ];
    assert_eq!(deltas, Ok(expected));
}

#[test]
fn what_was_thought_is_counted_where_the_engine_counts_it() {
    for (usage, expected) in [
        (r#"{"completion_tokens_details":{"reasoning_tokens":3}}"#, Some(3)),
        (r#"{"completion_tokens_details":{"reasoning_tokens":0}}"#, Some(0)),
        (r#"{"reasoning_tokens":5,"completion_tokens_details":null}"#, Some(5)),
        (r#"{"reasoning_tokens":0,"completion_tokens_details":null}"#, None),
        ("{}", None),
    ] {
        let finish = r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
        let counted = format!(r#"data: {{"choices":[],"usage":{usage}}}"#);
        let deltas = decode(1, &[finish, &counted, "data: [DONE]"]).unwrap();
        let usage = Usage { reasoning_tokens: expected, ..Usage::default() };
        assert_eq!(deltas, [STOP, Delta::Done { usage: Some(usage) }]);
    }
}

#[test]
fn what_was_thought_is_counted_once_wherever_the_provider_counts_it() {
    for (total, expected) in [(374, 95), (285, 6), (0, 6)] {
        let usage = format!(
            r#"{{"prompt_tokens":279,"completion_tokens":6,"total_tokens":{total},"completion_tokens_details":{{"reasoning_tokens":89}}}}"#
        );
        let usage = Usage::from(serde_json::from_str::<WireUsage>(&usage).unwrap());
        assert_eq!((usage.completion_tokens, usage.reasoning_tokens), (expected, Some(89)), "{total}");
    }
}

#[test]
fn reasoning_that_a_provider_sealed_passes_a_proxy() {
    let signed = r#""thinking_blocks":[{"type":"thinking","thinking":"","signature":"s1"}]"#;
    let hidden = r#""thinking_blocks":[{"type":"redacted_thinking","data":"d"}]"#;
    let deltas = decode(
        1,
        &[
            r#"data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm","thinking_blocks":[{"type":"thinking","thinking":"hm","signature":""}]}}]}"#,
            &format!(
                r#"data: {{"choices":[{{"index":0,"delta":{{"content":"","reasoning_content":"",{signed}}}}}]}}"#
            ),
            &format!(r#"data: {{"choices":[{{"index":0,"delta":{{"content":"",{hidden}}}}}]}}"#),
            r#"data: {"choices":[{"index":0,"delta":{"content":"4"}}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
            "data: [DONE]",
        ],
    );
    let seal = |seal| Delta::ReasoningSeal { choice: 0, seal };
    let expected = vec![
        Delta::Reasoning { choice: 0, text: "hm".into() },
        seal(ReasoningSeal::Signature("s1".into())),
        seal(ReasoningSeal::Redacted("d".into())),
        Delta::text("4"),
        STOP,
        DONE,
    ];
    assert_eq!(deltas, Ok(expected));

    let whole = format!(
        r#"{{"choices":[{{"message":{{"content":"4","reasoning_content":"hm",{}}},"finish_reason":"stop"}}]}}"#,
        signed.replace(r#""thinking":"""#, r#""thinking":"hm""#)
    );
    let answer = read(whole.as_bytes(), "m").unwrap().answer;
    let sealed = SealedReasoning::Signed { text: "hm".into(), signature: "s1".into() };
    assert_eq!((answer.reasoning.as_deref(), answer.sealed_reasoning), (Some("hm"), vec![sealed]));
}

/// Mistral sends the thoughts as lists, their end and the first text in one list or two, and then plain texts.
#[test]
fn content_in_parts_is_reasoning_and_text() {
    let chunk = |content: &str| {
        format!(r#"data: {{"choices":[{{"index":0,"delta":{{"content":{content}}},"finish_reason":null}}]}}"#)
    };
    let deltas = decode(
        1,
        &[
            &chunk("\"\""),
            &chunk(r#"[{"type":"thinking","thinking":[{"type":"text","text":"2 and "}]}]"#),
            &chunk(
                r#"[{"type":"thinking","thinking":[{"type":"text","text":"2 m"},{"type":"reference","reference_ids":[1]},{"type":"text","text":"ake 4"}],"closed":true},{"type":"text","text":"It "}]"#,
            ),
            &chunk(r#"[{"type":"text","text":"is"}]"#),
            &chunk("[]"),
            &chunk(r#"" 4.""#),
            r#"data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}"#,
            "data: [DONE]",
        ],
    );
    let thought = |text: &str| Delta::Reasoning { choice: 0, text: text.into() };
    let expected = vec![
        thought("2 and "),
        thought("2 make 4"),
        Delta::text("It "),
        Delta::text("is"),
        Delta::text(" 4."),
        STOP,
        DONE,
    ];
    assert_eq!(deltas, Ok(expected));

    let whole = br#"{"choices":[{"index":0,"message":{"role":"assistant","content":[
        {"type":"thinking","thinking":[{"type":"text","text":"2 and 2"}]},{"type":"text","text":"It is 4."}]},
        "finish_reason":"stop"}]}"#;
    let answer = read(whole, "magistral-medium-latest").unwrap().answer;
    assert_eq!((answer.reasoning.as_deref(), answer.content.as_str()), (Some("2 and 2"), "It is 4."));
}

#[test]
fn a_text_is_not_copied_from_its_chunk() {
    let chunk = r#"{"choices":[{"delta":{"content":"Hi"}}]}"#;
    let chunk: Chunk<'_> = serde_json::from_str(chunk).unwrap();
    let choice = &chunk.choices.as_ref().unwrap()[0];
    let content = choice.delta.as_ref().unwrap().content.as_ref();
    assert!(matches!(content, Some(MessageContent::Text(Text(Cow::Borrowed("Hi"))))));
}

#[test]
fn an_answer_ends_once_although_its_reason_comes_twice() {
    let finish = r#"data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}"#;
    let again = r#"data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}],"usage":{}}"#;
    let deltas = decode(1, &[finish, again, "data: [DONE]"]);
    assert_eq!(deltas, Ok(vec![STOP, Delta::Done { usage: Some(Usage::default()) }]));
}

#[test]
fn an_error_beside_an_answer_is_the_error() {
    let error = r#""error":{"code":502,"message":"the provider is down"}"#;
    for body in [
        format!(r#"{{"choices":[],{error}}}"#),
        format!(r#"{{"choices":[{{"message":{{"content":"half"}},"finish_reason":"error",{error}}}]}}"#),
    ] {
        let reported =
            DecodeError::Reported { message: "the provider is down".into(), code: None, status: Some(502) };
        assert_eq!(read(body.as_bytes(), "m"), Err(reported), "{body}");
    }
    let fine =
        r#"{"error":null,"choices":[{"message":{"content":"4"},"finish_reason":"stop","error":null}]}"#;
    assert_eq!(read(fine.as_bytes(), "m").unwrap().answer.content, "4");
}

#[test]
fn calls_keep_their_index_and_only_begin_once() {
    let deltas = decode(
        1,
        &[
            r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}}]}"#,
            r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]}"#,
            r#"data: {"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}]}}]}"#,
            r#"data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
            "data: [DONE]",
        ],
    );
    let expected = vec![
        call(0, Some("a"), Some("f"), ""),
        call(0, None, None, "{}"),
        call(1, Some("b"), Some("g"), "{}"),
        Delta::Finish { choice: 0, reason: FinishReason::ToolCalls },
        DONE,
    ];
    assert_eq!(deltas, Ok(expected));
}

#[test]
fn calls_without_index_or_id_get_them() {
    let deltas = decode(1, &[
        r#"data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{\"a\":"}}]}}]}"#,
        r#"data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"1}"}}]}}]}"#,
        r#"data: {"choices":[{"delta":{"tool_calls":[{"name":"g","arguments":{}}]},"finish_reason":"tool_calls"}]}"#,
        "data: [DONE]",
    ])
    .unwrap();
    let calls: Vec<(u32, bool, Option<&str>, &str)> = deltas
        .iter()
        .filter_map(|delta| match delta {
            Delta::ToolCall(call) => {
                Some((call.index, call.id.is_some(), call.name.as_deref(), call.arguments.as_str()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(calls, [(0, true, Some("f"), "{\"a\":"), (0, false, None, "1}"), (1, true, Some("g"), "{}")]);
}

#[test]
fn calls_with_the_same_index_are_distinguished_by_their_ids() {
    let deltas = decode(
        1,
        &[
            r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}}]}"#,
            r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"1}"}}]}}]}"#,
            r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{\"y\":"}}]}}]}"#,
            r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"2}"}}]}}]}"#,
            r#"data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
            "data: [DONE]",
        ],
    );
    let expected = vec![
        call(0, Some("a"), Some("f"), "{\"x\":"),
        call(0, None, None, "1}"),
        call(1, Some("b"), Some("g"), "{\"y\":"),
        call(1, None, None, "2}"),
        Delta::Finish { choice: 0, reason: FinishReason::ToolCalls },
        DONE,
    ];
    assert_eq!(deltas, Ok(expected));
}

#[test]
fn an_id_that_changes_with_every_piece_begins_no_call() {
    let deltas = decode(
        1,
        &[
            r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}}]}"#,
            r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a2","function":{"arguments":"{}"}}]}}]}"#,
            r#"data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
            "data: [DONE]",
        ],
    );
    let expected = vec![
        call(0, Some("a"), Some("f"), ""),
        call(0, None, None, "{}"),
        Delta::Finish { choice: 0, reason: FinishReason::ToolCalls },
        DONE,
    ];
    assert_eq!(deltas, Ok(expected));
}

#[test]
fn an_end_without_a_finish_is_incomplete() {
    let text = r#"data: {"choices":[{"index":0,"delta":{"content":"half"}}]}"#;
    assert_eq!(decode(1, &[text]), Err(DecodeError::Incomplete));
    assert_eq!(decode(1, &[text, "data: [DONE]"]), Err(DecodeError::Incomplete));
    let other = r#"data: {"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}"#;
    assert_eq!(decode(2, &[text, other, "data: [DONE]"]), Err(DecodeError::Incomplete));
}

#[test]
fn an_end_without_done_is_complete_once_every_answer_is_finished() {
    let finish = |index: u32| {
        format!(r#"data: {{"choices":[{{"index":{index},"delta":{{}},"finish_reason":"stop"}}]}}"#)
    };
    assert_eq!(decode(1, &[&finish(0)]), Ok(vec![STOP, DONE]));
    assert_eq!(decode(2, &[&finish(0)]), Err(DecodeError::Incomplete));
    assert!(decode(2, &[&finish(1), &finish(0)]).is_ok());
}

#[test]
fn errors_in_the_stream_are_reported_in_every_shape() {
    let reported = |message: &str, code: Option<&str>, status| {
        Err(DecodeError::Reported { message: message.into(), code: code.map(str::to_owned), status })
    };
    assert_eq!(
        decode(1, &[r#"data: {"error":{"message":"out of memory","code":500}}"#]),
        reported("out of memory", None, Some(500))
    );
    assert_eq!(
        decode(1, &[r#"data: {"object":"error","message":"aborted","code":400}"#]),
        reported("aborted", None, Some(400))
    );
    assert_eq!(
        decode(1, &[r#"error: {"error":{"code":400,"message":"too long"}}"#]),
        reported("too long", None, Some(400))
    );
    // Together with choices, after text, and with a code.
    let text = r#"data: {"choices":[{"index":0,"delta":{"content":"half"}}]}"#;
    assert_eq!(
        decode(
            1,
            &[
                text,
                r#"data: {"error":{"message":"cut off","code":"content_filter"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
            ]
        ),
        reported("cut off", Some("content_filter"), None)
    );
    // Plain JSON instead of events, on one line or several.
    for bare in [
        r#"{"error":{"message":"no GPU","type":"unavailable_error"}}"#,
        "{\n  \"error\": {\n \"message\": \"no GPU\", \"type\": \"unavailable_error\"}}",
    ] {
        assert_eq!(decode(1, &[bare]), reported("no GPU", Some("unavailable_error"), None));
    }
}

#[test]
fn garbage_is_malformed_and_never_panics() {
    for garbage in
        ["data: {", "data: 7", "data: null", "data: {}", "data: \u{fffd}", "data: {\"choices\":[7]}"]
    {
        assert!(matches!(decode(1, &[garbage]), Err(DecodeError::Malformed(_))), "{garbage}");
    }
}

#[test]
fn probabilities_stay_with_their_text() {
    let deltas = decode(1, &[
        r#"data: {"choices":[{"delta":{"content":"a"},"logprobs":{"content":[{"token":"a","logprob":-0.5}]}}]}"#,
        r#"data: {"choices":[{"delta":{},"finish_reason":"stop","logprobs":null}]}"#,
        "data: [DONE]",
    ])
    .unwrap();
    let logprobs = Box::new(serde_json::json!({ "content": [{ "token": "a", "logprob": -0.5 }] }));
    assert_eq!(deltas[0], Delta::Text(TextDelta { choice: 0, text: "a".into(), logprobs: Some(logprobs) }));
}

#[test]
fn an_empty_reason_in_every_chunk_ends_nothing() {
    let deltas = decode(
        1,
        &[
            r#"data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":""}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":""}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"eos"}]}"#,
            "data: [DONE]",
        ],
    );
    assert_eq!(deltas, Ok(vec![Delta::text("a"), Delta::text("b"), STOP, Delta::Done { usage: None }]));
}

#[test]
fn an_answer_with_empty_reasons_only_ends_with_the_stream() {
    let text = r#"data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":""}]}"#;
    assert_eq!(
        decode(1, &[text, text, "data: [DONE]"]),
        Ok(vec![Delta::text("a"), Delta::text("a"), STOP, DONE])
    );
    let called = r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]},"finish_reason":""}]}"#;
    let deltas = decode(1, &[called, "data: [DONE]"]).expect("it is complete");
    assert_eq!(deltas[1], Delta::Finish { choice: 0, reason: FinishReason::ToolCalls });
    // The connection may have broken.
    assert_eq!(decode(1, &[text]), Err(DecodeError::Incomplete));
}

#[test]
fn a_whole_answer_without_a_reason_is_complete() {
    let call = r#"{"function":{"name":"f","arguments":"{}"}}"#;
    for (message, reason, expected) in [
        (r#"{"content":"a"}"#.to_owned(), "null", FinishReason::Stop),
        (r#"{"content":"a"}"#.to_owned(), r#""""#, FinishReason::Stop),
        (format!(r#"{{"tool_calls":[{call}]}}"#), "null", FinishReason::ToolCalls),
        (r#"{"content":"a"}"#.to_owned(), r#""abort""#, FinishReason::Length),
    ] {
        let body = format!(r#"{{"choices":[{{"message":{message},"finish_reason":{reason}}}]}}"#);
        let generation = read(body.as_bytes(), "m").expect("it is complete");
        assert_eq!(generation.answer.finish_reason, expected, "{body}");
    }
    assert!(read(br#"{"choices":[{"message":{},"finish_reason":null}]}"#, "m").is_err());
}
