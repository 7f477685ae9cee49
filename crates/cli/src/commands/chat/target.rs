//! The target of questions: the app, and the options of the command line.

use hob_app::App;
use hob_config::AgentName;
use hob_core::model::DEFAULT_MODEL;
use hob_core::{
    AgentPreference, Caller, GenerateRequest, MaxTokens, MemoryUse, Message, Permit, Reach, RequestSource,
    Temperature, random_id,
};

use super::answering::ChatQuestion;
use super::command::Switch;
use super::session::ChatSettings;
use crate::args::{AgentChoice, AnsweringArgs};
use crate::commands::ask::answer_output::ReasoningDisplay;

/// The app that answers, and the answer options of the command line.
pub struct ChatTarget<'h> {
    pub app: &'h App,
    /// The model that answers when none was chosen.
    pub default_model: String,
    pub only_tools: Option<Vec<String>>,
    pub reasoning: ReasoningDisplay,
    pub temperature: Option<Temperature>,
    pub max_tokens: Option<MaxTokens>,
}

impl ChatTarget<'_> {
    /// The most tokens an answer may have; `None` where the engine decides.
    pub fn max_tokens(&self) -> Option<u32> {
        self.max_tokens.or(self.app.system.defaults().max_tokens).map(MaxTokens::get)
    }

    /// The local user, who may use all tools.
    pub fn caller(&self, settings: &ChatSettings) -> Caller {
        let agent = match settings.agent {
            AgentChoice::None => AgentPreference::None,
            AgentChoice::Agent(agent) => AgentPreference::Named(agent.to_string()),
        };
        let permit = Permit { only: self.only_tools.clone(), ..Permit::up_to(Reach::Act) };
        let memory = match settings.memory {
            Switch::On => MemoryUse::Allowed,
            Switch::Off => MemoryUse::Unwanted,
        };
        Caller { permit, agent, memory, ..Caller::trusted(RequestSource::Ask, random_id("chat-")) }
    }

    pub fn question<'a>(
        &'a self,
        settings: &ChatSettings,
        caller: &'a Caller,
        messages: Vec<Message>,
    ) -> ChatQuestion<'a> {
        let request = GenerateRequest {
            model: settings.model.clone().unwrap_or_else(|| DEFAULT_MODEL.to_owned()),
            messages,
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            ..GenerateRequest::default()
        };
        ChatQuestion { system: &self.app.system, caller, request }
    }
}

/// The initial settings from the command line. Tools need an agent.
pub fn initial_settings(args: &AnsweringArgs, memory: Switch) -> ChatSettings {
    let agent = match args.agent {
        Some(agent) => agent,
        None if args.tools.is_some() => AgentChoice::Agent(AgentName::Orchestrator),
        None => AgentChoice::None,
    };
    ChatSettings { model: None, agent, memory }
}
