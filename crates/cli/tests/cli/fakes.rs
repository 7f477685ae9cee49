//! Engines that replay answers of real ones.

use hob_testkit::{FakeServer, Recorded, Reply};

/// The streamed answer of the fake Ollama.
pub const STREAMED: &str = "The capital of France is Paris, a";

/// Its complete answer.
pub const WHOLE: &str =
    "The capital of France is Paris, a city known for its historical landmarks and cultural institutions.";

/// An Ollama with the models `smollm2` and `smollm2-tools`.
pub async fn ollama() -> FakeServer {
    ollama_chatting(|request| {
        let is_streamed = request.text().contains("\"stream\":true");
        Reply::transcript(if is_streamed { "ollama/chat_stream" } else { "ollama/chat" })
    })
    .await
}

/// The same with another answer to chats.
pub async fn ollama_chatting(chat: impl Fn(&Recorded) -> Reply + Send + Sync + 'static) -> FakeServer {
    FakeServer::start(move |request| match request.path.as_str() {
        "/api/tags" => Reply::transcript("ollama/tags"),
        "/api/show" => Reply::transcript("ollama/show"),
        "/api/chat" => chat(request),
        _ => Reply::json(404, "{\"error\": \"not found\"}"),
    })
    .await
}

/// A vLLM with the model `smollm2`.
pub async fn vllm() -> FakeServer {
    FakeServer::start(|request| match request.path.as_str() {
        "/v1/models" => Reply::transcript("vllm/models"),
        "/v1/chat/completions" => Reply::transcript("vllm/chat_stream"),
        _ => Reply::json(404, "{}"),
    })
    .await
}

/// A line of Ollama's stream.
pub fn piece(text: &str) -> String {
    format!(
        "{{\"model\":\"smollm2\",\"message\":{{\"role\":\"assistant\",\"content\":\"{text}\"}},\"done\":false}}\n"
    )
}

/// Its last line.
pub const END: &str = "{\"model\":\"smollm2\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done_reason\":\"stop\",\"done\":true,\"prompt_eval_count\":3,\"eval_count\":2}\n";
