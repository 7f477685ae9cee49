//! The target of questions: what answers, and the options of the command line.

use hob_config::AgentName;
use hob_core::{MaxTokens, Temperature};

use super::command::Switch;
use super::session::{ChatSampling, ChatSettings};
use crate::answers::{AnswerProvider, AskMessage, AskQuestion, AskingCommand};
use crate::args::{AgentChoice, AnsweringArgs};
use crate::commands::ask::answer_output::ReasoningDisplay;

/// What answers, and the options of the command line that the chat does not change.
pub struct ChatTarget<'h> {
    pub source: &'h AnswerProvider<'h>,
    /// The model that the command line names.
    pub model: Option<String>,
    /// The model that answers when none was chosen.
    pub default_model: String,
    pub only_tools: Option<Vec<String>>,
    pub reasoning: ReasoningDisplay,
}

impl ChatTarget<'_> {
    pub fn question(&self, settings: &ChatSettings, messages: Vec<AskMessage>) -> AskQuestion {
        let ChatSettings { model, agent, memory, system: _, sampling } = settings;
        let ChatSampling { temperature, max_tokens, top_p, seed } = *sampling;
        AskQuestion {
            command: AskingCommand::Chat,
            model: model.clone().or_else(|| self.model.clone()),
            messages,
            temperature: temperature.map(Temperature::get),
            max_tokens: max_tokens.map(MaxTokens::get),
            top_p,
            seed,
            agent: match agent {
                AgentChoice::None => None,
                AgentChoice::Agent(agent) => Some(agent.to_string()),
            },
            tools: self.only_tools.clone(),
            uses_memory: *memory == Switch::On,
            ..AskQuestion::default()
        }
    }
}

/// The initial settings from the command line. Tools need an agent.
pub fn initial_settings(args: &AnsweringArgs, memory: Switch) -> ChatSettings {
    let agent = match args.agent {
        Some(agent) => agent,
        None if args.tools.is_some() => AgentChoice::Agent(AgentName::Orchestrator),
        None => AgentChoice::None,
    };
    let sampling = ChatSampling {
        temperature: args.temperature,
        max_tokens: args.max_tokens,
        ..ChatSampling::default()
    };
    ChatSettings { sampling, ..ChatSettings::new(agent, memory) }
}
