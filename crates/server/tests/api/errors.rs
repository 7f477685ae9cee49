//! Errors have the same body everywhere and a suitable status, and never look like an answer.

use std::sync::Arc;
use std::time::Duration;

use hob_config::ServerConfig;
use hob_engines::{EndpointOptions, Style};
use hob_testkit::{FakeServer, Reply, ScriptedEngine};
use reqwest::{Body, Method, Response};
use serde_json::{Value, json};

use crate::client::{RawConnection, asking, chunk, events};
use crate::support::{FINISH, TestServer, engine_at, engine_with, models};

async fn scripted() -> TestServer {
    TestServer::start(Arc::new(ScriptedEngine::saying(&["hi"]))).await
}

/// A server in front of an engine that has the model `m` and answers every question with `reply`.
async fn in_front_of(reply: Reply) -> (TestServer, FakeServer) {
    let fake = FakeServer::start(move |request| match request.method.as_str() {
        "GET" => models(),
        _ => reply.clone(),
    })
    .await;
    (TestServer::start(engine_at(&fake, Style::VLLM)).await, fake)
}

/// Status, type, param, code and message. Asserts that the body has exactly the documented format.
async fn error(response: Response) -> (u16, String, Option<String>, Option<String>, String) {
    let status = response.status().as_u16();
    assert_eq!(response.headers()["content-type"], "application/json");
    assert!(response.headers()["server"].to_str().unwrap().starts_with("hob/"));
    let body: Value = response.json().await.unwrap();
    let details = &body["error"];
    let text = |field: &str| details[field].as_str().map(str::to_owned);
    let whole = json!({ "detail": details["message"], "error": {
        "message": details["message"], "type": details["type"], "param": details["param"], "code": details["code"] } });
    assert_eq!(body, whole);
    (status, text("type").unwrap(), text("param"), text("code"), text("message").unwrap())
}

fn err(
    status: u16,
    kind: &str,
    param: Option<&str>,
    code: Option<&str>,
    message: &str,
) -> (u16, String, Option<String>, Option<String>, String) {
    (status, kind.into(), param.map(str::to_owned), code.map(str::to_owned), message.into())
}

#[tokio::test]
async fn an_error_names_the_wrong_field() {
    let server = scripted().await;
    let body = json!({ "model": "m", "messages": [
        { "role": "user", "content": "a" }, { "role": "user", "content": "b" }, { "role": "robot", "content": "c" } ] });
    insta::assert_json_snapshot!(server.chat(&body).await.json::<Value>().await.unwrap(), @r#"
    {
      "detail": "'robot' is not a role. Roles are system, developer, user, assistant, tool and function",
      "error": {
        "message": "'robot' is not a role. Roles are system, developer, user, assistant, tool and function",
        "type": "invalid_request_error",
        "param": "messages[2].role",
        "code": null
      }
    }
    "#);
    assert_eq!(
        error(server.chat(&body).await).await,
        err(
            400,
            "invalid_request_error",
            Some("messages[2].role"),
            None,
            "'robot' is not a role. Roles are system, developer, user, assistant, tool and function"
        )
    );
}

/// A base URL with a missing or a second `/v1` is the most common mistake.
#[tokio::test]
async fn a_mistyped_path_gets_a_suggestion() {
    let server = scripted().await;
    for (path, meant) in [
        ("/chat/completions", "/v1/chat/completions"),
        ("/v1/v1/embeddings", "/v1/embeddings"),
        ("/v1/chat/completion", "/v1/chat/completions"),
        ("/v1/chat/completions/", "/v1/chat/completions"),
        ("/v1/helth", "/health"),
    ] {
        let answer = server.client.post(server.url(path)).send().await.unwrap();
        let message = format!("{path} does not exist. Did you mean {meant}?");
        assert_eq!(error(answer).await, err(404, "invalid_request_error", None, None, &message));
    }
    // There is a page with that name, which a client of the API does not want.
    let list = server.client.get(server.url("/models")).header("accept", "application/json");
    let message = "/models does not exist. Did you mean /v1/models?";
    assert_eq!(
        error(list.send().await.unwrap()).await,
        err(404, "invalid_request_error", None, None, message)
    );
}

#[tokio::test]
async fn unknown_paths_and_methods_are_errors() {
    let server = scripted().await;
    let asked = async |method: Method, path: &str| {
        server.client.request(method, server.url(path)).send().await.unwrap()
    };
    assert_eq!(
        error(asked(Method::GET, "/v2/nothing").await).await,
        err(
            404,
            "invalid_request_error",
            None,
            None,
            "/v2/nothing does not exist. GET /openapi.json lists all paths"
        )
    );
    assert_eq!(
        error(asked(Method::GET, "/v1/models/nope").await).await,
        err(
            404,
            "invalid_request_error",
            Some("model"),
            Some("model_not_found"),
            "model 'nope' does not exist. GET /v1/models lists the models"
        )
    );
    assert_eq!(
        error(asked(Method::GET, "/v1/models/%ff").await).await,
        err(400, "invalid_request_error", None, None, "the model's id in the path is not valid UTF-8")
    );
    let wrong = asked(Method::GET, "/v1/chat/completions").await;
    assert_eq!(wrong.headers()["allow"], "POST");
    assert_eq!(
        error(wrong).await,
        err(
            405,
            "invalid_request_error",
            None,
            None,
            "/v1/chat/completions does not accept GET. GET /openapi.json lists its methods"
        )
    );
    assert_eq!(asked(Method::DELETE, "/health").await.status(), 405);
}

#[tokio::test]
async fn the_error_for_an_unknown_model_lists_the_known_ones() {
    let server = scripted().await;
    for stream in [false, true] {
        assert_eq!(
            error(server.chat(&asking(json!({ "model": "gpt-4", "stream": stream }))).await).await,
            err(
                404,
                "invalid_request_error",
                Some("model"),
                Some("model_not_found"),
                "scripted has no model 'gpt-4'; it has m. To let another model answer for this name, add it to [models.aliases] in \
                 config.toml and restart the server"
            )
        );
        assert_eq!(
            error(server.chat(&asking(json!({ "model": "qwen3:8b", "stream": stream }))).await).await,
            err(
                404,
                "invalid_request_error",
                Some("model"),
                Some("model_not_found"),
                "scripted has no model 'qwen3:8b'; it has m. Download it with 'hob model pull qwen3:8b'"
            )
        );
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_however_it_is_sent() {
    let config = ServerConfig { max_body_mb: 1, ..ServerConfig::default() };
    let server = TestServer::start_with(Arc::new(ScriptedEngine::saying(&["hi"])), config).await;
    let body = asking(json!({ "user": "x".repeat(24 << 20) })).to_string();
    let in_chunks: Vec<Result<Vec<u8>, std::io::Error>> =
        body.as_bytes().chunks(10_000).map(|chunk| Ok(chunk.to_vec())).collect();
    let announced = Body::from(body);
    let chunked = Body::wrap_stream(futures::stream::iter(in_chunks));
    for body in [announced, chunked] {
        let request = server.client.post(server.url("/v1/chat/completions"));
        let response = request.header("content-type", "application/json").body(body).send().await.unwrap();
        assert_eq!(
            error(response).await,
            err(
                413,
                "invalid_request_error",
                None,
                None,
                "the request body is larger than 1 MiB. Send a smaller one, or raise [server] max_body_mb"
            )
        );
    }
}

#[tokio::test]
async fn a_body_at_the_limit_is_accepted() {
    let config = ServerConfig { max_body_mb: 1, ..ServerConfig::default() };
    let server = TestServer::start_with(Arc::new(ScriptedEngine::saying(&["hi"])), config).await;
    let empty = asking(json!({ "user": "" })).to_string().len();
    let body = asking(json!({ "user": "x".repeat((1 << 20) - empty) }));
    assert_eq!(body.to_string().len(), 1 << 20);
    assert_eq!(server.chat(&body).await.status(), 200);
}

#[tokio::test]
async fn a_body_without_a_json_content_type_is_refused() {
    let server = scripted().await;
    let form = server.client.post(server.url("/v1/chat/completions"));
    let form = form.header("content-type", "application/x-www-form-urlencoded").body("model=m");
    assert_eq!(
        error(form.send().await.unwrap()).await,
        err(
            415,
            "invalid_request_error",
            None,
            None,
            "the content type is 'application/x-www-form-urlencoded'; send 'content-type: application/json'"
        )
    );
    let nothing = server.client.post(server.url("/v1/chat/completions")).send().await.unwrap();
    assert_eq!(nothing.status(), 415);
}

#[tokio::test]
async fn a_body_that_never_arrives_times_out() {
    let config = ServerConfig { body_timeout: Duration::from_millis(50), ..ServerConfig::default() };
    let server = TestServer::start_with(Arc::new(ScriptedEngine::saying(&["hi"])), config).await;
    let mut raw = RawConnection::connect(&server).await;
    raw.send("POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{\"model\"")
        .await;
    let answer = raw.rest().await;
    assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
    assert!(answer.contains(r#"{"detail":"the request body stalled: "#), "{answer}");
}

#[tokio::test]
async fn an_unreachable_engine_is_a_bad_gateway_and_not_a_broken_stream() {
    let free = format!("127.0.0.1:{}", hob_testkit::free_port());
    let options = EndpointOptions::new("vllm", format!("http://{free}"));
    let server = TestServer::start(engine_with(options, Style::VLLM)).await;
    for stream in [false, true] {
        let (status, kind, param, code, message) =
            error(server.chat(&asking(json!({ "stream": stream }))).await).await;
        assert_eq!((status, kind.as_str(), param), (502, "engine_error", None));
        assert_eq!(code.as_deref(), Some("engine_unreachable"));
        assert!(message.starts_with(&format!("cannot reach vllm at http://{free}: ")), "{message}");
    }
}

#[tokio::test]
async fn a_silent_engine_is_a_gateway_timeout() {
    let fake = FakeServer::start(|request| match request.method.as_str() {
        "GET" => models(),
        _ => Reply::silence(),
    })
    .await;
    let timeout = Duration::from_secs(1);
    let options = EndpointOptions { timeout, ..EndpointOptions::new("vllm", fake.url()) };
    let server = TestServer::start(engine_with(options, Style::VLLM)).await;
    for stream in [false, true] {
        assert_eq!(
            error(server.chat(&asking(json!({ "stream": stream }))).await).await,
            err(504, "engine_error", None, Some("engine_timeout"), "vllm did not answer within 1 s")
        );
    }
}

#[tokio::test]
async fn an_engines_error_message_is_unchanged() {
    for (reply, expected) in [
        (
            Reply::transcript("llama-server/err_ctx_overflow"),
            err(
                400,
                "invalid_request_error",
                Some("messages"),
                Some("context_length_exceeded"),
                "This model's maximum context length is 2048 tokens. However, your messages resulted in 12031 tokens. Please \
                 reduce the length of the messages. (vllm answered 400: request (12031 tokens) exceeds the available context size \
                 (2048 tokens), try increasing it)",
            ),
        ),
        (
            Reply::json(400, r#"{"error":{"message":"the input length exceeds the context length"}}"#),
            err(
                400,
                "invalid_request_error",
                Some("messages"),
                Some("context_length_exceeded"),
                "vllm answered 400: the input length exceeds the context length",
            ),
        ),
        (
            Reply::json(
                400,
                r#"{"error":{"message":"not that","type":"invalid_request_error","code":"content_filter"}}"#,
            ),
            err(400, "invalid_request_error", None, Some("content_filter"), "vllm answered 400: not that"),
        ),
        (
            Reply::json(503, r#"{"error":{"message":"loading","type":"unavailable_error","code":503}}"#),
            err(502, "engine_error", None, Some("unavailable_error"), "vllm answered 503: loading"),
        ),
        (
            Reply::json(401, r#"{"error":{"message":"bad key","code":"invalid_api_key"}}"#),
            err(
                502,
                "engine_error",
                None,
                Some("engine_key_refused"),
                "vllm answered 401: bad key. The engine refused the server's key, not yours",
            ),
        ),
        (
            Reply::json(422, r#"{"error":{"message":"no such knob","param":"top_k"}}"#),
            err(
                422,
                "invalid_request_error",
                Some("top_k"),
                Some("engine_refused"),
                "vllm answered 422: no such knob",
            ),
        ),
        (
            Reply::json(500, r#"{"error":"out of memory"}"#),
            err(502, "engine_error", None, Some("engine_failed"), "vllm answered 500: out of memory"),
        ),
        (
            Reply::json(401, r#"{"error":"bad key"}"#),
            err(
                502,
                "engine_error",
                None,
                Some("engine_key_refused"),
                "vllm answered 401: bad key. The engine refused the server's key, not yours",
            ),
        ),
        (
            Reply::json(200, "not json"),
            err(
                502,
                "engine_error",
                None,
                Some("engine_answer_malformed"),
                "vllm gave an answer that cannot be read: expected ident at line 1 column 2",
            ),
        ),
    ] {
        let (server, _fake) = in_front_of(reply).await;
        assert_eq!(error(server.chat(&asking(json!({}))).await).await, expected);
    }
}

#[tokio::test]
async fn the_retry_after_header_of_a_busy_engine_is_passed_on() {
    for (own_code, code) in
        [("null", "rate_limit_exceeded"), ("\"insufficient_quota\"", "insufficient_quota")]
    {
        let body = format!(r#"{{"error":{{"message":"slow down","code":{own_code}}}}}"#);
        let (server, _fake) = in_front_of(Reply::json(429, body).header("retry-after", "17")).await;
        for stream in [false, true] {
            let response = server.chat(&asking(json!({ "stream": stream }))).await;
            assert_eq!(response.headers()["retry-after"], "17");
            assert_eq!(
                error(response).await,
                err(429, "rate_limit_error", None, Some(code), "vllm answered 429: slow down")
            );
        }
    }
}

#[tokio::test]
async fn an_error_in_the_first_event_is_a_status_and_not_a_stream() {
    let (server, _fake) =
        in_front_of(Reply::sse("data: {\"error\":{\"message\":\"no slot\",\"code\":503}}\n\n")).await;
    assert_eq!(
        error(server.chat(&asking(json!({ "stream": true }))).await).await,
        err(502, "engine_error", None, Some("engine_failed"), "vllm answered 503: no slot")
    );
    let (server, _fake) = in_front_of(Reply::sse("")).await;
    assert_eq!(
        error(server.chat(&asking(json!({ "stream": true }))).await).await,
        err(
            502,
            "engine_error",
            None,
            Some("engine_answer_interrupted"),
            "vllm broke off its answer: the connection closed before the answer was complete"
        )
    );
}

#[tokio::test]
async fn a_stream_that_breaks_never_looks_complete() {
    let half = chunk(r#"{"content":"Hal"}"#);
    let reported =
        format!("{half}data: {{\"error\":{{\"message\":\"out of memory\",\"code\":\"no_memory\"}}}}\n\n");
    let cut = (
        "vllm broke off its answer: the connection closed before the answer was complete",
        "engine_answer_interrupted",
    );
    for (reply, (message, code)) in [
        (Reply::sse(half.as_str()), cut),
        (Reply::sse(format!("{half}data: [DONE]\n\n")), cut),
        // An error that the engine reports is not a lost connection.
        (Reply::sse(reported), ("vllm answered 500: out of memory", "no_memory")),
    ] {
        let (server, _fake) = in_front_of(reply).await;
        let response = server.chat(&asking(json!({ "stream": true }))).await;
        assert_eq!(response.status(), 200);
        let expected = format!(
            "data: {{\"id\":\"[id]\",\"object\":\"chat.completion.chunk\",\"created\":0,\"model\":\"m\",\
             \"choices\":[{{\"index\":0,\"delta\":{{\"role\":\"assistant\"}},\"finish_reason\":null}}]}}\n\n\
             data: {{\"id\":\"[id]\",\"object\":\"chat.completion.chunk\",\"created\":0,\"model\":\"m\",\
             \"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"Hal\"}},\"finish_reason\":null}}]}}\n\n\
             data: {{\"error\":{{\"message\":\"{message}\",\"type\":\"engine_error\",\
             \"param\":null,\"code\":\"{code}\"}}}}\n\n"
        );
        assert_eq!(events(response).await, expected);
    }
}

#[tokio::test]
async fn a_connection_cut_in_the_middle_of_a_stream_is_an_error_event() {
    let (server, _fake) = in_front_of(Reply::sse(chunk(r#"{"content":"Hal"}"#)).then_cut()).await;
    let text = events(server.chat(&asking(json!({ "stream": true }))).await).await;
    assert!(text.contains("data: {\"error\":{\"message\":\"vllm broke off its answer: "), "{text}");
    assert!(!text.contains("[DONE]") && !text.contains("\"finish_reason\":\"stop\""), "{text}");
}

#[tokio::test]
async fn tools_that_the_engine_refuses_are_dropped_once_with_a_warning() {
    let answer = r#"{"model":"m","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#;
    let fake = FakeServer::start(move |request| match request.method.as_str() {
        "GET" => models(),
        _ if request.text().contains("\"tools\"") => Reply::json(400, r#"{"error":"no tools here"}"#),
        _ if request.text().contains("\"stream\":true") => {
            Reply::sse(format!("{}{FINISH}", chunk(r#"{"content":"hi"}"#)))
        }
        _ => Reply::json(200, answer),
    })
    .await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    for stream in [false, true] {
        let tools = json!([{ "type": "function", "function": { "name": "f" } }]);
        let response = server.chat(&asking(json!({ "stream": stream, "tools": tools }))).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["x-hob-warning"], "tools-dropped");
        assert!(response.text().await.unwrap().contains("hi"));
    }
    let asked = fake.requests().iter().filter(|request| request.method == "POST").count();
    assert_eq!(asked, 4);
}
