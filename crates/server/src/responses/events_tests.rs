use hob_core::AgentStep;
use serde_json::{Value, json};

use super::*;
use crate::responses::echo::{Echo, EchoedFields, EchoedReasoning};
use crate::responses::encrypted_reasoning::{sealed_block, sealed_text};

const SUFFIX: &str = "AAAAAAAAAAAAAAAAAAAAAAAA";

fn echo() -> EchoedFields {
    let echo = Echo {
        background: false,
        conversation: None,
        instructions: None,
        max_output_tokens: None,
        metadata: None,
        parallel_tool_calls: true,
        previous_response_id: None,
        prompt_cache_key: None,
        reasoning: EchoedReasoning { effort: None, summary: None },
        safety_identifier: None,
        service_tier: None,
        temperature: None,
        text: &json!({ "format": { "type": "text" } }),
        tool_choice: &Value::Null,
        tools: &[],
        top_logprobs: 0,
        top_p: None,
        truncation: "disabled",
        user: None,
    };
    echo.render()
}

fn events(form: OutputForm) -> ResponseEvents {
    let object = ResponseObject::new(&format!("resp_{SUFFIX}"), 7, "m", echo(), false);
    ResponseEvents::new(object, form).kept()
}

/// The events of these pieces. Each has its number, and its name in both places.
fn sent(events: &mut ResponseEvents, deltas: &[Delta]) -> Vec<Value> {
    let mut out = Vec::new();
    for delta in deltas {
        events.push(delta, &mut out);
    }
    read(&out)
}

fn read(out: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(out).unwrap();
    let blocks = text.split_terminator("\n\n").filter(|block| !block.starts_with(':'));
    let data = blocks.map(|block| {
        let (event, data) = block.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["type"], event);
        data
    });
    data.collect()
}

/// Their names, and the fields that say what is new, short enough to read.
fn outline(events: &[Value]) -> Vec<String> {
    let line = |(number, event): (usize, &Value)| {
        assert_eq!(event["sequence_number"], number);
        let name = event["type"].as_str().unwrap().strip_prefix("response.").unwrap_or("error");
        let news = ["delta", "text", "arguments", "input"].iter().find_map(|field| event[field].as_str());
        match (news, event["item"]["id"].as_str()) {
            (Some(news), _) => format!("{name} {news:?}"),
            (None, Some(id)) => format!("{name} {}", id.replace(SUFFIX, "")),
            (None, None) => name.to_owned(),
        }
    };
    events.iter().enumerate().map(line).collect()
}

fn finish(reason: FinishReason) -> Delta {
    Delta::Finish { choice: 0, reason }
}

fn thought(text: &str) -> Delta {
    Delta::Reasoning { choice: 0, text: text.into() }
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

const DONE: Delta = Delta::Done {
    usage: Some(Usage {
        prompt_tokens: 3,
        completion_tokens: 2,
        cached_tokens: Some(1),
        reasoning_tokens: Some(1),
        load_time: None,
    }),
};

#[test]
fn a_text_has_the_documented_sequence_of_events() {
    let mut events = events(OutputForm::default());
    let sent =
        sent(&mut events, &[Delta::text("Hel"), Delta::text("lo \"ü\"\n"), finish(FinishReason::Stop), DONE]);
    assert_eq!(
        outline(&sent),
        [
            "created",
            "in_progress",
            "output_item.added msg_0",
            "content_part.added",
            "output_text.delta \"Hel\"",
            "output_text.delta \"lo \\\"ü\\\"\\n\"",
            "output_text.done \"Hello \\\"ü\\\"\\n\"",
            "content_part.done",
            "output_item.done msg_0",
            "completed",
        ]
    );
    let id = format!("msg_{SUFFIX}0");
    let part = json!({ "type": "output_text", "text": "Hello \"ü\"\n", "annotations": [], "logprobs": [] });
    let item =
        json!({ "id": id, "type": "message", "status": "completed", "role": "assistant", "content": [part] });
    let mut expected = json!({
        "id": format!("resp_{SUFFIX}"), "object": "response", "created_at": 7, "status": "completed",
        "completed_at": sent[9]["response"]["completed_at"], "error": null, "incomplete_details": null, "model": "m",
        "output": [item],
        "usage": {
            "input_tokens": 3, "input_tokens_details": { "cached_tokens": 1, "cache_write_tokens": 0 },
            "output_tokens": 2, "output_tokens_details": { "reasoning_tokens": 1 }, "total_tokens": 5,
        },
        "background": false, "instructions": null, "max_output_tokens": null, "metadata": {}, "parallel_tool_calls": true,
        "previous_response_id": null, "prompt_cache_key": null, "reasoning": { "effort": null, "summary": null }, "safety_identifier": null,
        "service_tier": null, "store": false, "temperature": null, "text": { "format": { "type": "text" } },
        "tool_choice": "auto", "tools": [], "top_logprobs": 0, "top_p": null, "truncation": "disabled", "user": null,
    });
    assert_eq!(sent[9]["response"], expected);
    let stored = events.take_finished().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&stored.body).unwrap(), expected);
    expected["status"] = json!("in_progress");
    expected["completed_at"] = Value::Null;
    expected["usage"] = Value::Null;
    expected["output"] = json!([]);
    assert_eq!([&sent[0]["response"], &sent[1]["response"]], [&expected, &expected]);
    assert_eq!(
        [&sent[2], &sent[3], &sent[4], &sent[7]],
        [
            &json!({
                "type": "response.output_item.added", "output_index": 0, "sequence_number": 2,
                "item": { "id": id, "type": "message", "status": "in_progress", "role": "assistant", "content": [] },
            }),
            &json!({
                "type": "response.content_part.added", "item_id": id, "output_index": 0, "content_index": 0,
                "part": { "type": "output_text", "text": "", "annotations": [], "logprobs": [] }, "sequence_number": 3,
            }),
            &json!({
                "type": "response.output_text.delta", "item_id": id, "output_index": 0, "content_index": 0, "delta": "Hel",
                "logprobs": [], "sequence_number": 4,
            }),
            &json!({
                "type": "response.content_part.done", "item_id": id, "output_index": 0, "content_index": 0, "part": part,
                "sequence_number": 7,
            }),
        ]
    );
}

#[test]
fn reasoning_is_text_or_where_asked_for_a_summary() {
    let deltas = [thought("h"), thought("m"), Delta::text("yes"), finish(FinishReason::Stop), DONE];
    let plain = sent(&mut events(OutputForm::default()), &deltas);
    assert_eq!(
        outline(&plain)[2..9],
        [
            "output_item.added rs_0",
            "content_part.added",
            "reasoning_text.delta \"h\"",
            "reasoning_text.delta \"m\"",
            "reasoning_text.done \"hm\"",
            "content_part.done",
            "output_item.done rs_0",
        ]
    );
    let parts = |events: &[Value]| [events[3]["part"].clone(), events[7]["part"].clone()];
    assert_eq!(parts(&plain), ["", "hm"].map(|text| json!({ "type": "reasoning_text", "text": text })));
    assert_eq!(
        plain[8]["item"],
        json!({
            "id": format!("rs_{SUFFIX}0"), "type": "reasoning", "status": "completed", "summary": [],
            "content": [{ "type": "reasoning_text", "text": "hm" }],
        })
    );
    let form = OutputForm { summarizes_reasoning: true, seals_reasoning: true, ..OutputForm::default() };
    let summary = sent(&mut events(form), &deltas);
    assert_eq!(
        outline(&summary)[2..10],
        [
            "output_item.added rs_0",
            "reasoning_summary_part.added",
            "reasoning_summary_text.delta \"h\"",
            "reasoning_summary_text.delta \"m\"",
            "reasoning_summary_text.done \"hm\"",
            "reasoning_summary_part.done",
            "output_item.done rs_0",
            "output_item.added msg_1",
        ]
    );
    assert_eq!(parts(&summary), ["", "hm"].map(|text| json!({ "type": "summary_text", "text": text })));
    assert_eq!(
        summary[8]["item"],
        json!({
            "id": format!("rs_{SUFFIX}0"), "type": "reasoning", "status": "completed",
            "summary": [{ "type": "summary_text", "text": "hm" }], "encrypted_content": sealed_text("hm"),
        })
    );
}

fn sealed(seal: ReasoningSeal) -> Delta {
    Delta::ReasoningSeal { choice: 0, seal }
}

#[test]
fn what_a_provider_sealed_is_an_item_each_with_what_it_wants_back() {
    let deltas = [
        thought("h"),
        thought("m"),
        sealed(ReasoningSeal::Signature("s1".into())),
        sealed(ReasoningSeal::Redacted("d".into())),
        sealed(ReasoningSeal::Signature("s2".into())),
        Delta::text("yes"),
        finish(FinishReason::Stop),
        DONE,
    ];
    let sent = sent(&mut events(OutputForm { summarizes_reasoning: true, ..OutputForm::default() }), &deltas);
    assert_eq!(
        outline(&sent)[2..14],
        [
            "output_item.added rs_0",
            "reasoning_summary_part.added",
            "reasoning_summary_text.delta \"h\"",
            "reasoning_summary_text.delta \"m\"",
            "reasoning_summary_text.done \"hm\"",
            "reasoning_summary_part.done",
            "output_item.done rs_0",
            "output_item.added rs_1",
            "output_item.done rs_1",
            "output_item.added rs_2",
            "output_item.done rs_2",
            "output_item.added msg_3",
        ]
    );
    let item = |index: u32, summary: Value, block: SealedReasoning| {
        json!({
            "id": format!("rs_{SUFFIX}{index}"), "type": "reasoning", "status": "completed", "summary": summary,
            "encrypted_content": sealed_block(&block),
        })
    };
    let signed = |text: &str, signature: &str| SealedReasoning::Signed {
        text: text.to_owned(),
        signature: signature.to_owned(),
    };
    assert_eq!(
        sent.last().unwrap()["response"]["output"].as_array().unwrap()[..3],
        [
            item(0, json!([{ "type": "summary_text", "text": "hm" }]), signed("hm", "s1")),
            item(1, json!([]), SealedReasoning::Redacted { data: "d".into() }),
            item(2, json!([]), signed("", "s2")),
        ]
    );
}

#[test]
fn calls_come_in_pieces_and_custom_ones_as_text() {
    let form = OutputForm { custom: vec!["shell".into()], ..OutputForm::default() };
    let mut events = events(form);
    let sent = sent(
        &mut events,
        &[
            // A piece without arguments is no event.
            call(0, Some("a"), Some("add"), ""),
            call(0, None, None, "{\"x\":"),
            call(0, None, None, "1}"),
            call(1, Some("b"), Some("shell"), "{\"input\":"),
            call(1, None, None, "\"ls\"}"),
            finish(FinishReason::ToolCalls),
            DONE,
        ],
    );
    assert_eq!(
        outline(&sent)[2..],
        [
            "output_item.added fc_0",
            "function_call_arguments.delta \"{\\\"x\\\":\"",
            "function_call_arguments.delta \"1}\"",
            "function_call_arguments.done \"{\\\"x\\\":1}\"",
            "output_item.done fc_0",
            "output_item.added ctc_1",
            "custom_tool_call_input.delta \"ls\"",
            "custom_tool_call_input.done \"ls\"",
            "output_item.done ctc_1",
            "completed",
        ]
    );
    let output = json!([
        { "id": format!("fc_{SUFFIX}0"), "type": "function_call", "status": "completed", "call_id": "a", "name": "add", "arguments": "{\"x\":1}" },
        { "id": format!("ctc_{SUFFIX}1"), "type": "custom_tool_call", "status": "completed", "call_id": "b", "name": "shell", "input": "ls" },
    ]);
    assert_eq!(sent[11]["response"]["output"], output);
    assert_eq!(
        sent[3],
        json!({
            "type": "response.function_call_arguments.delta", "item_id": format!("fc_{SUFFIX}0"), "output_index": 0,
            "delta": "{\"x\":", "sequence_number": 3,
        })
    );
}

#[test]
fn an_answer_that_is_cut_off_is_incomplete() {
    for (reason, word) in
        [(FinishReason::Length, "max_output_tokens"), (FinishReason::ContentFilter, "content_filter")]
    {
        let sent = sent(&mut events(OutputForm::default()), &[Delta::text("a"), finish(reason), DONE]);
        let last = sent.last().unwrap();
        assert_eq!(last["type"], "response.incomplete");
        let response = &last["response"];
        assert_eq!(
            [&response["status"], &response["incomplete_details"]["reason"], &response["completed_at"]],
            [&json!("incomplete"), &json!(word), &Value::Null]
        );
        assert_eq!(response["output"][0]["status"], "incomplete");
    }
}

#[test]
fn an_empty_answer_is_an_empty_message() {
    let sent = sent(&mut events(OutputForm::default()), &[finish(FinishReason::Stop), DONE]);
    assert_eq!(
        outline(&sent)[2..],
        [
            "output_item.added msg_0",
            "content_part.added",
            "output_text.done \"\"",
            "content_part.done",
            "output_item.done msg_0",
            "completed"
        ]
    );
}

#[test]
fn a_stream_that_breaks_never_looks_complete() {
    let broken = EngineError::Interrupted { engine: "vllm".into(), reason: "cable".into() };
    let mut events = events(OutputForm::default());
    let mut out = Vec::new();
    events.push(&Delta::text("a"), &mut out);
    events.fail(&broken.into(), &mut out);
    events.push(&DONE, &mut out);
    let sent = read(&out);
    assert_eq!(outline(&sent)[4..], ["output_text.delta \"a\"", "failed"]);
    let response = &sent[5]["response"];
    assert_eq!(
        [&response["status"], &response["error"], &response["output"]],
        [
            &json!("failed"),
            &json!({ "code": "server_error", "message": "vllm broke off its answer: cable" }),
            &json!([]),
        ]
    );
    assert_eq!(events.take_finished().map(|finished| finished.status), Some(Status::Failed));
}

#[test]
fn calls_whose_pieces_are_mixed_fail() {
    let deltas = [
        call(0, Some("a"), Some("f"), "{"),
        call(1, Some("b"), Some("f"), "{}"),
        call(0, None, None, "}"),
        finish(FinishReason::ToolCalls),
        DONE,
    ];
    let sent = sent(&mut events(OutputForm::default()), &deltas);
    assert_eq!(sent.last().unwrap()["type"], "response.failed");
}

#[test]
fn log_probabilities_are_in_the_pieces_and_in_the_item() {
    let token = |text: &str| json!({ "token": text, "logprob": -0.5, "bytes": [1], "top_logprobs": [] });
    let piece = |text: &str| {
        let logprobs = json!({ "content": [token(text)] });
        Delta::Text(TextDelta { text: text.into(), logprobs: Some(Box::new(logprobs)), choice: 0 })
    };
    let sent =
        sent(&mut events(OutputForm::default()), &[piece("a"), piece("b"), finish(FinishReason::Stop), DONE]);
    assert_eq!(sent[5]["logprobs"], json!([token("b")]));
    assert_eq!(sent[6]["logprobs"], json!([token("a"), token("b")]));
    assert_eq!(sent[9]["response"]["output"][0]["content"][0]["logprobs"], json!([token("a"), token("b")]));
}

#[test]
fn steps_of_an_agent_are_comments() {
    let mut out = Vec::new();
    let step = AgentStep { name: "TOOL", data: json!({ "a": 1 }), tool: None };
    events(OutputForm::default()).push(&Delta::Step(Box::new(step)), &mut out);
    assert!(String::from_utf8(out).unwrap().ends_with(": hob TOOL {\"a\":1}\n\n"));
}

#[test]
fn a_whole_answer_has_the_same_items_as_a_streamed_one() {
    let form = OutputForm {
        summarizes_reasoning: true,
        seals_reasoning: true,
        custom: vec!["shell".into()],
        ..OutputForm::default()
    };
    let deltas = [
        thought("hm ü"),
        sealed(ReasoningSeal::Signature("s1".into())),
        sealed(ReasoningSeal::Redacted("d".into())),
        thought("and"),
        Delta::text("so \"be\" it"),
        call(0, Some("a"), Some("add"), "{\"x\":1}"),
        call(1, Some("b"), Some("shell"), "{\"input\":\"ls\"}"),
        finish(FinishReason::Length),
        DONE,
    ];
    let mut streamed = events(form.clone());
    let sent = sent(&mut streamed, &deltas);
    let mut collector = hob_core::Collector::default();
    deltas.into_iter().for_each(|delta| collector.push(delta));
    let mut whole = events(form);
    whole.finish_whole(&collector.finish("m").unwrap());
    let whole: Value = serde_json::from_slice(&whole.take_finished().unwrap().body).unwrap();
    assert_eq!(whole["output"], sent.last().unwrap()["response"]["output"]);
    assert_eq!(whole["status"], "incomplete");
}

#[test]
fn a_cancelled_response_has_the_items_that_ended_before() {
    let mut events = events(OutputForm::default());
    sent(&mut events, &[thought("hm"), Delta::text("a")]);
    events.cancel(&mut Vec::new());
    let finished = events.take_finished().unwrap();
    let body: Value = serde_json::from_slice(&finished.body).unwrap();
    let items: Vec<&str> =
        body["output"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!((items.as_slice(), finished.output.len()), (["reasoning"].as_slice(), 1));
}

#[test]
fn pieces_without_words_are_no_events() {
    let mut events = events(OutputForm::default());
    let sent = sent(&mut events, &[Delta::text(""), thought("")]);
    assert_eq!(outline(&sent), ["created", "in_progress"]);
}

#[test]
fn a_response_names_the_model_that_answers() {
    let mut events = events(OutputForm::default());
    events.answered_by("served");
    let sent = sent(&mut events, &[Delta::text("a")]);
    assert_eq!(sent[0]["response"]["model"], "served");
}

#[test]
fn a_cancelled_response_ends_with_an_error() {
    let mut events = events(OutputForm::default());
    let mut out = Vec::new();
    let queued = events.queued_body();
    events.announce(&queued, &mut out);
    events.push(&Delta::text("a"), &mut out);
    events.cancel(&mut out);
    let sent = read(&out);
    assert_eq!(
        outline(&sent),
        [
            "created",
            "queued",
            "in_progress",
            "output_item.added msg_0",
            "content_part.added",
            "output_text.delta \"a\"",
            "error"
        ]
    );
    assert_eq!(
        sent[6],
        json!({
            "type": "error", "code": "response_cancelled", "message": "the response was cancelled", "param": null,
            "sequence_number": 6,
        })
    );
    assert_eq!(events.take_finished().map(|finished| finished.status), Some(Status::Cancelled));
}
