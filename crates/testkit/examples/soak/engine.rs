//! A vLLM that answers at once.

use hob_testkit::{FakeServer, Recorded, Reply};

const WORDS: &str = "word word word word word word word word";

pub async fn start() -> FakeServer {
    FakeServer::start(|request| match request.path.as_str() {
        "/v1/models" => Reply::transcript("vllm/models"),
        "/health" => Reply::json(200, ""),
        "/v1/embeddings" => Reply::json(200, EMBEDDING),
        "/v1/chat/completions" => chat(request),
        _ => Reply::json(404, "{}"),
    })
    .await
}

const EMBEDDING: &str = r#"{"object":"list","model":"smollm2","data":[{"object":"embedding","index":0,"embedding":[0.6,-0.8,0.0]}],"usage":{"prompt_tokens":3,"total_tokens":3}}"#;

fn chat(request: &Recorded) -> Reply {
    if !request.text().contains("\"stream\":true") {
        return Reply::json(
            200,
            format!(
                r#"{{"id":"x","object":"chat.completion","created":1,"model":"smollm2","choices":[{{"index":0,"message":{{"role":"assistant","content":"{WORDS}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":9,"completion_tokens":8,"total_tokens":17}}}}"#
            ),
        );
    }
    let chunk = |delta: &str, finish: &str| {
        format!(
            "data: {{\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"smollm2\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
        )
    };
    let mut text = String::new();
    for word in WORDS.split_inclusive(' ') {
        text += &chunk(&format!(r#"{{"content":"{word}"}}"#), "null");
    }
    text += &chunk("{}", "\"stop\"");
    text += "data: [DONE]\n\n";
    let size = text.len() / 4;
    // In parts, so that a client can leave in the middle.
    Reply::sse(text).in_packets_of(size).with_pause(std::time::Duration::from_millis(2))
}
