//! The state of a conversation: input goes in, effects come out. Knows no terminal, no engine and no disk.

use std::path::PathBuf;

use hob_conversations::{ChatId, ChatTurn, Conversation, SavedAttachment, SavedTurn, TurnEnding};
use hob_core::{MaxTokens, Temperature};
use hob_process::Overwrite;

use super::command::{self, ChatCommand, ChatInput, SamplingChange, Switch};
use super::transcript::transcript;
use crate::answers::{AskMessage, AskRole};
use crate::args::AgentChoice;
use crate::output::number::counted;

/// More than any model can read.
const LONGEST_MESSAGE: usize = 1 << 20;

/// Files of one message.
const MOST_FILES: usize = 16;

/// The settings of answers.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatSettings {
    /// `None` for the default.
    pub model: Option<String>,
    pub agent: AgentChoice,
    pub memory: Switch,
    /// The instructions before the conversation.
    pub system: Option<String>,
    pub sampling: ChatSampling,
}

/// How tokens are chosen. `None` leaves the default.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ChatSampling {
    pub temperature: Option<Temperature>,
    pub max_tokens: Option<MaxTokens>,
    pub top_p: Option<f64>,
    pub seed: Option<i64>,
}

impl ChatSettings {
    pub fn new(agent: AgentChoice, memory: Switch) -> Self {
        ChatSettings { model: None, agent, memory, system: None, sampling: ChatSampling::default() }
    }
}

impl ChatSampling {
    fn change(&mut self, change: SamplingChange) {
        match change {
            SamplingChange::Temperature(temperature) => self.temperature = temperature,
            SamplingChange::MaxTokens(max_tokens) => self.max_tokens = max_tokens,
            SamplingChange::TopP(top_p) => self.top_p = top_p,
            SamplingChange::Seed(seed) => self.seed = seed,
        }
    }

    fn describe(&self) -> String {
        let value = |value: Option<String>| value.unwrap_or_else(|| "default".to_owned());
        format!(
            "temperature {}, max_tokens {}, top_p {}, seed {}",
            value(self.temperature.map(|temperature| temperature.get().to_string())),
            value(self.max_tokens.map(|tokens| tokens.get().to_string())),
            value(self.top_p.map(|top_p| top_p.to_string())),
            value(self.seed.map(|seed| seed.to_string())),
        )
    }
}

/// What the caller must do.
#[derive(Debug, PartialEq)]
pub enum ChatEffect {
    Nothing,
    Say(String),
    Help,
    /// The whole conversation, the question last.
    Ask(Vec<AskMessage>),
    ShowModels,
    /// The caller checks first whether the model exists.
    ChooseModel(String),
    ShowTools,
    /// The caller reads the file and attaches it.
    Attach(PathBuf),
    /// The last answer, for the clipboard.
    Copy(String),
    Save(SaveFile),
    List,
    Resume(ChatId),
    Forget(ChatId),
    Leave,
}

/// A file to write.
#[derive(Debug, PartialEq, Eq)]
pub struct SaveFile {
    pub file: PathBuf,
    pub text: String,
    pub overwrite: Overwrite,
}

/// A turn to save.
#[derive(Debug, PartialEq, Eq)]
pub struct SaveTurn {
    pub turn: ChatTurn,
    pub place: SaveTarget,
}

/// Where to save a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaveTarget {
    /// At the end of a conversation, or of a new one.
    EndOf(Option<ChatId>),
    /// In place of the turn whose question was retried.
    InsteadOf(SavedTurn),
}

/// Whether a question is asked for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    First,
    /// A retry of the last turn, whose answer it may replace.
    Again,
}

/// A question without an answer.
#[derive(Debug)]
struct PendingQuestion {
    question: String,
    attachments: Vec<SavedAttachment>,
    attempt: Attempt,
}

/// A conversation.
pub struct ChatSession {
    settings: ChatSettings,
    chat: Option<ChatId>,
    turns: Vec<ChatTurn>,
    /// The files of the next message.
    files: Vec<SavedAttachment>,
    /// Whether what answers can use the memory.
    can_use_memory: bool,
    /// The place of the last saved turn, or of the turn that it replaces; `None` if it is not saved.
    last: Option<SavedTurn>,
    asked: Option<PendingQuestion>,
    /// The file this conversation was written to.
    saved_to: Option<PathBuf>,
}

impl ChatSession {
    pub fn new(settings: ChatSettings) -> Self {
        ChatSession {
            settings,
            chat: None,
            turns: Vec::new(),
            files: Vec::new(),
            can_use_memory: true,
            last: None,
            asked: None,
            saved_to: None,
        }
    }

    /// What answers cannot use the memory.
    pub fn forbid_memory(&mut self) {
        self.can_use_memory = false;
        self.settings.memory = Switch::Off;
    }

    pub fn settings(&self) -> &ChatSettings {
        &self.settings
    }

    pub fn turns(&self) -> &[ChatTurn] {
        &self.turns
    }

    /// Resumes a saved conversation.
    pub fn resume(&mut self, conversation: Conversation) {
        let Conversation { chat, turns, last } = conversation;
        self.chat = Some(chat);
        self.turns = turns;
        self.last = last;
        self.asked = None;
        self.saved_to = None;
    }

    /// Records that a conversation was deleted. If it is this one, a new one starts.
    pub fn forgotten(&mut self, chat: ChatId) {
        if self.chat == Some(chat) {
            self.start_new();
        }
    }

    /// Handles the user's input.
    pub fn handle_input(&mut self, typed: &str) -> ChatEffect {
        if typed.len() > LONGEST_MESSAGE {
            return ChatEffect::Say(format!(
                "The message is longer than {} MiB, which no model can read.",
                LONGEST_MESSAGE >> 20
            ));
        }
        match command::read(typed) {
            ChatInput::Nothing => ChatEffect::Nothing,
            ChatInput::Message(question) => self.ask(question),
            ChatInput::Command(command) => self.apply(command),
            ChatInput::Unclear(why) => ChatEffect::Say(why),
        }
    }

    /// Adds a file to the next message.
    pub fn attach(&mut self, file: SavedAttachment) {
        self.files.push(file);
    }

    /// Asks a question, with the attached files.
    pub fn ask(&mut self, question: String) -> ChatEffect {
        let attachments = std::mem::take(&mut self.files);
        self.try_to_ask(PendingQuestion { question, attachments, attempt: Attempt::First })
    }

    fn try_to_ask(&mut self, asked: PendingQuestion) -> ChatEffect {
        let earlier = match asked.attempt {
            Attempt::First => &self.turns[..],
            Attempt::Again => &self.turns[..self.turns.len().saturating_sub(1)],
        };
        let user = |text: &str, attachments: &[SavedAttachment]| AskMessage {
            attachments: attachments.to_vec(),
            ..AskMessage::new(AskRole::User, text)
        };
        let system = self.settings.system.as_deref().map(|text| AskMessage::new(AskRole::System, text));
        // An answer that failed on a page may have no text.
        let earlier = earlier.iter().filter(|turn| !turn.answer.is_empty()).flat_map(|turn| {
            [
                user(&turn.question, &turn.attachments),
                AskMessage::new(AskRole::Assistant, turn.answer.as_str()),
            ]
        });
        let question = user(&asked.question, &asked.attachments);
        let messages = system.into_iter().chain(earlier).chain([question]).collect();
        self.asked = Some(asked);
        ChatEffect::Ask(messages)
    }

    fn apply(&mut self, command: ChatCommand) -> ChatEffect {
        match command {
            ChatCommand::Help => ChatEffect::Help,
            ChatCommand::Model(None) => ChatEffect::ShowModels,
            ChatCommand::Model(Some(model)) if model == "default" => {
                self.settings.model = None;
                ChatEffect::Say("Now using the default model.".to_owned())
            }
            ChatCommand::Model(Some(model)) => ChatEffect::ChooseModel(model),
            ChatCommand::Agent(wanted) => {
                if let Some(agent) = wanted {
                    self.settings.agent = agent;
                }
                ChatEffect::Say(self.who_answers())
            }
            ChatCommand::Tools => ChatEffect::ShowTools,
            ChatCommand::Memory(wanted) => {
                if wanted == Some(Switch::On) && !self.can_use_memory {
                    return ChatEffect::Say(
                        "The running server does not use the memory. Set [memory] context = true and restart it, or \
                         start the chat with --standalone."
                            .to_owned(),
                    );
                }
                if let Some(switch) = wanted {
                    self.settings.memory = switch;
                }
                ChatEffect::Say(self.about_memory())
            }
            ChatCommand::System(wanted) => {
                if let Some(system) = wanted {
                    self.settings.system = system;
                }
                ChatEffect::Say(match &self.settings.system {
                    Some(system) => format!("Instructions: {system}"),
                    None => "No instructions are set. '/system TEXT' sets them.".to_owned(),
                })
            }
            ChatCommand::Set(wanted) => {
                if let Some(change) = wanted {
                    self.settings.sampling.change(change);
                }
                ChatEffect::Say(format!("Now: {}.", self.settings.sampling.describe()))
            }
            ChatCommand::Attach(_) if self.files.len() >= MOST_FILES => {
                ChatEffect::Say(format!("A message may have at most {MOST_FILES} files."))
            }
            ChatCommand::Attach(file) => ChatEffect::Attach(file.into()),
            ChatCommand::Copy => match self.turns.last() {
                Some(turn) => ChatEffect::Copy(turn.answer.clone()),
                None => ChatEffect::Say("There is no answer yet, so there is nothing to copy.".to_owned()),
            },
            ChatCommand::Retry => self.retry(),
            ChatCommand::Save(file) => self.save(file.into()),
            ChatCommand::New => self.start_new(),
            ChatCommand::List => ChatEffect::List,
            ChatCommand::Resume(chat) => ChatEffect::Resume(chat),
            ChatCommand::Forget(chat) => ChatEffect::Forget(chat),
            ChatCommand::Quit => ChatEffect::Leave,
        }
    }

    fn who_answers(&self) -> String {
        match self.settings.agent {
            AgentChoice::None => "No agent is active: the model answers directly, without tools. Agents: simple, \
                                  orchestrator, react and codeact; '/agent orchestrator' lets the model use tools."
                .to_owned(),
            AgentChoice::Agent(agent) => {
                format!(
                    "The agent {agent} answers; /tools lists what it may use. '/agent none' turns it off."
                )
            }
        }
    }

    fn about_memory(&self) -> String {
        match self.settings.memory {
            Switch::On => "Memory is on: answers use the documents that 'hob memory index' read.".to_owned(),
            Switch::Off => "Memory is off.".to_owned(),
        }
    }

    /// Retries the question without an answer, or else the last one.
    fn retry(&mut self) -> ChatEffect {
        match (self.asked.take(), self.turns.last()) {
            (Some(asked), _) => self.try_to_ask(asked),
            (None, Some(last)) => {
                let (question, attachments) = (last.question.clone(), last.attachments.clone());
                self.try_to_ask(PendingQuestion { question, attachments, attempt: Attempt::Again })
            }
            (None, None) => ChatEffect::Say("No question was asked yet.".to_owned()),
        }
    }

    fn save(&mut self, file: PathBuf) -> ChatEffect {
        if self.turns.is_empty() {
            return ChatEffect::Say("There is no answer yet, so there is nothing to save.".to_owned());
        }
        let overwrite = match &self.saved_to {
            Some(known) if *known == file => Overwrite::Force,
            _ => Overwrite::Refuse,
        };
        ChatEffect::Save(SaveFile { file, text: transcript(&self.turns), overwrite })
    }

    /// A question without an answer is kept, and can be retried in the new conversation.
    fn start_new(&mut self) -> ChatEffect {
        self.chat = None;
        self.turns.clear();
        self.last = None;
        self.saved_to = None;
        if let Some(asked) = &mut self.asked {
            asked.attempt = Attempt::First;
        }
        ChatEffect::Say("Started a new conversation.".to_owned())
    }

    /// Sets the model, which exists.
    pub fn use_model(&mut self, model: String) {
        self.settings.model = Some(model);
    }

    /// The conversation was written to a file.
    pub fn saved(&mut self, file: PathBuf) {
        self.saved_to = Some(file);
    }

    /// Records an answer. Returns `None` if it is empty: then the question still has no answer.
    pub fn answered(&mut self, answer: String, ending: TurnEnding, model: String) -> Option<SaveTurn> {
        if answer.trim().is_empty() {
            return None;
        }
        let PendingQuestion { question, attachments, attempt } = self.asked.take()?;
        let turn = ChatTurn { question, attachments, answer, ending, model };
        match attempt {
            Attempt::First => self.last = None,
            Attempt::Again => drop(self.turns.pop()),
        }
        self.turns.push(turn.clone());
        Some(SaveTurn { turn, place: self.last.map_or(SaveTarget::EndOf(self.chat), SaveTarget::InsteadOf) })
    }

    /// Records where the last turn was saved.
    pub fn kept(&mut self, kept: SavedTurn) {
        self.chat = Some(kept.chat);
        self.last = Some(kept);
    }

    /// The hint for a question that failed.
    pub fn advice(&self, is_overflow: bool) -> String {
        let earlier = match &self.asked {
            Some(PendingQuestion { attempt: Attempt::Again, .. }) => self.turns.len().saturating_sub(1),
            _ => self.turns.len(),
        };
        match (is_overflow, earlier) {
            (true, 0) => {
                "The question exceeds the model's context. Ask a shorter one, or switch models with /model."
                    .to_owned()
            }
            (true, turns) => format!(
                "With {} before it, the question exceeds the model's context. Nothing was removed: type /new to start a \
                 new conversation, then /retry to ask the question there.",
                counted(turns, "turn")
            ),
            (false, _) => "/retry asks again.".to_owned(),
        }
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
