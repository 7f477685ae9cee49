//! What applies to the cloud engine as a whole.

use hob_core::{CompletionRequest, ModelInfo, Prompt};
use hob_testkit::Recorded;

use super::*;

const OPENAI_MODELS: &str = r#"{"object":"list","data":[{"id":"gpt-5.2","object":"model","created":1764547200,"owned_by":"openai"}]}"#;
const ANTHROPIC_MODELS: &str = r#"{"data":[{"type":"model","id":"claude-opus-4-6","display_name":"Claude Opus 4.6","created_at":"2026-02-04T00:00:00Z","max_input_tokens":200000}],"has_more":false,"first_id":"a","last_id":"a"}"#;
const GEMINI_MODELS: &str = r#"{"models":[
    {"name":"models/gemini-3.1-pro","inputTokenLimit":1048576,"supportedGenerationMethods":["generateContent"]},
    {"name":"models/gemma-3-27b-it","supportedGenerationMethods":["generateContent"]}
]}"#;

fn is_gemini(request: &Recorded) -> bool {
    request.header("x-goog-api-key").is_some()
}

fn is_anthropic(request: &Recorded) -> bool {
    request.header("x-api-key").is_some()
}

/// Each provider's list of models.
fn models(request: &Recorded) -> Reply {
    Reply::json(
        200,
        if is_gemini(request) {
            GEMINI_MODELS
        } else if is_anthropic(request) {
            ANTHROPIC_MODELS
        } else {
            OPENAI_MODELS
        },
    )
}

fn refusal() -> Reply {
    Reply::json(401, r#"{"error":{"message":"bad key"}}"#)
}

#[tokio::test]
async fn every_provider_is_asked_in_its_own_way_and_with_its_own_key() {
    let server = FakeServer::replying(refusal()).await;
    let cloud = cloud(&server);
    for model in ["gpt-5.2", "claude-opus-4-6", "gemini-3.1-pro"] {
        cloud.generate(&hi(model)).await.unwrap_err();
    }
    let headers = ["authorization", "x-api-key", "anthropic-version", "x-goog-api-key"];
    let asked: Vec<(String, [Option<String>; 4])> = server
        .requests()
        .iter()
        .map(|request| {
            let line = format!("{} {}", request.method, request.path);
            (line, headers.map(|name| request.header(name).map(str::to_owned)))
        })
        .collect();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        asked,
        [
            ("POST /v1/chat/completions".to_owned(), [some("Bearer openai-key"), None, None, None]),
            ("POST /v1/messages".to_owned(), [None, some("anthropic-key"), some("2023-06-01"), None]),
            (
                "POST /v1beta/models/gemini-3.1-pro:generateContent".to_owned(),
                [None, None, None, some("gemini-key")]
            ),
        ]
    );
}

#[tokio::test]
async fn the_models_of_all_providers_are_listed_if_their_name_leads_back_to_them() {
    let server = FakeServer::start(models).await;
    let expected = vec![
        ModelInfo { created: Some(1_764_547_200), ..ModelInfo::named("gpt-5.2") },
        ModelInfo { context: Some(200_000), ..ModelInfo::named("claude-opus-4-6") },
        ModelInfo { context: Some(1_048_576), ..ModelInfo::named("gemini-3.1-pro") },
    ];
    assert_eq!(cloud(&server).list_models().await.unwrap(), expected);
}

#[tokio::test]
async fn a_provider_that_fails_does_not_hide_the_others() {
    let server =
        FakeServer::start(|request| if is_anthropic(request) { refusal() } else { models(request) }).await;
    let ids: Vec<String> =
        cloud(&server).list_models().await.unwrap().into_iter().map(|model| model.id).collect();
    assert_eq!(ids, ["gpt-5.2", "gemini-3.1-pro"]);
}

#[tokio::test]
async fn a_list_that_no_provider_gives_is_an_error() {
    let server = FakeServer::replying(refusal()).await;
    let error = cloud(&server).list_models().await.unwrap_err();
    assert_eq!(error.to_string(), "cloud (OpenAI) answered 401: bad key");

    let nobody = Cloud::new(CloudOptions::default()).unwrap();
    let error = nobody.list_models().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cloud is not set up: no provider has a key; \
         set OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or GOOGLE_API_KEY"
    );
    assert!(!nobody.health().await);
}

#[tokio::test]
async fn one_healthy_provider_is_enough_without_waiting_for_a_silent_one() {
    let server =
        FakeServer::start(|request| if is_gemini(request) { models(request) } else { Reply::silence() })
            .await;
    let cloud = cloud(&server);
    let healthy = tokio::time::timeout(Duration::from_secs(10), cloud.health()).await;
    assert_eq!(healthy, Ok(true));
}

#[tokio::test]
async fn invalid_keys_are_unhealthy() {
    let server = FakeServer::replying(refusal()).await;
    assert!(!cloud(&server).health().await);
}

#[tokio::test]
async fn a_silent_provider_times_out() {
    let server = FakeServer::replying(Reply::silence()).await;
    let impatient =
        Cloud::new(CloudOptions { timeout: Duration::from_millis(500), ..options(&server.url()) }).unwrap();
    for model in ["gpt-5.2", "claude-opus-4-6", "gemini-3.1-pro"] {
        let error = impatient.generate(&hi(model)).await.unwrap_err();
        assert!(matches!(error, EngineError::Timeout { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_with_the_key() {
    let elsewhere = FakeServer::replying(Reply::json(200, "{}")).await;
    let url = elsewhere.url();
    let server =
        FakeServer::start(move |_| Reply::json(307, "").header("location", &format!("{url}/v1/messages")))
            .await;
    let error = cloud(&server).generate(&hi("claude-opus-4-6")).await.unwrap_err();
    assert!(matches!(error, EngineError::Refused { status: 307, .. }), "{error}");
    assert_eq!(elsewhere.requests(), []);
}

#[test]
fn options_never_show_a_key() {
    assert!(!format!("{:?}", options("http://localhost:1")).contains("-key"));
}

#[tokio::test]
async fn a_text_to_continue_is_sent_as_a_question_and_what_only_a_text_has_is_refused_by_name() {
    let reply = r#"{"model":"gpt-5.2","choices":[{"message":{"content":"there"},"finish_reason":"stop"}]}"#;
    let server = FakeServer::replying(Reply::json(200, reply)).await;
    let cloud = cloud(&server);
    let text = || CompletionRequest { model: "gpt-5.2".into(), prompt: "hi".into(), ..Default::default() };
    assert_eq!(cloud.complete(&text()).await.unwrap().answer.content, "there");
    let sent: Value = serde_json::from_slice(&server.requests()[0].body).unwrap();
    assert_eq!(sent["messages"], serde_json::json!([{ "role": "user", "content": "hi" }]));

    let mut with_logprobs = text();
    with_logprobs.sampling.logprobs = true;
    for (request, field) in [
        (CompletionRequest { suffix: Some("b".into()), ..text() }, "suffix"),
        (CompletionRequest { echo: true, ..text() }, "echo"),
        (with_logprobs, "logprobs"),
        (CompletionRequest { prompt: Prompt::Tokens(vec![1]), ..text() }, "prompt"),
    ] {
        let error = cloud.stream_completion(&request).await.err().expect("refused");
        assert!(matches!(&error, EngineError::Unsupported { field: named, .. } if named == field), "{error}");
    }
    assert_eq!(server.requests().len(), 1, "nothing else was sent");
}
