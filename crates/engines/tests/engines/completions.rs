//! Texts that are continued, split into tokens and compared, over real sockets, against recordings of real engines where there
//! are any.

use std::num::NonZeroU32;
use std::time::Duration;

use hob_core::{
    Answer, CompletionRequest, Delta, DetokenizeRequest, Engine, EngineError, FinishReason, Generation,
    MaxTokens, Prompt, RelevanceScore, RerankRequest, Reranking, Sampling, Temperature, TextDelta,
    TokenizeInput, TokenizeRequest, Tokenized, Usage,
};
use hob_engines::{Ollama, OpenAiCompat, Style};
use hob_testkit::{FakeServer, Recorded, Reply, Transcript};
use serde_json::{Value, json};

use crate::support::{all, asking, body, endpoint};

/// The engines with recordings, and their directories.
const RECORDED: [(Style, &str); 3] =
    [(Style::VLLM, "vllm"), (Style::SGLANG, "sglang"), (Style::LLAMACPP, "llama-server")];

fn engine(style: Style, server: &FakeServer) -> OpenAiCompat {
    OpenAiCompat::new(style, endpoint(style.key, server))
}

fn text(prompt: &str, max_tokens: i64) -> CompletionRequest {
    CompletionRequest {
        model: "smollm2".into(),
        prompt: prompt.into(),
        temperature: Some(Temperature::new(0.0).unwrap()),
        max_tokens: Some(MaxTokens::new(max_tokens).unwrap()),
        ..CompletionRequest::default()
    }
}

fn written(content: &str, finish_reason: FinishReason) -> Answer {
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

fn unsupported(error: &EngineError) -> Option<&str> {
    match error {
        EngineError::Unsupported { field, .. } => Some(field),
        _ => None,
    }
}

#[tokio::test]
async fn every_engine_continues_a_text_as_it_stands() {
    for (style, place) in RECORDED {
        let recording = format!("{place}/completions");
        let server = FakeServer::replying(Reply::transcript(&recording)).await;
        let generation = engine(style, &server).complete(&text("Once upon a time", 8)).await.unwrap();
        let city = if style == Style::LLAMACPP { "New" } else { "Nova" };
        let expected = Generation {
            model: "smollm2".into(),
            answer: written(&format!(", the city of {city} Haven was a"), FinishReason::Length),
            alternatives: Vec::new(),
            usage: Some(Usage {
                prompt_tokens: 4,
                completion_tokens: 8,
                cached_tokens: (style == Style::LLAMACPP).then_some(0),
                reasoning_tokens: None,
                load_time: None,
            }),
            warnings: Vec::new(),
        };
        assert_eq!(generation, expected, "{place}");
        let recorded = Transcript::load(&recording);
        let sent = &server.requests()[0];
        let mut expected = body(&recorded.request_body);
        expected["stream"] = json!(false);
        assert_eq!((&sent.path, body(&sent.text())), (&recorded.path, expected), "{place}");
    }
}

#[tokio::test]
async fn a_streamed_text_comes_with_its_probabilities() {
    let chunk = |text: &str, logprobs: Value, reason: Value| {
        let choice = json!({ "index": 0, "text": text, "logprobs": logprobs, "finish_reason": reason });
        format!("data: {}\n\n", json!({ "object": "text_completion", "choices": [choice] }))
    };
    let legacy = json!({
        "tokens": [" a"], "token_logprobs": [-0.5], "top_logprobs": [{ " a": -0.5 }], "text_offset": [4],
    });
    let stream = [
        chunk(" a", legacy, Value::Null),
        chunk(" b", Value::Null, Value::Null),
        chunk("", Value::Null, json!("length")),
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":2}}\n\n".to_owned(),
        "data: [DONE]\n\n".to_owned(),
    ];
    let server = FakeServer::replying(Reply::sse(stream.concat()).in_packets_of(7)).await;
    let request = CompletionRequest {
        sampling: Sampling { logprobs: true, top_logprobs: Some(1), ..Sampling::default() },
        ..text("Once", 2)
    };
    let stream = engine(Style::VLLM, &server).stream_completion(&request).await.unwrap();
    let (deltas, error) = all(stream).await;
    let token = json!({ "token": " a", "logprob": -0.5, "bytes": [32, 97] });
    let mut entry = token.clone();
    entry["top_logprobs"] = json!([token]);
    let usage = Usage {
        prompt_tokens: 4,
        completion_tokens: 2,
        cached_tokens: None,
        reasoning_tokens: None,
        load_time: None,
    };
    let expected = [
        Delta::Text(TextDelta {
            choice: 0,
            text: " a".into(),
            logprobs: Some(Box::new(json!({ "content": [entry] }))),
        }),
        Delta::text(" b"),
        Delta::Finish { choice: 0, reason: FinishReason::Length },
        Delta::Done { usage: Some(usage) },
    ];
    assert!(error.is_none(), "{error:?}");
    assert_eq!(deltas, expected);
    let sent = body(&server.requests()[0].text());
    assert_eq!(
        (&sent["logprobs"], &sent["stream_options"]),
        (&json!(1.0), &json!({ "include_usage": true }))
    );
}

#[tokio::test]
async fn a_stream_that_is_cut_off_is_an_error() {
    let chunk = "data: {\"choices\":[{\"index\":0,\"text\":\" a\",\"finish_reason\":null}]}\n\n";
    for ending in ["", "data: [DONE]\n\n"] {
        let server = FakeServer::replying(Reply::sse(format!("{chunk}{ending}"))).await;
        let stream = engine(Style::VLLM, &server).stream_completion(&text("Once", 2)).await.unwrap();
        let (deltas, error) = all(stream).await;
        assert_eq!(deltas, [Delta::text(" a")]);
        assert!(matches!(error, Some(EngineError::Interrupted { .. })), "{error:?}");
    }
}

/// llama.cpp's own answer to `/infill`.
fn filled(content: &str) -> Value {
    json!({
        "index": 0, "content": content, "tokens": [], "stop": true, "model": "qwen", "tokens_predicted": 3,
        "tokens_evaluated": 9, "stop_type": "eos", "truncated": false, "timings": { "cache_n": 4 },
    })
}

#[tokio::test]
async fn llama_cpp_fills_a_gap_at_its_own_path_as_often_as_is_asked() {
    let server = FakeServer::start(|request: &Recorded| {
        let sent: Value = serde_json::from_slice(&request.body).unwrap();
        let reply = filled(&format!("return {}", sent["seed"]));
        match sent["stream"] == json!(true) {
            false => Reply::json(200, reply.to_string()),
            true => {
                let piece = json!({ "index": 0, "content": "return ", "stop": false, "tokens_predicted": 1 });
                Reply::sse(format!("data: {piece}\n\ndata: {}\n\n", filled("x")))
            }
        }
    })
    .await;
    let request = CompletionRequest {
        suffix: Some("\n}".into()),
        sampling: Sampling { seed: Some(5), n: NonZeroU32::new(2), ..Sampling::default() },
        ..text("fn one() {\n", 16)
    };
    let engine = engine(Style::LLAMACPP, &server);
    let generation = engine.complete(&request).await.unwrap();
    let contents: Vec<&str> = generation.answers().map(|answer| answer.content.as_str()).collect();
    assert_eq!((contents, generation.model.as_str()), (vec!["return 5", "return 6"], "qwen"));
    let usage = Usage {
        prompt_tokens: 18,
        completion_tokens: 6,
        cached_tokens: Some(8),
        reasoning_tokens: None,
        load_time: None,
    };
    assert_eq!(generation.usage, Some(usage));
    let sent = &server.requests()[0];
    assert_eq!(
        (sent.path.as_str(), body(&sent.text())),
        (
            "/infill",
            json!({
                "input_prefix": "fn one() {\n", "input_suffix": "\n}", "stream": false, "n_predict": 16.0,
                "temperature": 0.0, "seed": 5.0,
            })
        )
    );

    let request = CompletionRequest { sampling: Sampling::default(), ..request };
    let (deltas, error) = all(engine.stream_completion(&request).await.unwrap()).await;
    let usage = Usage {
        prompt_tokens: 9,
        completion_tokens: 3,
        cached_tokens: Some(4),
        reasoning_tokens: None,
        load_time: None,
    };
    let expected = [
        Delta::text("return "),
        Delta::text("x"),
        Delta::Finish { choice: 0, reason: FinishReason::Stop },
        Delta::Done { usage: Some(usage) },
    ];
    assert!(error.is_none(), "{error:?}");
    assert_eq!(deltas, expected);
}

#[tokio::test]
async fn a_model_that_fills_no_gaps_is_told_by_the_name_of_the_field() {
    let refusal = r#"{"error":{"code":501,"message":"Infill is not supported by this model: prefix token is missing. ","type":"not_supported_error"}}"#;
    let server = FakeServer::replying(Reply::json(501, refusal)).await;
    let request = CompletionRequest { suffix: Some("}".into()), ..text("{", 4) };
    let error = engine(Style::LLAMACPP, &server).complete(&request).await.unwrap_err();
    assert_eq!(unsupported(&error), Some("suffix"), "{error}");

    let server = FakeServer::replying(Reply::json(200, r#"{"tokens":[1,2,3],"count":3}"#)).await;
    let error = engine(Style::VLLM, &server).complete(&request).await.unwrap_err();
    assert_eq!(unsupported(&error), Some("suffix"), "{error}");

    let refusal = r#"{"error":"registry.ollama.ai/library/smollm2:latest does not support insert"}"#;
    let server = FakeServer::replying(Reply::json(400, refusal)).await;
    let error = Ollama::new(endpoint("ollama", &server)).complete(&request).await.unwrap_err();
    assert_eq!(unsupported(&error), Some("suffix"), "{error}");
}

#[tokio::test]
async fn vllm_and_sglang_fill_a_gap_with_the_markers_that_the_model_has() {
    for style in [Style::VLLM, Style::SGLANG] {
        let server = FakeServer::start(|request: &Recorded| {
            let sent: Value = serde_json::from_slice(&request.body).unwrap();
            match request.path.as_str() {
                // A model of the StarCoder family.
                "/tokenize" if sent["prompt"].as_str().unwrap().starts_with("<fim_") => {
                    Reply::json(200, r#"{"tokens":[7],"count":1,"max_model_len":2048}"#)
                }
                "/tokenize" => Reply::json(200, r#"{"tokens":[1,2],"count":2,"max_model_len":2048}"#),
                _ => Reply::json(
                    200,
                    r#"{"model":"m","choices":[{"index":0,"text":"middle","finish_reason":"stop"}]}"#,
                ),
            }
        })
        .await;
        let engine = engine(style, &server);
        let request = CompletionRequest { suffix: Some("b".into()), ..text("a", 4) };
        for _ in 0..2 {
            assert_eq!(engine.complete(&request).await.unwrap().answer.content, "middle");
        }
        let sent: Vec<Value> = server
            .requests()
            .iter()
            .filter(|request| request.path == "/v1/completions")
            .map(|request| body(&request.text()))
            .collect();
        assert_eq!(sent[0]["prompt"], json!("<fim_prefix>a<fim_suffix>b<fim_middle>"));
        assert_eq!(sent[0].get("suffix"), None);
        assert_eq!(server.requests().len(), 4 + 2, "the markers are looked up once");
    }
}

#[tokio::test]
async fn ollama_continues_a_text_without_its_template() {
    let server = FakeServer::replying(Reply::transcript("ollama/generate_raw")).await;
    let ollama = Ollama::new(endpoint("ollama", &server));
    let request = CompletionRequest {
        sampling: Sampling { seed: Some(1), ..Sampling::default() },
        ..text("Once upon", 4)
    };
    let generation = ollama.complete(&request).await.unwrap();
    let usage = Usage {
        prompt_tokens: 2,
        completion_tokens: 4,
        cached_tokens: None,
        reasoning_tokens: None,
        load_time: Some(Duration::from_nanos(21_280_872)),
    };
    let expected = Generation {
        model: "smollm2".into(),
        answer: written(" the scene, a", FinishReason::Length),
        alternatives: Vec::new(),
        usage: Some(usage),
        warnings: Vec::new(),
    };
    assert_eq!(generation, expected);
    let recorded = Transcript::load("ollama/generate_raw");
    let sent = &server.requests()[0];
    let mut expected = body(&recorded.request_body);
    expected["truncate"] = json!(false);
    expected["shift"] = json!(false);
    assert_eq!((&sent.path, body(&sent.text())), (&recorded.path, expected));

    let server = FakeServer::replying(Reply::transcript("ollama/generate_stream")).await;
    let ollama = Ollama::new(endpoint("ollama", &server));
    let (deltas, error) = all(ollama.stream_completion(&request).await.unwrap()).await;
    let usage = Usage {
        prompt_tokens: 11,
        completion_tokens: 4,
        cached_tokens: None,
        reasoning_tokens: None,
        load_time: Some(Duration::from_nanos(19_691_429)),
    };
    let expected: Vec<Delta> = ["I", "'m", " glad", " to"]
        .map(Delta::text)
        .into_iter()
        .chain([
            Delta::Finish { choice: 0, reason: FinishReason::Length },
            Delta::Done { usage: Some(usage) },
        ])
        .collect();
    assert!(error.is_none(), "{error:?}");
    assert_eq!(deltas, expected);
}

fn split(add_special: bool, pieces: bool) -> TokenizeRequest {
    let input = TokenizeInput::Text { text: "hello world".into(), add_special, parse_special: true };
    TokenizeRequest { model: "smollm2".into(), input, pieces }
}

#[tokio::test]
async fn every_engine_splits_a_text_into_tokens() {
    for (style, place) in RECORDED {
        let server = FakeServer::replying(Reply::transcript(&format!("{place}/tokenize"))).await;
        let tokenized = engine(style, &server).tokenize(&split(false, false)).await.unwrap();
        let context = match style {
            Style::VLLM => Some(2048),
            Style::SGLANG => Some(8192),
            _ => None,
        };
        assert_eq!(tokenized, Tokenized { tokens: vec![28120, 905], pieces: None, context }, "{place}");
        let expected = match style {
            Style::LLAMACPP => json!({
                "content": "hello world", "add_special": false, "parse_special": true, "with_pieces": false,
            }),
            _ => json!({ "model": "smollm2", "prompt": "hello world", "add_special_tokens": false }),
        };
        assert_eq!(body(&server.requests()[0].text()), expected, "{place}");
    }
}

#[tokio::test]
async fn tokens_come_with_their_pieces_where_they_are_asked_for() {
    let pieces = r#"{"tokens":[{"id":1,"piece":"h"},{"id":2,"piece":[226,130]}]}"#;
    let server = FakeServer::replying(Reply::json(200, pieces)).await;
    let tokenized = engine(Style::LLAMACPP, &server).tokenize(&split(false, true)).await.unwrap();
    assert_eq!(tokenized.pieces, Some(vec![b"h".to_vec(), vec![226, 130]]));

    let server =
        FakeServer::replying(Reply::json(200, r#"{"count":1,"tokens":[1],"token_strs":["h"]}"#)).await;
    let tokenized = engine(Style::VLLM, &server).tokenize(&split(true, true)).await.unwrap();
    assert_eq!(tokenized.pieces, Some(vec![b"h".to_vec()]));

    let server = FakeServer::replying(Reply::transcript("sglang/tokenize")).await;
    let error = engine(Style::SGLANG, &server).tokenize(&split(true, true)).await.unwrap_err();
    assert_eq!(unsupported(&error), Some("with_pieces"), "{error}");
}

#[tokio::test]
async fn a_conversation_is_split_as_the_model_reads_it() {
    let server = FakeServer::start(|request: &Recorded| match request.path.as_str() {
        "/apply-template" => Reply::json(200, r#"{"prompt":"<|user|>hi<|assistant|>"}"#),
        _ => Reply::json(200, r#"{"tokens":[1,2,3]}"#),
    })
    .await;
    let input = TokenizeInput::Conversation(Box::new(asking("hi", 4)));
    let request = TokenizeRequest { model: "smollm2".into(), input, pieces: false };
    let tokenized = engine(Style::LLAMACPP, &server).tokenize(&request).await.unwrap();
    assert_eq!(tokenized.tokens, [1, 2, 3]);
    let sent = body(&server.requests()[1].text());
    assert_eq!((&sent["content"], &sent["parse_special"]), (&json!("<|user|>hi<|assistant|>"), &json!(true)));
    let error = engine(Style::SGLANG, &server).tokenize(&request).await.unwrap_err();
    assert_eq!(unsupported(&error), Some("messages"), "{error}");
}

#[tokio::test]
async fn tokens_become_text_again() {
    for (style, field) in [(Style::LLAMACPP, "content"), (Style::VLLM, "prompt"), (Style::SGLANG, "text")] {
        let server = FakeServer::replying(Reply::json(200, json!({ field: "hello" }).to_string())).await;
        let request = DetokenizeRequest { model: "m".into(), tokens: vec![28120] };
        assert_eq!(engine(style, &server).detokenize(&request).await.unwrap(), "hello");
        assert_eq!(body(&server.requests()[0].text()), json!({ "model": "m", "tokens": [28120.0] }));
    }
}

fn documents() -> RerankRequest {
    RerankRequest { model: "m".into(), query: "q".into(), documents: vec!["a".into(), "b".into()] }
}

#[tokio::test]
async fn documents_come_back_best_first_in_every_form() {
    let cohere = r#"{"model":"bge","object":"list","usage":{"prompt_tokens":9,"total_tokens":9},"results":[
        {"index":0,"relevance_score":-3.5},{"index":1,"relevance_score":2.25}]}"#;
    let sglang = r#"[{"score":0.9,"document":"b","index":1,"meta_info":{}},{"score":0.1,"index":0}]"#;
    let score = |index, score| RelevanceScore { index, score };
    for (style, reply, model, scores, tokens) in [
        (Style::LLAMACPP, cohere, "bge", [score(1, 2.25), score(0, -3.5)], Some(9)),
        (Style::SGLANG, sglang, "m", [score(1, 0.9), score(0, 0.1)], None),
    ] {
        let server = FakeServer::replying(Reply::json(200, reply)).await;
        let reranking = engine(style, &server).rerank(&documents()).await.unwrap();
        let expected = Reranking { model: model.into(), scores: scores.to_vec(), prompt_tokens: tokens };
        assert_eq!(reranking, expected);
    }
}

#[tokio::test]
async fn a_ranking_that_does_not_fit_the_documents_is_malformed() {
    for results in [
        "[]",
        r#"[{"index":0,"relevance_score":1},{"index":0,"relevance_score":1}]"#,
        r#"[{"index":9,"relevance_score":1}]"#,
    ] {
        let server = FakeServer::replying(Reply::json(200, format!(r#"{{"results":{results}}}"#))).await;
        let error = engine(Style::VLLM, &server).rerank(&documents()).await.unwrap_err();
        assert!(matches!(error, EngineError::Malformed { .. }), "{error}");
    }
}

#[tokio::test]
async fn an_engine_that_compares_no_texts_says_so() {
    for (status, message) in [
        (501, "This server does not support reranking. Start it with `--reranking`"),
        (404, "Not Found"),
        (400, "The model does not support Rerank (Score) API"),
    ] {
        let reply = Reply::json(status, json!({ "error": { "message": message } }).to_string());
        let server = FakeServer::replying(reply).await;
        let error = engine(Style::LLAMACPP, &server).rerank(&documents()).await.unwrap_err();
        assert_eq!(unsupported(&error), Some("rerank"), "{error}");
    }
}

#[tokio::test]
async fn tokens_are_sent_to_engines_that_take_them() {
    let server = FakeServer::replying(Reply::transcript("vllm/completions")).await;
    let request = CompletionRequest { prompt: Prompt::Tokens(vec![5, 6]), ..text("", 8) };
    engine(Style::VLLM, &server).complete(&request).await.unwrap();
    assert_eq!(body(&server.requests()[0].text())["prompt"], json!([5.0, 6.0]));
}
