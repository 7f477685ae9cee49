//! Decides whether an agent or the engine answers a request.

use std::sync::Arc;

use hob_core::model::{AGENT_MODEL, DEFAULT_MODEL};
use hob_core::{Agent, AgentPreference, AskError, GenerateRequest, ModelReason, ReplyMode};

use super::AskService;

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

impl AskService {
    /// Whether a model is a name for the configured agent.
    async fn wants_agent(&self, model: &str) -> bool {
        self.meant_by(model) == AGENT_MODEL && !self.is_listed(AGENT_MODEL).await
    }

    /// Whether an agent is to answer.
    pub async fn is_for_agent(
        &self,
        request: &GenerateRequest,
        mode: ReplyMode,
        wish: &AgentPreference,
    ) -> bool {
        let configured = self.agent.as_deref().map(Agent::name);
        let selection = match wish {
            AgentPreference::Named(name) => AgentSelection::Named(name.as_str()),
            AgentPreference::None => AgentSelection::None,
            AgentPreference::Configured => match configured {
                Some(agent) if self.wants_agent(&request.model).await => AgentSelection::Named(agent),
                configured => AgentSelection::Configured(configured),
            },
        };
        answer_path(request, mode, selection) != AnswerPath::Engine
    }

    /// Which agent is to answer. A request for the model [`AGENT_MODEL`], or for an alias of it, becomes one for the default model;
    /// the alias is the reason.
    pub(super) async fn wish(
        &self,
        request: &mut GenerateRequest,
        wish: &AgentPreference,
    ) -> Result<(AgentSelection<Arc<dyn Agent>>, Option<ModelReason>), AskError> {
        let wants_agent = self.wants_agent(&request.model).await;
        let mut alias = None;
        if wants_agent {
            alias = self.aliases.apply(&mut request.model);
            request.model = DEFAULT_MODEL.to_owned();
        }
        let selection = match wish {
            AgentPreference::Configured if wants_agent => {
                AgentSelection::Named(self.agent.clone().ok_or(AskError::NoAgent)?)
            }
            AgentPreference::Configured => AgentSelection::Configured(self.agent.clone()),
            AgentPreference::None => AgentSelection::None,
            AgentPreference::Named(name) => {
                let agent = hob_agents::agent(name).ok_or_else(|| unknown_agent(name))?;
                AgentSelection::Named(agent)
            }
        };
        Ok((selection, alias))
    }
}

fn unknown_agent(name: &str) -> AskError {
    AskError::UnknownAgent { name: name.to_owned(), known: hob_agents::AGENTS.map(str::to_owned).to_vec() }
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
