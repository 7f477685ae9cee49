use serde_json::json;

use super::*;

fn parse(body: &Value) -> Result<TextCompletionRequest, ApiError> {
    TextCompletionRequest::parse(body.to_string().as_bytes())
}

fn prompts(prompt: Value) -> Vec<Prompt> {
    parse(&json!({ "model": "m", "prompt": prompt })).unwrap().request.prompts
}

#[test]
fn a_prompt_is_text_or_tokens_one_or_several() {
    let text = |text: &str| Prompt::Text(text.to_owned());
    assert_eq!(prompts(json!("a")), [text("a")]);
    assert_eq!(prompts(json!("")), [text("")]);
    assert_eq!(prompts(json!(["a", "b"])), [text("a"), text("b")]);
    assert_eq!(prompts(json!([1, 2])), [Prompt::Tokens(vec![1, 2])]);
    assert_eq!(prompts(json!([[1], [2, 3]])), [Prompt::Tokens(vec![1]), Prompt::Tokens(vec![2, 3])]);
}

#[test]
fn every_field_has_its_place() {
    let body = json!({
        "model": "m", "prompt": "fn ", "suffix": "}", "echo": true, "best_of": 3, "n": 2, "logprobs": 4,
        "max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "stop": "END", "seed": 7, "presence_penalty": 0.1,
        "frequency_penalty": 0.2, "user": "ada", "logit_bias": {}, "top_k": 3,
        "stream_options": { "include_usage": true, "chunk": 1 }, "response_format": { "type": "json_object" },
    });
    let expected = TextCompletionRequest {
        request: TextRequest {
            prompts: vec!["fn ".into()],
            best_of: NonZeroU32::new(3),
            request: CompletionRequest {
                model: "m".into(),
                suffix: Some("}".into()),
                echo: true,
                temperature: Some(Temperature::new(0.5).unwrap()),
                max_tokens: Some(MaxTokens::new(9).unwrap()),
                sampling: Sampling {
                    top_p: Some(0.9),
                    stop: vec!["END".into()],
                    seed: Some(7),
                    presence_penalty: Some(0.1),
                    frequency_penalty: Some(0.2),
                    n: NonZeroU32::new(2),
                    logprobs: true,
                    top_logprobs: Some(4),
                },
                response_format: ResponseFormat::JsonObject,
                extra: Map::from_iter([("top_k".to_owned(), json!(3)), ("user".to_owned(), json!("ada"))]),
                ..CompletionRequest::default()
            },
        },
        mode: ResponseMode::Whole,
        warnings: vec![AnswerWarning::Ignored("stream_options.chunk".into())],
    };
    assert_eq!(parse(&body).unwrap(), expected);
}

#[test]
fn an_empty_suffix_fills_no_gap() {
    let request = parse(&json!({ "model": "m", "prompt": "a", "suffix": "" })).unwrap().request;
    assert_eq!(request.request.suffix, None);
}

#[test]
fn no_token_is_asked_for_only_to_score_a_prompt() {
    let asking = |fields: Value| {
        let mut body = json!({ "model": "m", "prompt": "a", "max_tokens": 0 });
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        parse(&body).map(|parsed| parsed.request.request)
    };
    let scoring = asking(json!({ "echo": true, "logprobs": 0 })).unwrap();
    assert_eq!((scoring.prompt_only, scoring.max_tokens()), (true, Some(0)));
    for fields in [json!({}), json!({ "echo": true }), json!({ "logprobs": 1 })] {
        let error = asking(fields).unwrap_err();
        assert_eq!(error.param(), Some("max_tokens"));
    }
}
