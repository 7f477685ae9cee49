use hob_core::{Answer, FinishReason, ToolCall, Usage};

use super::*;
use crate::cloud::gemini::wire_types::finish_reason;

fn read(body: &[u8], model: &str) -> Result<Generation, DecodeError> {
    super::read(body, &GenerateRequest { model: model.into(), ..GenerateRequest::default() })
}

fn answer(content: &str, finish_reason: FinishReason) -> Answer {
    Answer {
        content: content.into(),
        reasoning: None,
        tool_calls: Vec::new(),
        finish_reason,
        sealed_reasoning: Vec::new(),
        later_thoughts: Vec::new(),
        logprobs: None,
    }
}

#[test]
fn texts_thoughts_and_calls_become_one_answer() {
    let body = r#"{
        "candidates": [{
            "content": {"role": "model", "parts": [
                {"text": "Rome is a city.", "thought": true},
                {"text": "Let me "},
                {"text": "see."},
                {"functionCall": {"id": "fc-1", "name": "weather", "args": {"city": "Rome"}}, "thoughtSignature": "Ab+/zQ=="},
                {"functionCall": {"id": "fc-2", "name": "now"}}
            ]},
            "finishReason": "STOP", "index": 0, "safetyRatings": []
        }],
        "usageMetadata": {
            "promptTokenCount": 12, "candidatesTokenCount": 5, "thoughtsTokenCount": 30, "totalTokenCount": 47,
            "cachedContentTokenCount": 8
        },
        "modelVersion": "gemini-x-001", "responseId": "r1"
    }"#;
    let call = |id: &str, name: &str, arguments: &str| ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    };
    let expected = Generation {
        model: "gemini-x-001".into(),
        answer: Answer {
            reasoning: Some("Rome is a city.".into()),
            tool_calls: vec![
                call("fc-1--thought--Ab-_zQ", "weather", "{\"city\":\"Rome\"}"),
                call("fc-2", "now", "{}"),
            ],
            ..answer("Let me see.", FinishReason::ToolCalls)
        },
        alternatives: Vec::new(),
        usage: Some(Usage {
            prompt_tokens: 12,
            completion_tokens: 35,
            cached_tokens: Some(8),
            reasoning_tokens: Some(30),
            load_time: None,
        }),
        warnings: Vec::new(),
    };
    assert_eq!(read(body.as_bytes(), "gemini-x"), Ok(expected));
}

#[test]
fn calls_without_ids_get_different_ones() {
    let call = r#"{"functionCall": {"name": "now", "args": {}}}"#;
    let body = format!(
        r#"{{"candidates": [{{"content": {{"parts": [{call}, {call}]}}, "finishReason": "STOP"}}]}}"#
    );
    let calls = read(body.as_bytes(), "m").unwrap().answer.tool_calls;
    assert_eq!(calls.len(), 2);
    assert!(!calls[0].id.is_empty() && calls[0].id != calls[1].id, "{calls:?}");
}

#[test]
fn only_the_first_call_of_each_answer_is_kept_without_parallel_calls() {
    let candidate = |index: u32| {
        format!(
            r#"{{"index": {index}, "finishReason": "STOP", "content": {{"parts": [
                {{"functionCall": {{"name": "f"}}, "thoughtSignature": "AAAA"}}, {{"functionCall": {{"name": "g"}}}}, {{"text": "well"}}
            ]}}}}"#
        )
    };
    let body = format!(r#"{{"candidates": [{}, {}]}}"#, candidate(0), candidate(1));
    let names = |parallel_tool_calls| -> Vec<Vec<String>> {
        let request = GenerateRequest { parallel_tool_calls, ..GenerateRequest::default() };
        let Generation { answer, alternatives, .. } = super::read(body.as_bytes(), &request).unwrap();
        let answers = std::iter::once(answer).chain(alternatives);
        answers
            .map(|answer| {
                assert_eq!(
                    (answer.content.as_str(), answer.finish_reason),
                    ("well", FinishReason::ToolCalls)
                );
                answer.tool_calls.into_iter().map(|call| call.name).collect()
            })
            .collect()
    };
    assert_eq!(names(Some(false)), [["f"], ["f"]]);
    for parallel in [None, Some(true)] {
        assert_eq!(names(parallel), [["f", "g"], ["f", "g"]]);
    }
}

#[test]
fn several_answers_and_missing_usage_are_taken_as_they_are() {
    let body = r#"{"candidates": [
        {"index": 0, "content": {"parts": [{"text": "a"}]}, "finishReason": "MAX_TOKENS"},
        {"index": 1, "finishReason": "SAFETY"}
    ]}"#;
    let expected = Generation {
        model: "gemini-x".into(),
        answer: answer("a", FinishReason::Length),
        alternatives: vec![answer("", FinishReason::ContentFilter)],
        usage: None,
        warnings: Vec::new(),
    };
    assert_eq!(read(body.as_bytes(), "gemini-x"), Ok(expected));
}

#[test]
fn reasons_to_stop_are_translated() {
    let words = [
        "STOP",
        "MAX_TOKENS",
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "MALFORMED_FUNCTION_CALL",
    ];
    let reasons = words.map(|word| finish_reason(word, false).recorded().to_owned());
    assert_eq!(
        reasons,
        [
            "stop",
            "length",
            "content_filter",
            "content_filter",
            "content_filter",
            "content_filter",
            "content_filter",
            "length",
        ]
    );
    assert_eq!(finish_reason("MAX_TOKENS", true), FinishReason::Length);
}

#[test]
fn a_blocked_prompt_is_refused_with_its_reason() {
    assert_eq!(
        read(br#"{"promptFeedback": {"blockReason": "SAFETY"}}"#, "m"),
        Err(DecodeError::Reported {
            message: "the prompt was blocked (SAFETY)".into(),
            code: Some("content_filter".into()),
            status: Some(400),
        })
    );
}

#[test]
fn invalid_input_is_an_error_and_never_a_panic() {
    for nonsense in [
        "",
        "7",
        "{}",
        r#"{"candidates": []}"#,
        r#"{"candidates": [{"content": {"parts": [{"text": "half"}]}}]}"#,
        r#"{"candidates": [{"content": {"parts": [{"functionCall": {}}]}, "finishReason": "STOP"}]}"#,
    ] {
        let refused = read(nonsense.as_bytes(), "m");
        assert!(matches!(refused, Err(DecodeError::Malformed(_))), "{nonsense}: {refused:?}");
    }
}

#[test]
fn only_models_that_answer_are_listed_and_by_their_short_names() {
    let body = r#"{"models": [
        {"name": "models/gemini-x", "inputTokenLimit": 1048576, "supportedGenerationMethods": ["generateContent", "countTokens"]},
        {"name": "models/gemini-embedding-001", "supportedGenerationMethods": ["embedContent"]}
    ]}"#;
    let expected = ModelInfo { context: Some(1_048_576), ..ModelInfo::named("gemini-x") };
    assert_eq!(read_models(body.as_bytes()), Ok(vec![expected]));
    assert_eq!(read_models(b"{}"), Ok(Vec::new()));
}
