//! Which way a request takes: through an agent, or straight to the engine.

use hob_core::GenerateRequest;

/// Whether the caller wants the answer in one piece or as it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    Whole,
    Streamed,
}

/// The two ways.
#[derive(Debug, PartialEq, Eq)]
pub enum Lane<A> {
    Engine,
    Agent(A),
}

/// Decides. A caller who brings tools wants the calls back, so an agent must not swallow them; a stream comes straight
/// from the engine; everything else goes through the agent, where there is one.
pub fn lane<A>(request: &GenerateRequest, delivery: Delivery, agent: Option<A>) -> Lane<A> {
    match agent {
        Some(agent) if request.tools.is_empty() && delivery == Delivery::Whole => Lane::Agent(agent),
        _ => Lane::Engine,
    }
}

#[cfg(test)]
mod tests {
    use hob_core::ToolDefinition;

    use super::*;

    #[test]
    fn only_a_whole_answer_without_the_callers_tools_goes_through_an_agent() {
        let plain = GenerateRequest::default();
        let tool = ToolDefinition { name: "f".into(), description: None, parameters: None, strict: None };
        let with_tools = GenerateRequest { tools: vec![tool], ..GenerateRequest::default() };

        assert_eq!(lane(&plain, Delivery::Whole, Some("simple")), Lane::Agent("simple"));
        assert_eq!(lane(&plain, Delivery::Streamed, Some("simple")), Lane::Engine);
        assert_eq!(lane(&with_tools, Delivery::Whole, Some("simple")), Lane::Engine);
        assert_eq!(lane(&with_tools, Delivery::Streamed, Some("simple")), Lane::Engine);
        assert_eq!(lane(&plain, Delivery::Whole, None::<&str>), Lane::Engine);
    }
}
