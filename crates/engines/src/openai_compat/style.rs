//! What differs between servers with an OpenAI-compatible API.

/// How these engines differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    pub key: &'static str,
    /// False for a LiteLLM proxy, which accepts names that match a pattern.
    pub lists_every_model: bool,
    /// Whether the engine can truncate a text that is too long to embed.
    pub cuts_overlong: bool,
    pub server: ServerKind,
}

/// Whose own API a server has beside the common one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerKind {
    LlamaCpp,
    Vllm,
    Sglang,
    /// Nothing but the common API.
    Generic,
}

impl Style {
    pub const VLLM: Style =
        Style { key: "vllm", lists_every_model: true, cuts_overlong: true, server: ServerKind::Vllm };
    pub const SGLANG: Style =
        Style { key: "sglang", lists_every_model: true, cuts_overlong: false, server: ServerKind::Sglang };
    pub const LLAMACPP: Style = Style {
        key: "llamacpp",
        lists_every_model: true,
        cuts_overlong: false,
        server: ServerKind::LlamaCpp,
    };
    pub const LITELLM: Style =
        Style { key: "litellm", lists_every_model: false, cuts_overlong: false, server: ServerKind::Generic };
}
