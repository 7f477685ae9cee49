//! The chat-completions wire format, which vLLM, SGLang, llama.cpp, LiteLLM and OpenAI speak: the request as we write it,
//! the answer and the stream as we read them. Knows no engine by name.

pub mod answer;
pub mod chunks;
pub(crate) mod embeddings;
pub mod request;
mod stencil;
pub mod tool_calls;

/// A fresh id for a call that came without one.
pub(crate) fn new_call_id() -> String {
    let suffix: String = std::iter::repeat_with(fastrand::alphanumeric).take(24).collect();
    format!("call_{suffix}")
}
