//! Why an answer ended. Engines have many words for it, and clients accept only those that the chat-completions API documents: this is
//! the one place that translates them.

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishReason {
    Stop,
    /// One of the caller's stop sequences, where the engine says which.
    StopSequence(String),
    Length,
    ToolCalls,
    ContentFilter,
    /// A reason that only this engine has, in lower case. It is recorded; clients get `stop`.
    Other(String),
}

impl FinishReason {
    /// For clients: one of the documented words.
    pub fn as_str(&self) -> &'static str {
        match self {
            FinishReason::Stop | FinishReason::StopSequence(_) | FinishReason::Other(_) => "stop",
            FinishReason::Length => "length",
            FinishReason::ToolCalls => "tool_calls",
            FinishReason::ContentFilter => "content_filter",
        }
    }

    /// For records: the documented word, or the engine's own where there is none.
    pub fn recorded(&self) -> &str {
        match self {
            FinishReason::Other(word) => word,
            reason => reason.as_str(),
        }
    }

    /// Reads the word of an engine or a provider.
    pub fn parse(word: &str) -> Self {
        match word.to_ascii_lowercase().as_str() {
            "" | "stop" | "stop_sequence" | "eos" | "eos_token" | "end_turn" | "word" | "none"
            | "complete" | "completed" | "load" | "unload" => FinishReason::Stop,
            // An answer that was broken off is cut too, and no other documented word says so.
            "length"
            | "limit"
            | "max_tokens"
            | "max_output_tokens"
            | "model_length"
            | "model_context_window_exceeded"
            | "abort"
            | "aborted"
            | "cancelled"
            | "error"
            // DeepSeek.
            | "insufficient_system_resource"
            // Gemini.
            | "malformed_function_call"
            | "malformed_response"
            | "missing_thought_signature"
            | "too_many_tool_calls"
            | "unexpected_tool_call"
            | "language"
            | "other" => FinishReason::Length,
            "tool_calls" | "tool_call" | "tool_use" | "function_call" => FinishReason::ToolCalls,
            "content_filter" | "content_filtered" | "refusal" | "safety" | "image_safety" | "recitation"
            | "image_prohibited_content" | "image_recitation" | "blocklist" | "prohibited_content"
            | "spii" => FinishReason::ContentFilter,
            other => FinishReason::Other(other.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_only_documented_words_and_records_keep_the_others() {
        for (word, for_clients, recorded) in [
            ("stop", "stop", "stop"),
            ("", "stop", "stop"),
            ("eos", "stop", "stop"),
            ("end_turn", "stop", "stop"),
            ("load", "stop", "stop"),
            ("unload", "stop", "stop"),
            ("length", "length", "length"),
            ("MAX_TOKENS", "length", "length"),
            ("model_length", "length", "length"),
            ("abort", "length", "length"),
            ("tool_calls", "tool_calls", "tool_calls"),
            ("function_call", "tool_calls", "tool_calls"),
            ("content_filter", "content_filter", "content_filter"),
            ("SAFETY", "content_filter", "content_filter"),
            ("pause_turn", "stop", "pause_turn"),
            ("MALFORMED_FUNCTION_CALL", "length", "length"),
            ("insufficient_system_resource", "length", "length"),
        ] {
            let reason = FinishReason::parse(word);
            assert_eq!((reason.as_str(), reason.recorded()), (for_clients, recorded), "{word}");
        }
        assert_eq!(FinishReason::StopSequence("END".to_owned()).recorded(), "stop");
    }
}
