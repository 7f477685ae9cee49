use super::*;

#[test]
fn texts_thoughts_and_calls_become_one_answer() {
    let body = r#"{
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x-2026",
        "content": [
            {"type": "thinking", "thinking": "Rome is a city.", "signature": "abc"},
            {"type": "redacted_thinking", "data": "xyz"},
            {"type": "text", "text": "Let me ", "citations": null},
            {"type": "text", "text": "see."},
            {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Rome", "days": 2}},
            {"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}}
        ],
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": {"input_tokens": 10, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 7}
    }"#;
    let call = |id: &str, name: &str, arguments: &str| ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    };
    let expected = Generation {
        model: "claude-x-2026".into(),
        answer: Answer {
            content: "Let me see.".into(),
            reasoning: Some("Rome is a city.".into()),
            tool_calls: vec![
                call("toolu_1", "weather", "{\"city\":\"Rome\",\"days\":2}"),
                call("toolu_2", "now", "{}"),
            ],
            finish_reason: FinishReason::ToolCalls,
            sealed_reasoning: vec![
                SealedReasoning::Signed { text: "Rome is a city.".into(), signature: "abc".into() },
                SealedReasoning::Redacted { data: "xyz".into() },
            ],
            later_thoughts: Vec::new(),
            logprobs: None,
        },
        alternatives: Vec::new(),
        usage: Some(Usage {
            prompt_tokens: 115,
            completion_tokens: 7,
            cached_tokens: Some(100),
            reasoning_tokens: None,
            load_time: None,
        }),
        warnings: Vec::new(),
    };
    assert_eq!(read(body.as_bytes(), "claude-x"), Ok(expected));
}

#[test]
fn a_thought_between_texts_keeps_its_place() {
    let body = br#"{"content": [
        {"type": "text", "text": "One."},
        {"type": "thinking", "thinking": "And then?", "signature": "abc"},
        {"type": "text", "text": "Two."}
    ], "stop_reason": "end_turn"}"#;
    let answer = read(body, "claude-x").unwrap().answer;
    let parts: Vec<(&str, usize, &str)> =
        answer.stretches().iter().map(|part| (part.reasoning, part.sealed.len(), part.text)).collect();
    assert_eq!(parts, [("", 0, "One."), ("And then?", 1, "Two.")]);
}

#[test]
fn an_empty_answer_without_usage_is_still_an_answer() {
    let expected = Generation {
        model: "claude-x".into(),
        answer: Answer {
            content: String::new(),
            reasoning: None,
            tool_calls: Vec::new(),
            finish_reason: FinishReason::Stop,
            sealed_reasoning: Vec::new(),
            later_thoughts: Vec::new(),
            logprobs: None,
        },
        alternatives: Vec::new(),
        usage: None,
        warnings: Vec::new(),
    };
    assert_eq!(read(br#"{"content": [], "stop_reason": "end_turn"}"#, "claude-x"), Ok(expected));
}

#[test]
fn the_list_of_models_tells_how_long_answers_can_get() {
    let list = br#"{"data":[
        {"type":"model","id":"claude-a","max_input_tokens":200000,"max_tokens":64000},
        {"type":"model","id":"claude-b"},{"type":"model","id":"claude-c","max_tokens":0}],"has_more":false}"#;
    let listed = ListedModels {
        models: vec![
            ModelInfo { context: Some(200_000), ..ModelInfo::named("claude-a") },
            ModelInfo::named("claude-b"),
            ModelInfo::named("claude-c"),
        ],
        output_limits: HashMap::from([("claude-a".to_owned(), 64_000)]),
    };
    assert_eq!(read_models(list), Ok(listed));
}

#[test]
fn reasons_to_stop_are_translated() {
    let words = [
        "end_turn",
        "stop_sequence",
        "max_tokens",
        "model_context_window_exceeded",
        "tool_use",
        "refusal",
        "pause_turn",
    ];
    let reasons = words.map(|word| finish_reason(word, None).recorded().to_owned());
    assert_eq!(reasons, ["stop", "stop", "length", "length", "tool_calls", "content_filter", "pause_turn"]);
}

#[test]
fn invalid_input_is_an_error_and_never_a_panic() {
    for nonsense in [
        "",
        "7",
        "{}",
        r#"{"content": []}"#,
        r#"{"content": [{"type": "tool_use"}], "stop_reason": "tool_use"}"#,
    ] {
        assert!(read(nonsense.as_bytes(), "m").is_err(), "{nonsense}");
    }
    let most = u64::MAX;
    let usage: WireUsage = serde_json::from_str(&format!(
        r#"{{"input_tokens": {most}, "cache_read_input_tokens": {most}, "output_tokens": 1}}"#
    ))
    .unwrap();
    assert_eq!(Usage::from(usage).prompt_tokens, most);
}
