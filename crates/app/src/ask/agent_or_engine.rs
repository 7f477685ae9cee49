//! Decides whether an agent or the engine answers a request.

use std::sync::Arc;

use hob_core::{Agent, GenerateRequest, ReplyMode};

/// Which agent the caller requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentSelection<A> {
    /// The configured agent, which may be none.
    Configured(Option<A>),
    Named(A),
    None,
}

/// What answers a request.
#[derive(Debug, PartialEq, Eq)]
pub enum AnswerPath<A> {
    Engine,
    Agent(A),
}

impl AnswerPath<Arc<dyn Agent>> {
    /// The name of the agent that answers.
    pub fn agent(&self) -> Option<&str> {
        match self {
            AnswerPath::Engine => None,
            AnswerPath::Agent(agent) => Some(agent.name()),
        }
    }
}

/// A caller who sends tools expects the calls back, so an agent must not run them. A stream, and a request for
/// what an agent does not support (several answers, probabilities, an answer that the caller has begun), goes to
/// the engine unless it names an agent. Everything else goes to the agent, if there is one.
pub fn answer_path<A>(
    request: &GenerateRequest,
    reply_mode: ReplyMode,
    wish: AgentSelection<A>,
) -> AnswerPath<A> {
    if !request.tools.is_empty() {
        return AnswerPath::Engine;
    }
    let engines_own = request.answers() > 1 || request.sampling.logprobs || request.continues_last_message();
    match (wish, reply_mode) {
        (AgentSelection::Named(agent), _) => AnswerPath::Agent(agent),
        (AgentSelection::Configured(Some(agent)), ReplyMode::Complete) if !engines_own => {
            AnswerPath::Agent(agent)
        }
        (AgentSelection::Configured(_) | AgentSelection::None, _) => AnswerPath::Engine,
    }
}

#[cfg(test)]
mod tests {
    use hob_core::ToolDefinition;

    use super::*;

    const CONFIGURED: AgentSelection<&str> = AgentSelection::Configured(Some("simple"));

    #[test]
    fn only_a_complete_answer_without_the_callers_tools_uses_the_agent() {
        let plain = GenerateRequest::default();
        assert_eq!(answer_path(&plain, ReplyMode::Complete, CONFIGURED), AnswerPath::Agent("simple"));
        assert_eq!(answer_path(&plain, ReplyMode::Streamed, CONFIGURED), AnswerPath::Engine);
        assert_eq!(
            answer_path(&plain, ReplyMode::Complete, AgentSelection::Configured(None::<&str>)),
            AnswerPath::Engine
        );
        assert_eq!(
            answer_path(&plain, ReplyMode::Complete, AgentSelection::<&str>::None),
            AnswerPath::Engine
        );

        let mut several = GenerateRequest::default();
        several.sampling.n = std::num::NonZeroU32::new(2);
        assert_eq!(answer_path(&several, ReplyMode::Complete, CONFIGURED), AnswerPath::Engine);
        let mut begun = GenerateRequest::default();
        begun.hints.insert(hob_core::PREFILL.to_owned(), true.into());
        assert_eq!(answer_path(&begun, ReplyMode::Complete, CONFIGURED), AnswerPath::Engine);
    }

    #[test]
    fn an_agent_that_was_named_answers_streams_too() {
        let plain = GenerateRequest::default();
        for reply_mode in [ReplyMode::Complete, ReplyMode::Streamed] {
            assert_eq!(
                answer_path(&plain, reply_mode, AgentSelection::Named("react")),
                AnswerPath::Agent("react")
            );
        }
    }

    #[test]
    fn calls_of_the_callers_tools_are_always_returned() {
        let tool = ToolDefinition { name: "f".into(), description: None, parameters: None, strict: None };
        let with_tools = GenerateRequest { tools: vec![tool], ..GenerateRequest::default() };
        for reply_mode in [ReplyMode::Complete, ReplyMode::Streamed] {
            for wish in [CONFIGURED, AgentSelection::Named("react")] {
                assert_eq!(answer_path(&with_tools, reply_mode, wish), AnswerPath::Engine);
            }
        }
    }
}
