use hob_core::{Sampling, ToolChoice, ToolDefinition};
use hob_testkit::Transcript;
use proptest::prelude::*;

use super::*;
use crate::wire::frames::Frames;

fn asking() -> GenerateRequest {
    GenerateRequest { model: "m".into(), ..GenerateRequest::default() }
}

fn asking_for_probabilities() -> GenerateRequest {
    GenerateRequest { sampling: Sampling { logprobs: true, ..Sampling::default() }, ..asking() }
}

/// Decodes a stream that arrives in these packets. The generated call ids are replaced by fixed ones.
fn decode(request: &GenerateRequest, packets: &[&[u8]]) -> Result<Vec<Delta>, DecodeError> {
    let mut frames = Frames::new(OllamaDecoder::FRAMING);
    let mut lines = OllamaDecoder::new(request);
    let mut deltas = VecDeque::new();
    for packet in packets {
        frames.push(packet).unwrap();
        while let Some(frame) = frames.next_frame() {
            lines.frame(frame, &mut deltas)?;
        }
    }
    if !matches!(deltas.back(), Some(Delta::Done { .. })) {
        lines.end(&mut deltas)?;
    }
    for delta in &mut deltas {
        if let Delta::ToolCall(ToolCallDelta { id: Some(id), index, .. }) = delta {
            assert!(id.starts_with("call_"), "{id}");
            *id = format!("call_{index}");
        }
    }
    Ok(deltas.into())
}

/// A request that forces a call of one of these tools, or of the named one.
fn demanding(names: &[&str], choice: ToolChoice) -> GenerateRequest {
    let tool = |name: &&str| ToolDefinition {
        name: (*name).to_owned(),
        description: None,
        parameters: None,
        strict: None,
    };
    GenerateRequest { tools: names.iter().map(tool).collect(), tool_choice: Some(choice), ..asking() }
}

fn line(content: &str, end: &str) -> Vec<u8> {
    let mut line =
        serde_json::json!({ "message": { "role": "assistant", "content": content }, "done": false });
    if !end.is_empty() {
        line["done"] = json!(true);
        line["done_reason"] = json!(end);
    }
    format!("{line}\n").into_bytes()
}

/// Names and arguments of all calls, the text, and the finish reason.
fn outcome(deltas: Vec<Delta>) -> (Vec<(String, String)>, String, &'static str) {
    let mut collector = Collector::default();
    deltas.into_iter().for_each(|delta| collector.push(delta));
    let answer = collector.finish("m").unwrap().answer;
    assert!(answer.tool_calls.iter().all(|call| call.id.starts_with("call_")));
    let calls = answer.tool_calls.into_iter().map(|call| (call.name, call.arguments)).collect();
    let end = match answer.finish_reason {
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::Length => "length",
        _ => "other",
    };
    (calls, answer.content, end)
}

#[test]
fn a_named_tool_is_called_with_the_output_of_the_model() {
    let request = demanding(&["now", "weather"], ToolChoice::Function("weather".into()));
    let lines = [line("{\"city\":", ""), line(" \"Rome\"}", ""), line("", "stop")];
    let packets: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
    let deltas = decode(&request, &packets).unwrap();
    assert!(
        matches!(&deltas[0], Delta::ToolCall(call) if call.arguments == "{\"city\":"),
        "streamed as it comes"
    );
    let call = ("weather".to_owned(), "{\"city\": \"Rome\"}".to_owned());
    assert_eq!(outcome(deltas), (vec![call], String::new(), "tool_calls"));
}

#[test]
fn one_of_several_tools_is_called_by_the_name_the_model_writes() {
    let request = demanding(&["now", "weather"], ToolChoice::Required);
    let lines = [line("{\"name\": \"weather\", ", ""), line("\"arguments\": {\"city\": \"Rome\"}}", "stop")];
    let packets: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
    let call = ("weather".to_owned(), "{\"city\":\"Rome\"}".to_owned());
    assert_eq!(outcome(decode(&request, &packets).unwrap()), (vec![call], String::new(), "tool_calls"));
    // Complete answers follow the same rules.
    let whole = line("{\"name\":\"weather\",\"arguments\":{\"city\":\"Rome\"}}", "stop");
    let answer = read_whole(&whole, &request).unwrap().answer;
    assert_eq!((answer.tool_calls[0].name.as_str(), answer.content.as_str()), ("weather", ""));
    assert_eq!(answer.finish_reason, FinishReason::ToolCalls);
}

#[test]
fn a_required_call_that_is_incomplete_or_missing_is_an_error() {
    let several = demanding(&["now", "weather"], ToolChoice::Required);
    let cut = line("{\"name\": \"wea", "length");
    assert_eq!(
        outcome(decode(&several, &[&cut]).unwrap()),
        (Vec::new(), "{\"name\": \"wea".to_owned(), "length")
    );
    let one = demanding(&["weather"], ToolChoice::Required);
    let call = ("weather".to_owned(), "{\"ci".to_owned());
    assert_eq!(
        outcome(decode(&one, &[&line("{\"ci", "length")]).unwrap()),
        (vec![call], String::new(), "length")
    );
    for (request, said) in [(&several, "Sunny."), (&several, ""), (&one, ""), (&one, "Sunny.")] {
        assert!(matches!(decode(request, &[&line(said, "stop")]), Err(DecodeError::Malformed(_))), "{said}");
    }
}

#[test]
fn further_calls_are_dropped_without_parallel_calls() {
    let line = br#"{"message":{"content":"","tool_calls":[{"function":{"name":"f","arguments":{}}},{"function":{"name":"g","arguments":{}}}]},"done":true,"done_reason":"stop"}"#;
    let request = GenerateRequest { parallel_tool_calls: Some(false), ..asking() };
    let generation = read_whole(line, &request).unwrap();
    let names: Vec<&str> = generation.answer.tool_calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["f"]);
    assert_eq!(generation.answer.finish_reason, FinishReason::ToolCalls);
}

const STOP: Delta = Delta::Finish { choice: 0, reason: FinishReason::Stop };

#[test]
fn thoughts_text_and_usage_come_in_order() {
    let deltas = decode(
        &asking(),
        &[concat!(
            r#"{"message":{"role":"assistant","content":"","thinking":"hm"},"done":false}"#,
            "\n",
            r#"{"message":{"role":"assistant","content":"Hé"},"done":false}"#,
            "\n",
            r#"{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","eval_count":2}"#,
            "\n",
        )
        .as_bytes()],
    );
    let usage = Usage {
        prompt_tokens: 0,
        completion_tokens: 2,
        cached_tokens: None,
        reasoning_tokens: None,
        load_time: None,
    };
    let expected = vec![
        Delta::Reasoning { choice: 0, text: "hm".into() },
        Delta::text("Hé"),
        STOP,
        Delta::Done { usage: Some(usage) },
    ];
    assert_eq!(deltas, Ok(expected));
}

#[test]
fn an_older_version_that_gives_no_reason_and_no_counts_has_stopped() {
    let deltas = decode(&asking(), &[b"{\"done\":true}\n"]);
    assert_eq!(deltas, Ok(vec![STOP, Delta::Done { usage: None }]));
}

#[test]
fn several_calls_get_an_index_and_an_id_each() {
    let line = br#"{"message":{"content":"","tool_calls":[{"function":{"name":"f","arguments":{"b":1,"a":2}}},{"id":"own","function":{"index":1,"name":"g","arguments":{}}}]},"done":true,"done_reason":"stop"}"#;
    let generation = read_whole(line, &asking()).unwrap();
    let calls: Vec<(&str, &str)> = generation
        .answer
        .tool_calls
        .iter()
        .map(|call| (call.name.as_str(), call.arguments.as_str()))
        .collect();
    assert_eq!(calls, [("f", r#"{"b":1,"a":2}"#), ("g", "{}")]);
    assert!(generation.answer.tool_calls[0].id.starts_with("call_"));
    assert_eq!(generation.answer.tool_calls[1].id, "own");
    assert_eq!(generation.answer.finish_reason, FinishReason::ToolCalls);
}

#[test]
fn an_end_without_done_is_incomplete() {
    let text = b"{\"message\":{\"content\":\"half\"},\"done\":false}\n";
    assert_eq!(decode(&asking(), &[text]), Err(DecodeError::Incomplete));
    assert_eq!(read_whole(text, &asking()), Err(DecodeError::Incomplete));
}

#[test]
fn an_error_in_the_stream_is_reported() {
    let reported = Err(DecodeError::Reported { message: "out of memory".into(), code: None, status: None });
    assert_eq!(decode(&asking(), &[b"{\"error\":\"out of memory\"}\n"]), reported);
}

#[test]
fn probabilities_take_the_form_that_clients_know() {
    let line = br#"{"message":{"content":"a"},"logprobs":[{"token":"a","logprob":-0.5}],"done":true}"#;
    let generation = read_whole(line, &asking_for_probabilities()).unwrap();
    assert_eq!(
        generation.answer.logprobs,
        Some(json!({ "content": [{ "token": "a", "logprob": -0.5, "bytes": null, "top_logprobs": [] }] }))
    );
}

#[test]
fn a_version_without_probabilities_is_found_out() {
    let line = br#"{"message":{"content":"a"},"done":true}"#;
    assert!(matches!(
        read_whole(line, &asking_for_probabilities()),
        Err(DecodeError::Unsupported { field: "logprobs", .. })
    ));
}

#[test]
fn garbage_is_malformed_and_never_panics() {
    for garbage in ["{", "7", "null", "{}", "{\"message\":7}", "\u{fffd}"] {
        let line = format!("{garbage}\n");
        assert!(matches!(decode(&asking(), &[line.as_bytes()]), Err(DecodeError::Malformed(_))), "{garbage}");
    }
}

proptest! {
    #[test]
    fn any_split_of_a_recorded_stream_gives_the_same_deltas(
        name in prop_oneof![Just("ollama/chat_stream"), Just("ollama/chat_tools_stream")],
        splits in proptest::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let body = Transcript::load(name).body.into_bytes();
        let mut at: Vec<usize> = splits.iter().map(|split| split.index(body.len())).collect();
        at.extend([0, body.len()]);
        at.sort_unstable();
        let packets: Vec<&[u8]> = at.windows(2).map(|pair| &body[pair[0]..pair[1]]).collect();
        let whole = decode(&asking(), &[&body]);
        prop_assert!(whole.is_ok());
        prop_assert_eq!(decode(&asking(), &packets), whole);
    }
}
