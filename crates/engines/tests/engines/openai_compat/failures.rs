//! Engines that reject requests, send invalid data, hang, or break off.

use std::time::Duration;

use futures::StreamExt;
use hob_core::{AnswerWarning, Delta, Engine, EngineError};
use hob_engines::{Endpoint, EndpointOptions, OpenAiCompat, Style};
use hob_testkit::{FakeServer, Reply, Transcript};

use crate::support::{
    CAPITAL, all, asking, asking_for_the_weather, closed_endpoint, endpoint, hasty_endpoint,
};

const HALF: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"half\"}}]}\n\n";

fn vllm(server: &FakeServer) -> OpenAiCompat {
    OpenAiCompat::new(Style::VLLM, endpoint("vllm", server))
}

async fn refusal(style: Style, reply: Reply) -> EngineError {
    let server = FakeServer::replying(reply).await;
    let engine = OpenAiCompat::new(style, endpoint(style.key, &server));
    engine.generate(&asking(CAPITAL, 8)).await.unwrap_err()
}

/// The deltas of a stream, and its error.
async fn broken(reply: Reply) -> (Vec<Delta>, String) {
    let server = FakeServer::replying(reply).await;
    let stream = vllm(&server).stream(&asking(CAPITAL, 8)).await.unwrap();
    let (deltas, error) = all(stream).await;
    (deltas, error.expect("a broken stream").to_string())
}

#[tokio::test]
async fn a_prompt_that_is_too_long_has_the_engines_error() {
    for (style, recording, words, field, own_code, limit) in [
        (
            Style::VLLM,
            "vllm/err_ctx_overflow",
            "maximum context length is 2048 tokens",
            Some("input_tokens"),
            None,
            2048,
        ),
        (Style::SGLANG, "sglang/err_ctx_overflow", "The input (12031 tokens) is longer", None, None, 8192),
        (
            Style::LLAMACPP,
            "llama-server/err_ctx_overflow",
            "exceeds the available context size",
            None,
            Some("exceed_context_size_error"),
            2048,
        ),
    ] {
        let error = refusal(style, Reply::transcript(recording)).await;
        assert_eq!(error.context_overflow().and_then(|overflow| overflow.limit), Some(limit), "{recording}");
        let EngineError::Refused { engine, status, message, code, param, retry_after } = error else {
            panic!("{recording}: {error}")
        };
        assert_eq!((engine.as_str(), status, param.as_deref(), retry_after), (style.key, 400, field, None));
        assert_eq!(code.as_deref(), own_code, "{recording}");
        assert!(message.contains(words), "{message}");
    }
}

#[tokio::test]
async fn an_unknown_model_has_its_own_error() {
    let error = refusal(Style::VLLM, Reply::transcript("vllm/err_unknown_model")).await;
    assert_eq!(error.to_string(), "vllm has no model 'smollm2'");
    assert!(matches!(error, EngineError::ModelNotFound { .. }));
    // A 404 for the path is not a 404 for the model.
    let error = refusal(Style::LLAMACPP, Reply::transcript("llama-server/err_404")).await;
    assert_eq!(error.to_string(), "llamacpp answered 404: File Not Found");
}

#[tokio::test]
async fn a_refused_body_keeps_the_engines_complaint() {
    for (style, recording, words) in [
        (Style::VLLM, "vllm/err_bad_json", "JSON decode error"),
        (Style::SGLANG, "sglang/err_bad_json", "answered 4"),
        (Style::LLAMACPP, "llama-server/err_bad_json", "parse error at line 1"),
        (Style::SGLANG, "sglang/json_schema", "--grammar-backend none"),
    ] {
        let error = refusal(style, Reply::transcript(recording)).await.to_string();
        assert!(error.contains(words), "{recording}: {error}");
    }
}

#[tokio::test]
async fn a_busy_engine_has_retry_after() {
    let reply = Reply::json(503, r#"{"error":{"message":"loading model"}}"#).header("retry-after", "7");
    let error = refusal(Style::LLAMACPP, reply).await;
    assert!(matches!(error, EngineError::Refused { status: 503, retry_after: Some(7), .. }), "{error:?}");
}

#[tokio::test]
async fn a_page_of_html_is_never_shown() {
    let reply = Reply::new(502, "text/html", "<html><body>nginx</body></html>");
    assert_eq!(refusal(Style::VLLM, reply).await.to_string(), "vllm answered 502: Bad Gateway");
}

#[tokio::test]
async fn an_error_under_a_good_status_is_an_error() {
    let reply = Reply::json(200, r#"{"error":{"message":"upstream is down"}}"#);
    let error = refusal(Style::LITELLM, reply).await;
    assert_eq!(error.to_string(), "litellm answered 500: upstream is down");
}

#[tokio::test]
async fn an_answer_that_is_none_is_malformed() {
    for nonsense in ["", "{", "[]", "{}", r#"{"choices":[]}"#, r#"{"choices":[{"message":{}}]}"#] {
        let error = refusal(Style::VLLM, Reply::json(200, nonsense)).await;
        assert!(matches!(error, EngineError::Malformed { .. }), "{nonsense}: {error:?}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let stranger = FakeServer::replying(Reply::transcript("vllm/chat")).await;
    let reply = Reply::json(307, "").header("location", &format!("{}/v1/chat/completions", stranger.url()));
    let error = refusal(Style::VLLM, reply).await;
    assert!(matches!(error, EngineError::Refused { status: 307, .. }), "{error:?}");
    assert_eq!(stranger.requests(), []);
}

#[tokio::test]
async fn refused_tools_are_dropped_once_with_a_warning() {
    let server = FakeServer::start(|request| {
        if request.text().contains("\"tools\"") {
            Reply::transcript("sglang/fs_required")
        } else if request.text().contains("\"stream\":true") {
            Reply::transcript("sglang/chat_stream")
        } else {
            Reply::transcript("sglang/chat")
        }
    })
    .await;
    let engine = OpenAiCompat::new(Style::SGLANG, endpoint("sglang", &server));
    let request = asking_for_the_weather(64);

    let generation = engine.generate(&request).await.unwrap();
    assert_eq!(generation.answer.content, "The capital of France is Paris.");
    assert_eq!(generation.warnings, [AnswerWarning::ToolsDropped]);
    assert_eq!(offered(&server), [true, false]);

    let stream = engine.stream(&request).await.unwrap();
    assert_eq!(stream.warnings, [AnswerWarning::ToolsDropped]);
    assert!(all(stream).await.1.is_none());
    assert_eq!(offered(&server), [true, false, true, false]);
}

/// Which of the requests so far had tools.
fn offered(server: &FakeServer) -> Vec<bool> {
    server.requests().iter().map(|request| request.text().contains("\"tools\"")).collect()
}

#[tokio::test]
async fn a_request_that_fails_without_tools_too_has_the_error_that_matters() {
    let both = async |status| {
        let server = FakeServer::start(move |request| {
            if request.text().contains("\"tools\"") {
                Reply::json(400, r#"{"error":{"message":"the first"}}"#)
            } else {
                Reply::json(status, r#"{"error":{"message":"the second"}}"#).header("retry-after", "7")
            }
        })
        .await;
        let error = vllm(&server).generate(&asking_for_the_weather(64)).await.unwrap_err();
        assert_eq!(offered(&server), [true, false]);
        error
    };
    // The tools were not the reason.
    assert_eq!(both(400).await.to_string(), "vllm answered 400: the first");
    let busy = both(429).await;
    assert!(matches!(busy, EngineError::Refused { status: 429, retry_after: Some(7), .. }), "{busy:?}");
}

#[tokio::test]
async fn nothing_else_is_asked_twice() {
    for (reply, request) in
        [(Reply::json(400, "{}"), asking(CAPITAL, 8)), (Reply::json(500, "{}"), asking_for_the_weather(64))]
    {
        let server = FakeServer::replying(reply).await;
        assert!(vllm(&server).generate(&request).await.is_err());
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn an_engine_that_is_not_there_is_unreachable() {
    let endpoint = closed_endpoint("vllm").await;
    let address = endpoint.host().to_owned();
    let engine = OpenAiCompat::new(Style::VLLM, endpoint);
    let error = engine.generate(&asking(CAPITAL, 8)).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot reach vllm at {address}: Connection refused")), "{error}");
    let error = engine.stream(&asking(CAPITAL, 8)).await.err();
    assert!(matches!(error, Some(EngineError::Unreachable { .. })), "{error:?}");
    assert!(!engine.health().await);
}

#[tokio::test]
async fn an_engine_that_is_silent_times_out() {
    let server = FakeServer::replying(Reply::silence()).await;
    let engine = OpenAiCompat::new(Style::VLLM, hasty_endpoint("vllm", &server));
    let error = engine.generate(&asking(CAPITAL, 8)).await.unwrap_err();
    assert_eq!(error.to_string(), "vllm did not answer within 1 s");
    let error = engine.stream(&asking(CAPITAL, 8)).await.err();
    assert!(matches!(error, Some(EngineError::Timeout { .. })), "{error:?}");
}

#[tokio::test]
async fn a_stream_that_stalls_times_out() {
    let server = FakeServer::replying(Reply::sse(HALF).then_silence()).await;
    let mut timeout = Duration::from_secs(1);
    loop {
        let options = EndpointOptions { timeout, ..EndpointOptions::new("vllm", server.url()) };
        let engine = OpenAiCompat::new(Style::VLLM, Endpoint::new(options).unwrap());
        let (deltas, error) = match engine.stream(&asking(CAPITAL, 8)).await {
            Ok(stream) => all(stream).await,
            Err(error) => (Vec::new(), Some(error)),
        };
        assert!(matches!(error, Some(EngineError::Timeout { .. })), "{error:?}");
        // On a busy machine the time may be up before the first half arrives.
        if !deltas.is_empty() {
            assert_eq!(deltas, [Delta::text("half")]);
            return;
        }
        timeout *= 2;
    }
}

#[tokio::test]
async fn only_a_good_answer_to_the_probe_is_health() {
    for (reply, healthy) in [
        (Reply::transcript("vllm/models"), true),
        (Reply::json(503, "{}"), false),
        (Reply::json(302, "").header("location", "/"), false),
    ] {
        let server = FakeServer::replying(reply).await;
        let engine = vllm(&server);
        // On a busy machine the time of a probe may be up before its answer, or even its request, arrives.
        let probed = async {
            while engine.health().await != healthy || server.requests().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), probed).await.expect("the health of the answer");
        assert_eq!(server.requests()[0].path, "/v1/models");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_never_looks_complete() {
    let recorded = Transcript::load("vllm/chat_stream_usage").body;
    let middle = recorded.len() / 2;
    for reply in [
        Reply::sse(HALF).then_cut(),
        Reply::sse(HALF),
        Reply::sse(format!("{HALF}data: [DONE]\n\n")),
        Reply::sse(&recorded[..middle]).then_cut(),
        Reply::sse(&recorded[..middle]),
    ] {
        let (deltas, error) = broken(reply).await;
        assert!(
            !deltas.iter().any(|delta| matches!(delta, Delta::Done { .. } | Delta::Finish { .. })),
            "{deltas:?}"
        );
        assert!(error.starts_with("vllm broke off its answer: "), "{error}");
    }
}

#[tokio::test]
async fn an_error_in_the_middle_of_a_stream_is_passed_on() {
    let event = "data: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\n";
    assert_eq!(
        broken(Reply::sse(format!("{HALF}{event}"))).await,
        (vec![Delta::text("half")], "vllm answered 500: out of memory".to_owned())
    );
    assert_eq!(broken(Reply::sse(event)).await, (Vec::new(), "vllm answered 500: out of memory".to_owned()));
}

#[tokio::test]
async fn a_frame_without_end_does_not_fill_our_memory() {
    let babble = format!("{HALF}data: {}", "x".repeat(17 << 20));
    assert_eq!(
        broken(Reply::sse(babble)).await,
        (vec![Delta::text("half")], "vllm broke off its answer: a frame is longer than 16 MiB".to_owned())
    );
}

#[tokio::test]
async fn an_answer_without_end_does_not_fill_our_memory() {
    let babble = format!("{{\"choices\": \"{}", "x".repeat(65 << 20));
    let error = refusal(Style::VLLM, Reply::json(200, babble)).await;
    assert_eq!(
        error.to_string(),
        "vllm gave an answer that cannot be read: the response is longer than 64 MiB"
    );
}

#[tokio::test]
async fn a_list_without_end_does_not_fill_our_memory() {
    let models = vec![r#"{"id":"m"}"#; (8 << 20) / 11 + 1].join(",");
    let server = FakeServer::replying(Reply::json(200, format!("{{\"data\":[{models}]}}"))).await;
    let error = vllm(&server).list_models().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "vllm gave an answer that cannot be read: the response is longer than 8 MiB"
    );
}

#[tokio::test]
async fn a_stream_is_the_same_in_any_packets() {
    for recording in ["vllm/fs_required_stream", "llama-server/chat_stream_usage"] {
        let mut packings = Vec::new();
        for reply in [
            Reply::transcript(recording),
            Reply::transcript(recording).in_packets_of(1),
            Reply::sse(Transcript::load(recording).body.replace("\n\n", "\r\n\r\n: keep-alive\r\n\r\n")),
        ] {
            let server = FakeServer::replying(reply).await;
            let stream = vllm(&server).stream(&asking(CAPITAL, 8)).await.unwrap();
            let (deltas, error) = all(stream).await;
            assert!(error.is_none(), "{recording}: {error:?}");
            packings.push(deltas);
        }
        assert_eq!(packings[1], packings[0], "{recording} byte by byte");
        assert_eq!(packings[2], packings[0], "{recording} with comments and carriage returns");
    }
}

#[tokio::test]
async fn a_stream_that_is_dropped_hangs_up_on_the_engine() {
    let server = FakeServer::replying(Reply::sse(HALF).then_silence()).await;
    let mut stream = vllm(&server).stream(&asking(CAPITAL, 8)).await.unwrap();
    assert_eq!(stream.deltas.next().await.unwrap().unwrap(), Delta::text("half"));
    assert_eq!(server.hang_ups(), 0);
    drop(stream);
    tokio::time::timeout(Duration::from_secs(60), server.hung_up(1)).await.expect("the engine is left alone");
}

#[tokio::test]
async fn a_question_that_is_dropped_hangs_up_on_the_engine() {
    let server = FakeServer::replying(Reply::silence()).await;
    let engine = vllm(&server);
    let request = asking(CAPITAL, 8);
    let question = engine.generate(&request);
    tokio::select! {
        answer = question => panic!("{answer:?}"),
        () = asked(&server) => {}
    }
    tokio::time::timeout(Duration::from_secs(60), server.hung_up(1)).await.expect("the engine is left alone");
}

/// Waits until a request has arrived.
async fn asked(server: &FakeServer) {
    while server.requests().is_empty() {
        tokio::task::yield_now().await;
    }
}
