//! Whether a request that a server rejects is sent once more without its tools, and which error the caller gets if that fails too. A
//! server without a parser for the tool calls of its model rejects them with a 400, which looks like any other. Sends nothing itself.

use hob_core::{EngineError, GenerateRequest};

use super::reasoning_demands::is_bad_request;

/// Whether the tools of a request can be the reason why the server rejects it.
pub(super) fn is_worth_a_retry(request: &GenerateRequest, refused: &EngineError) -> bool {
    // A conversation that is too long would fail again, or lose its tools without need.
    matches!(refused, EngineError::Refused { status: 400, .. })
        && !request.tools.is_empty()
        && !refused.is_context_overflow()
}

/// The error of a request that failed with tools and without them.
pub(super) fn error_of_both(with_tools: EngineError, without_tools: EngineError) -> EngineError {
    match is_bad_request(&without_tools) && !without_tools.is_context_overflow() {
        // The tools were not the reason, and the first error is about what the caller sent.
        true => with_tools,
        // The server could not answer without tools, for another reason, such as a 429 that says when to try again.
        false => without_tools,
    }
}

#[cfg(test)]
mod tests {
    use hob_core::ToolDefinition;

    use super::*;

    fn with_tools() -> GenerateRequest {
        let tool = ToolDefinition { name: "now".into(), description: None, parameters: None, strict: None };
        GenerateRequest { tools: vec![tool], ..GenerateRequest::default() }
    }

    fn refused(status: u16, message: &str) -> EngineError {
        EngineError::Refused {
            engine: "vllm".into(),
            status,
            message: message.into(),
            code: None,
            param: None,
            retry_after: None,
        }
    }

    #[test]
    fn only_a_400_to_a_request_with_tools_is_retried() {
        let no_parser = "\"auto\" tool choice requires --enable-auto-tool-choice";
        assert!(is_worth_a_retry(&with_tools(), &refused(400, no_parser)));
        assert!(!is_worth_a_retry(&GenerateRequest::default(), &refused(400, no_parser)));
        assert!(!is_worth_a_retry(&with_tools(), &refused(500, no_parser)));
        let silent = EngineError::Interrupted { engine: "vllm".into(), reason: "closed".into() };
        assert!(!is_worth_a_retry(&with_tools(), &silent));
    }

    #[test]
    fn a_conversation_that_is_too_long_keeps_its_tools() {
        let too_long = "This model's maximum context length is 4096 tokens";
        assert!(!is_worth_a_retry(&with_tools(), &refused(400, too_long)));
    }

    #[test]
    fn the_second_error_counts_unless_it_is_about_the_request_too() {
        let too_long = "This model's maximum context length is 4096 tokens";
        for (status, message, expected) in [
            (400, "bad temperature", "the first"),
            (422, "bad temperature", "the first"),
            (400, too_long, too_long),
            (401, "bad key", "bad key"),
            (429, "slow down", "slow down"),
            (503, "busy", "busy"),
        ] {
            let error = error_of_both(refused(400, "the first"), refused(status, message));
            assert!(error.to_string().ends_with(expected), "{status}: {error}");
        }
        let silent = || EngineError::Interrupted { engine: "vllm".into(), reason: "closed".into() };
        let error = error_of_both(refused(400, "the first"), silent());
        assert_eq!(error.to_string(), silent().to_string());
    }
}
