//! `POST /v1/completions` as clients see it.

use std::sync::Arc;

use hob_config::ServerConfig;
use hob_core::{
    CompletionRequest, Delta, Engine, EngineError, FinishReason, GenerateRequest, Prompt, TextDelta, Usage,
};
use hob_engines::Style;
use hob_testkit::{FakeServer, Hold, Recorded, Reply, ScriptedEngine};
use serde_json::{Value, json};

use crate::support::{TestServer, engine_at, models};

/// Repeats the prompt in capitals, as often as it is asked to, with probabilities where they are wanted.
fn shouting() -> Arc<ScriptedEngine> {
    Arc::new(ScriptedEngine::new(|request: &GenerateRequest| {
        let text = request.messages.first().map(|message| message.content.text().to_uppercase());
        let text = text.unwrap_or_default();
        let mut deltas = Vec::new();
        for choice in 0..request.answers() {
            let entry = json!({ "token": text, "logprob": -0.5, "top_logprobs": [
                { "token": text, "logprob": -0.5 }, { "token": "?", "logprob": -3.0 },
            ] });
            let logprobs = request.sampling.logprobs.then(|| Box::new(json!({ "content": [entry] })));
            deltas.push(Ok(Delta::Text(TextDelta { choice, text: text.clone(), logprobs })));
            deltas.push(Ok(Delta::Finish { choice, reason: FinishReason::Length }));
        }
        let usage = Usage {
            prompt_tokens: 2,
            completion_tokens: 3,
            cached_tokens: None,
            reasoning_tokens: None,
            load_time: None,
        };
        deltas.push(Ok(Delta::Done { usage: Some(usage) }));
        deltas
    }))
}

async fn served() -> (TestServer, Arc<ScriptedEngine>) {
    let engine = shouting();
    (TestServer::start(Arc::clone(&engine) as Arc<dyn Engine>).await, engine)
}

async fn post(server: &TestServer, body: &Value) -> reqwest::Response {
    server.client.post(server.url("/v1/completions")).json(body).send().await.unwrap()
}

async fn answer(server: &TestServer, body: &Value) -> (u16, Value) {
    let response = post(server, body).await;
    (response.status().as_u16(), response.json().await.unwrap())
}

/// Without what differs from run to run.
fn settled(mut body: Value) -> Value {
    assert!(body["id"].as_str().unwrap().starts_with("cmpl-"), "{body}");
    assert!(body["created"].as_u64().unwrap() > 1_700_000_000, "{body}");
    body["id"] = json!("cmpl-1");
    body["created"] = json!(7);
    body
}

#[tokio::test]
async fn a_text_is_continued_as_it_stands() {
    let (server, engine) = served().await;
    let response =
        post(&server, &json!({ "model": "m", "prompt": "once", "max_tokens": 3, "user": "ada" })).await;
    assert_eq!(response.headers()["x-hob-engine"], "scripted");
    assert_eq!(
        settled(response.json().await.unwrap()),
        json!({
            "id": "cmpl-1", "object": "text_completion", "created": 7, "model": "m",
            "choices": [{ "text": "ONCE", "index": 0, "logprobs": null, "finish_reason": "length" }],
            "usage": { "prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5 },
        })
    );
    let asked = &engine.completion_requests()[0];
    assert_eq!((asked.prompt.text(), asked.max_tokens()), (Some("once"), Some(3)));
}

#[tokio::test]
async fn several_prompts_have_their_answers_one_after_the_other() {
    let (server, engine) = served().await;
    let body = json!({ "model": "m", "prompt": ["a", "b"], "n": 2, "echo": true });
    let (status, body) = answer(&server, &body).await;
    assert_eq!(status, 200, "{body}");
    let texts: Vec<(u64, &str)> = body["choices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|choice| (choice["index"].as_u64().unwrap(), choice["text"].as_str().unwrap()))
        .collect();
    assert_eq!(texts, [(0, "aA"), (1, "aA"), (2, "bB"), (3, "bB")]);
    assert_eq!(body["usage"], json!({ "prompt_tokens": 4, "completion_tokens": 6, "total_tokens": 10 }));

    let (status, _) = answer(&server, &json!({ "model": "m", "prompt": [[1, 2], [3]] })).await;
    assert_eq!(status, 200);
    let prompts: Vec<Prompt> =
        engine.completion_requests()[2..].iter().map(|request| request.prompt.clone()).collect();
    assert_eq!(prompts, [Prompt::Tokens(vec![1, 2]), Prompt::Tokens(vec![3])]);
}

#[tokio::test]
async fn probabilities_have_the_older_form() {
    let (server, _engine) = served().await;
    let (_, body) = answer(&server, &json!({ "model": "m", "prompt": "a", "logprobs": 1 })).await;
    assert_eq!(
        body["choices"][0]["logprobs"],
        json!({ "tokens": ["A"], "token_logprobs": [-0.5], "top_logprobs": [{ "A": -0.5 }], "text_offset": [0] })
    );
    // A try beyond `n` is not shown, and neither are the probabilities that it was chosen by.
    let (_, body) = answer(&server, &json!({ "model": "m", "prompt": "a", "best_of": 3 })).await;
    let choices = body["choices"].as_array().unwrap();
    assert_eq!((choices.len(), &choices[0]["logprobs"]), (1, &Value::Null));
}

/// The events of a stream.
async fn events(response: reqwest::Response) -> Vec<String> {
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().await.unwrap();
    text.split_terminator("\n\n").map(|event| event.strip_prefix("data: ").unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_stream_has_pieces_finish_usage_and_an_end() {
    let (server, _engine) = served().await;
    let body = json!({
        "model": "m", "prompt": "a", "stream": true, "stream_options": { "include_usage": true }, "logprobs": 0,
    });
    let events = events(post(&server, &body).await).await;
    let (end, chunks) = events.split_last().unwrap();
    assert_eq!(end, "[DONE]");
    let chunks: Vec<Value> =
        chunks.iter().map(|chunk| settled(serde_json::from_str(chunk).unwrap())).collect();
    let chunk = |choices: Value| json!({ "id": "cmpl-1", "object": "text_completion", "created": 7, "model": "m", "choices": choices });
    let logprobs =
        json!({ "tokens": ["A"], "token_logprobs": [-0.5], "top_logprobs": [{}], "text_offset": [0] });
    let mut usage = chunk(json!([]));
    usage["usage"] = json!({ "prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5 });
    assert_eq!(
        chunks,
        [
            chunk(json!([{ "text": "A", "index": 0, "logprobs": logprobs, "finish_reason": null }])),
            chunk(json!([{ "text": "", "index": 0, "logprobs": null, "finish_reason": "length" }])),
            usage,
        ]
    );
}

#[tokio::test]
async fn a_stream_that_breaks_never_looks_complete() {
    let engine = ScriptedEngine::new(|_| {
        let broken = EngineError::Interrupted { engine: "scripted".into(), reason: "gone".into() };
        vec![Ok(Delta::text("half")), Err(broken)]
    });
    let server = TestServer::start(Arc::new(engine)).await;
    let events = events(post(&server, &json!({ "model": "m", "prompt": "a", "stream": true })).await).await;
    let last: Value = serde_json::from_str(events.last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "engine_answer_interrupted");
    assert!(!events.iter().any(|event| event == "[DONE]" || event.contains("\"finish_reason\":\"")));
}

#[tokio::test]
async fn a_client_that_hangs_up_stops_the_engine() {
    let hold = Hold::new();
    let held = hold.clone();
    let fake = FakeServer::start(move |request: &Recorded| match request.path.as_str() {
        "/v1/models" => models(),
        _ => {
            let chunk = "data: {\"choices\":[{\"index\":0,\"text\":\"a\",\"finish_reason\":null}]}\n\n";
            Reply::sse(chunk).then_held(&held, "")
        }
    })
    .await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let mut response = post(&server, &json!({ "model": "m", "prompt": "a", "stream": true })).await;
    assert!(response.chunk().await.unwrap().is_some());
    drop(response);
    fake.hung_up(1).await;
}

#[tokio::test]
async fn what_is_no_request_is_refused_by_its_field() {
    let (server, engine) = served().await;
    for (fields, param) in [
        (json!({ "model": null }), json!("model")),
        (json!({ "model": "nope" }), json!("model")),
        (json!({ "prompt": null }), json!("prompt")),
        (json!({ "prompt": [] }), json!("prompt")),
        (json!({ "prompt": [[1], []] }), json!("prompt[1]")),
        (json!({ "prompt": 7 }), json!("prompt")),
        (json!({ "prompt": ["a", 1] }), json!("prompt")),
        (json!({ "prompt": [-1] }), json!("prompt")),
        (json!({ "prompt": { "text": "a" } }), json!("prompt")),
        (json!({ "prompt": vec!["a"; 257] }), json!("prompt")),
        (json!({ "prompt": vec!["a"; 200], "n": 100 }), json!("n")),
        (json!({ "prompt": vec!["a"; 200], "best_of": 100 }), json!("best_of")),
        (json!({ "suffix": 1 }), json!("suffix")),
        (json!({ "echo": "yes" }), json!("echo")),
        (json!({ "n": 0 }), json!("n")),
        (json!({ "n": 2, "best_of": 1 }), json!("best_of")),
        (json!({ "best_of": 2, "stream": true }), json!("best_of")),
        (json!({ "logprobs": 21 }), json!("logprobs")),
        (json!({ "logprobs": true }), json!("logprobs")),
        (json!({ "max_tokens": 0 }), json!("max_tokens")),
        (json!({ "temperature": 3 }), json!("temperature")),
        (json!({ "stop": vec!["x"; 65] }), json!("stop")),
        (json!({ "response_format": { "type": "xml" } }), json!("response_format.type")),
    ] {
        let mut body = json!({ "model": "m", "prompt": "a" });
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let (status, answer) = answer(&server, &body).await;
        assert!(status == 400 || status == 404, "{fields}: {status} {answer}");
        assert_eq!(answer["error"]["param"], param, "{fields}: {answer}");
    }
    assert_eq!(engine.completion_requests(), [], "nothing of this reaches an engine");
}

#[tokio::test]
async fn a_stranger_sends_no_unknown_field_to_the_engine() {
    let engine = shouting();
    let server = TestServer::start_with(
        Arc::clone(&engine) as Arc<dyn Engine>,
        ServerConfig { allowed_hosts: vec!["hob.example".into()], ..ServerConfig::default() },
    )
    .await;
    let request = server.client.post(server.url("/v1/completions")).header("host", "hob.example");
    let body = json!({ "model": "m", "prompt": "a", "top_k": 3, "logit_bias": { "5": 1 } });
    let response = request.json(&body).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let warnings: Vec<_> = response.headers().get_all("x-hob-warning").iter().collect();
    assert_eq!(warnings, ["ignored=top_k"]);
    let asked: Vec<CompletionRequest> = engine.completion_requests();
    assert_eq!(asked[0].extra.keys().collect::<Vec<_>>(), ["logit_bias"]);
}

#[tokio::test]
async fn a_field_that_the_engine_cannot_honour_is_refused_by_its_name() {
    let fake = FakeServer::start(|request: &Recorded| match request.path.as_str() {
        "/v1/models" => models(),
        _ => Reply::json(
            501,
            r#"{"error":{"code":501,"message":"Infill is not supported by this model","type":"not_supported_error"}}"#,
        ),
    })
    .await;
    let server = TestServer::start(engine_at(&fake, Style::LLAMACPP)).await;
    for (fields, param) in
        [(json!({ "suffix": "b" }), "suffix"), (json!({ "echo": true, "logprobs": 1 }), "echo")]
    {
        let mut body = json!({ "model": "m", "prompt": "a" });
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let (status, answer) = answer(&server, &body).await;
        assert_eq!((status, &answer["error"]["param"]), (400, &json!(param)), "{answer}");
        assert_eq!(answer["error"]["code"], "unsupported_by_engine");
    }
}
