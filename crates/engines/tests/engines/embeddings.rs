//! Embeddings from every engine over real sockets: recordings where they exist, else answers as the services document
//! them.

use std::time::Duration;

use hob_core::{Cut, EmbedInputs, EmbedRequest, Embeddings, Engine, EngineError, Overlong};
use hob_engines::{Endpoint, EndpointOptions, Ollama, OpenAiCompat, Style};
use hob_testkit::{FakeServer, Recorded, Reply, Transcript};
use serde_json::{Value, json};

fn endpoint(engine: &str, server: &FakeServer) -> Endpoint {
    Endpoint::new(EndpointOptions::new(engine, server.url())).unwrap()
}

fn compat(style: Style, server: &FakeServer) -> OpenAiCompat {
    OpenAiCompat::new(style, endpoint(style.key, server))
}

fn request(inputs: &[&str]) -> EmbedRequest {
    let inputs = inputs.iter().map(ToString::to_string).collect();
    EmbedRequest { model: "smollm2".into(), inputs: EmbedInputs::Texts(inputs), ..EmbedRequest::default() }
}

fn body(request: &Recorded) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

/// Answers in the documented format. The vector of a text is its length.
fn lengths(request: &Recorded) -> Reply {
    let inputs: Vec<String> = serde_json::from_value(body(request)["input"].clone()).unwrap();
    let datum = |(index, text): (usize, &String)| json!({ "index": index, "embedding": [text.len(), 0.5] });
    let data: Vec<Value> = inputs.iter().enumerate().map(datum).rev().collect();
    let usage = json!({ "prompt_tokens": inputs.len(), "total_tokens": inputs.len() });
    Reply::json(200, json!({ "object": "list", "data": data, "model": "e5", "usage": usage }).to_string())
}

#[tokio::test]
async fn the_real_ollama_gives_a_vector_for_each_text() {
    let server = FakeServer::replying(Reply::transcript("ollama/embed")).await;
    let ollama = Ollama::new(endpoint("ollama", &server));
    let Embeddings { model, vectors, prompt_tokens, cut, load_time } =
        ollama.embed(&request(&["hello", "world"])).await.unwrap();
    assert_eq!((model.as_str(), vectors.len(), prompt_tokens), ("smollm2", 2, Some(2)));
    assert_eq!((vectors[0].len(), vectors[0][0], cut), (576, -0.012705961, Cut::NONE));
    assert_eq!(load_time, Some(Duration::from_nanos(22_129_404)));
    let sent = &server.requests()[0];
    let mut expected: Value = serde_json::from_str(&Transcript::load("ollama/embed").request_body).unwrap();
    // Ollama truncates silently by default.
    expected["truncate"] = json!(false);
    assert_eq!((sent.path.as_str(), body(sent)), ("/api/embed", expected));
}

#[tokio::test]
async fn the_format_that_most_share_is_spoken_by_all_of_them() {
    for style in [Style::VLLM, Style::SGLANG, Style::LLAMACPP, Style::LITELLM] {
        let server = FakeServer::start(lengths).await;
        let asked = EmbedRequest { dimensions: Some(2), ..request(&["one", "three"]) };
        assert_eq!(
            compat(style, &server).embed(&asked).await.unwrap(),
            Embeddings {
                model: "e5".into(),
                vectors: vec![vec![3.0, 0.5], vec![5.0, 0.5]],
                prompt_tokens: Some(2),
                cut: Cut::NONE,
                load_time: None,
            }
        );
        let sent = &server.requests()[0];
        assert_eq!(sent.path, "/v1/embeddings");
        let expected = json!({ "model": "smollm2", "input": ["one", "three"], "encoding_format": "float", "dimensions": 2 });
        assert_eq!(body(sent), expected);
    }
}

#[tokio::test]
async fn many_texts_go_in_several_requests_and_come_back_as_one_answer() {
    let server = FakeServer::start(lengths).await;
    let texts: Vec<String> = (0..600).map(|number| "x".repeat(number + 1)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let embeddings = compat(Style::VLLM, &server).embed(&request(&texts)).await.unwrap();
    let first: Vec<f32> = embeddings.vectors.iter().map(|vector| vector[0]).collect();
    assert_eq!(first, (1..=600).map(|length| length as f32).collect::<Vec<_>>());
    assert_eq!((embeddings.prompt_tokens, server.requests().len()), (Some(600), 3));
}

#[tokio::test]
async fn texts_are_cut_only_where_the_engine_can_and_never_in_secret() {
    let cut = EmbedRequest { overlong: Overlong::Cut, ..request(&["a"]) };
    let server = FakeServer::start(lengths).await;
    assert_eq!(compat(Style::VLLM, &server).embed(&cut).await.unwrap().cut, Cut::Unreported);
    assert_eq!(body(&server.requests()[0])["truncate_prompt_tokens"], -1);
    assert_eq!(compat(Style::LLAMACPP, &server).embed(&cut).await.unwrap().cut, Cut::NONE);
    assert_eq!(body(&server.requests()[1]).get("truncate_prompt_tokens"), None);

    let server = FakeServer::replying(Reply::json(200, r#"{"embeddings":[[1]]}"#)).await;
    let ollama = Ollama::new(endpoint("ollama", &server));
    assert_eq!(ollama.embed(&cut).await.unwrap().cut, Cut::Unreported);
    assert_eq!(body(&server.requests()[0])["truncate"], true);
}

#[tokio::test]
async fn tokens_are_sent_to_engines_that_accept_them_and_refused_by_others() {
    let tokens = EmbedInputs::Tokens(vec![vec![1, 2], vec![3]]);
    let asked = EmbedRequest { model: "smollm2".into(), inputs: tokens, ..EmbedRequest::default() };
    let answer = r#"{"data":[{"index":0,"embedding":[1.0]},{"index":1,"embedding":[2.0]}]}"#;
    let server = FakeServer::replying(Reply::json(200, answer)).await;
    let embeddings = compat(Style::VLLM, &server).embed(&asked).await.unwrap();
    assert_eq!(embeddings.vectors, [vec![1.0], vec![2.0]]);
    assert_eq!(body(&server.requests()[0])["input"], json!([[1, 2], [3]]));

    let refused = Ollama::new(endpoint("ollama", &server)).embed(&asked).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "ollama does not support 'input': it accepts text, not arrays of tokens; send the text"
    );
    assert_eq!(server.requests().len(), 1, "nothing was sent");
}

async fn failure(style: Style, reply: Reply, request: &EmbedRequest) -> EngineError {
    let server = FakeServer::replying(reply).await;
    compat(style, &server).embed(request).await.unwrap_err()
}

#[tokio::test]
async fn a_server_without_embeddings_is_an_error() {
    for (style, recording, said) in [
        (
            Style::VLLM,
            "vllm/embeddings",
            "vllm does not support 'embeddings': this server has no embedding model (Not Found)",
        ),
        (
            Style::LLAMACPP,
            "llama-server/embeddings",
            "llamacpp does not support 'embeddings': this server has no embedding model (This server does not support \
             embeddings. Start it with `--embeddings`)",
        ),
        (
            Style::SGLANG,
            "sglang/embeddings",
            "sglang answered 400: This model does not appear to be an embedding model by default. Please add \
             `--is-embedding` when launching the server or try another model.",
        ),
        (
            Style::LLAMACPP,
            "llama-server/tooltmpl_embeddings",
            "llamacpp answered 400: Pooling type 'none' is not OAI compatible. Please use a different pooling type",
        ),
    ] {
        let error = failure(style, Reply::transcript(recording), &request(&["hello"])).await;
        assert_eq!(error.to_string(), said);
    }
}

#[tokio::test]
async fn answers_that_do_not_add_up_are_noticed() {
    let one = |embedding: &str| format!(r#"{{"data":[{{"index":0,"embedding":{embedding}}}]}}"#);
    for (answer, reason) in [
        (one("[1]"), "it returned 1 embeddings for 2 inputs"),
        (
            r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}"#.into(),
            "differ in length",
        ),
        (r#"{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]}"#.into(), "empty"),
        (r#"{"data":[{"index":1,"embedding":[1]},{"index":1,"embedding":[1]}]}"#.into(), "not numbered"),
        (r#"{"embeddings":[]}"#.into(), "missing field `data`"),
        ("<html>".into(), "expected value"),
    ] {
        let error = failure(Style::VLLM, Reply::json(200, answer), &request(&["a", "b"])).await;
        assert!(matches!(error, EngineError::Malformed { .. }), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
    let asked = EmbedRequest { dimensions: Some(3), ..request(&["a"]) };
    let error = failure(Style::VLLM, Reply::json(200, one("[1, 2]")), &asked).await;
    assert_eq!(
        error.to_string(),
        "vllm does not support 'dimensions': 'smollm2' returns vectors with 2 dimensions"
    );
}

#[cfg(feature = "cloud")]
mod cloud {
    use hob_engines::{Cloud, CloudOptions, Provider};

    use super::*;

    fn cloud(server: &FakeServer) -> Cloud {
        let provider = |host: String| Provider { host, key: Some("key".to_owned().into()) };
        Cloud::new(CloudOptions {
            openai: provider(format!("{}/v1", server.url())),
            anthropic: provider(server.url()),
            gemini: provider(server.url()),
            ..CloudOptions::default()
        })
        .unwrap()
    }

    fn of(model: &str, inputs: &[&str]) -> EmbedRequest {
        EmbedRequest { model: model.into(), ..request(inputs) }
    }

    #[tokio::test]
    async fn openai_takes_the_format_it_made() {
        let server = FakeServer::start(lengths).await;
        let embeddings = cloud(&server).embed(&of("text-embedding-3-small", &["one"])).await.unwrap();
        assert_eq!(embeddings.vectors, [[3.0, 0.5]]);
        let sent = &server.requests()[0];
        assert_eq!(
            (sent.path.as_str(), sent.header("authorization")),
            ("/v1/embeddings", Some("Bearer key"))
        );
    }

    #[tokio::test]
    async fn gemini_is_asked_for_a_hundred_at_a_time() {
        let server = FakeServer::start(|request| {
            let count = body(request)["requests"].as_array().unwrap().len();
            let embeddings: Vec<Value> = (0..count).map(|_| json!({ "values": [0.25, -1.0] })).collect();
            Reply::json(200, json!({ "embeddings": embeddings }).to_string())
        })
        .await;
        let asked = EmbedRequest { dimensions: Some(2), ..of("gemini-embedding-001", &["x"; 150]) };
        let embeddings = cloud(&server).embed(&asked).await.unwrap();
        assert_eq!((embeddings.vectors.len(), embeddings.prompt_tokens), (150, None));
        assert_eq!(embeddings.cut, Cut::Unreported, "Google cuts without a word");
        let requests = server.requests();
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[0].path, "/v1beta/models/gemini-embedding-001:batchEmbedContents");
        assert_eq!(
            body(&requests[0])["requests"][0],
            json!({
                "model": "models/gemini-embedding-001",
                "content": { "parts": [{ "text": "x" }] },
                "outputDimensionality": 2,
            })
        );
    }

    #[tokio::test]
    async fn anthropic_has_no_embeddings_and_says_what_to_do() {
        let server = FakeServer::start(lengths).await;
        let error = cloud(&server).embed(&of("claude-opus-4-6", &["x"])).await.unwrap_err();
        assert!(matches!(error, EngineError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("[memory] embedding_model"), "{error}");
        assert_eq!(server.requests(), []);
    }
}
