//! A conversation and what can be done in it: what was typed goes in, what is to be done comes out. Knows no terminal, no
//! engine and no disk.

use std::path::PathBuf;

use hob_config::Overwrite;
use hob_core::{Message, Role};
use hob_system::store::chats::{ChatId, Conversation, Kept, Turn, TurnEnding};

use super::command::{self, Command, Said, Switch};
use super::transcript::transcript;
use crate::args::AgentChoice;
use crate::output::number::counted;

/// More than any model can read.
const LONGEST_MESSAGE: usize = 1 << 20;

/// Who answers, and with what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `None` for the default.
    pub model: Option<String>,
    pub agent: AgentChoice,
    pub memory: Switch,
}

/// What is to be done.
#[derive(Debug, PartialEq)]
pub enum Effect {
    Nothing,
    Say(String),
    Help,
    /// The whole conversation, the question last.
    Ask(Vec<Message>),
    ShowModels,
    /// Whether there is such a model is to be found out first.
    ChooseModel(String),
    ShowTools,
    Save(Save),
    List,
    Resume(ChatId),
    Forget(ChatId),
    Leave,
}

/// A file to be written.
#[derive(Debug, PartialEq, Eq)]
pub struct Save {
    pub file: PathBuf,
    pub text: String,
    pub overwrite: Overwrite,
}

/// A turn to be kept.
#[derive(Debug, PartialEq, Eq)]
pub struct Keep {
    pub turn: Turn,
    pub place: Place,
}

/// Where a turn is to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Of a conversation, or of a new one.
    EndOf(Option<ChatId>),
    /// Of the turn whose question was asked again.
    InsteadOf(Kept),
}

/// Whether a question is asked for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Try {
    First,
    /// It is the last turn's, whose answer it may replace.
    Again,
}

/// A question without an answer.
#[derive(Debug)]
struct Asked {
    question: String,
    attempt: Try,
}

/// A conversation.
pub struct Session {
    settings: Settings,
    chat: Option<ChatId>,
    turns: Vec<Turn>,
    /// Where the last turn is kept, or the one that it replaced; `None` where it is not.
    last: Option<Kept>,
    asked: Option<Asked>,
    /// The file this conversation was written to.
    saved_to: Option<PathBuf>,
}

impl Session {
    pub fn new(settings: Settings) -> Self {
        Session { settings, chat: None, turns: Vec::new(), last: None, asked: None, saved_to: None }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// Goes on with a conversation that was kept.
    pub fn resume(&mut self, conversation: Conversation) {
        let Conversation { turns, last } = conversation;
        self.chat = Some(last.chat);
        self.turns = turns;
        self.last = Some(last);
        self.asked = None;
        self.saved_to = None;
    }

    /// A conversation was deleted. Where it is this one, another begins.
    pub fn forgotten(&mut self, chat: ChatId) {
        if self.chat == Some(chat) {
            self.begin_anew();
        }
    }

    /// Takes what was typed.
    pub fn hear(&mut self, typed: &str) -> Effect {
        if typed.len() > LONGEST_MESSAGE {
            return Effect::Say(format!(
                "That is longer than {} MiB, which no model can read.",
                LONGEST_MESSAGE >> 20
            ));
        }
        match command::read(typed) {
            Said::Nothing => Effect::Nothing,
            Said::Message(question) => self.ask(question),
            Said::Command(command) => self.obey(command),
            Said::Unclear(why) => Effect::Say(why),
        }
    }

    /// Asks a question.
    pub fn ask(&mut self, question: String) -> Effect {
        self.try_to_ask(question, Try::First)
    }

    fn try_to_ask(&mut self, question: String, attempt: Try) -> Effect {
        let earlier = match attempt {
            Try::First => &self.turns[..],
            Try::Again => &self.turns[..self.turns.len().saturating_sub(1)],
        };
        let mut messages: Vec<Message> = earlier
            .iter()
            .flat_map(|turn| {
                [
                    Message::new(Role::User, turn.question.as_str()),
                    Message::new(Role::Assistant, turn.answer.as_str()),
                ]
            })
            .collect();
        messages.push(Message::new(Role::User, question.as_str()));
        self.asked = Some(Asked { question, attempt });
        Effect::Ask(messages)
    }

    fn obey(&mut self, command: Command) -> Effect {
        match command {
            Command::Help => Effect::Help,
            Command::Model(None) => Effect::ShowModels,
            Command::Model(Some(model)) if model == "default" => {
                self.settings.model = None;
                Effect::Say("The default model answers.".to_owned())
            }
            Command::Model(Some(model)) => Effect::ChooseModel(model),
            Command::Agent(wanted) => {
                if let Some(agent) = wanted {
                    self.settings.agent = agent;
                }
                Effect::Say(self.who_answers())
            }
            Command::Tools => Effect::ShowTools,
            Command::Memory(wanted) => {
                if let Some(switch) = wanted {
                    self.settings.memory = switch;
                }
                Effect::Say(self.about_memory())
            }
            Command::Retry => self.retry(),
            Command::Save(file) => self.save(file.into()),
            Command::New => self.begin_anew(),
            Command::List => Effect::List,
            Command::Resume(chat) => Effect::Resume(chat),
            Command::Forget(chat) => Effect::Forget(chat),
            Command::Quit => Effect::Leave,
        }
    }

    fn who_answers(&self) -> String {
        match self.settings.agent {
            AgentChoice::None => "The model answers by itself, without tools. There are the agents simple, \
                                  orchestrator, react and codeact; '/agent orchestrator' lets it use tools."
                .to_owned(),
            AgentChoice::Agent(agent) => {
                format!(
                    "The agent {agent} answers; /tools shows what it may use. '/agent none' sends it away."
                )
            }
        }
    }

    fn about_memory(&self) -> String {
        match self.settings.memory {
            Switch::On => "The memory is on: answers draw on what 'hob memory index' took in.".to_owned(),
            Switch::Off => "The memory is off.".to_owned(),
        }
    }

    /// A question that has no answer is asked before one that has.
    fn retry(&mut self) -> Effect {
        match (self.asked.take(), self.turns.last()) {
            (Some(Asked { question, attempt }), _) => self.try_to_ask(question, attempt),
            (None, Some(last)) => {
                let question = last.question.clone();
                self.try_to_ask(question, Try::Again)
            }
            (None, None) => Effect::Say("Nothing was asked yet.".to_owned()),
        }
    }

    fn save(&mut self, file: PathBuf) -> Effect {
        if self.turns.is_empty() {
            return Effect::Say("Nothing was answered yet, so there is nothing to save.".to_owned());
        }
        let overwrite = match &self.saved_to {
            Some(known) if *known == file => Overwrite::Force,
            _ => Overwrite::Refuse,
        };
        Effect::Save(Save { file, text: transcript(&self.turns), overwrite })
    }

    /// A question that has no answer goes along, and can be asked in the new conversation.
    fn begin_anew(&mut self) -> Effect {
        self.chat = None;
        self.turns.clear();
        self.last = None;
        self.saved_to = None;
        if let Some(asked) = &mut self.asked {
            asked.attempt = Try::First;
        }
        Effect::Say("A new conversation.".to_owned())
    }

    /// The model is there, and answers from now on.
    pub fn use_model(&mut self, model: String) {
        self.settings.model = Some(model);
    }

    /// The conversation was written to a file.
    pub fn saved(&mut self, file: PathBuf) {
        self.saved_to = Some(file);
    }

    /// The question was answered, as far as `ending` says; `None` when there is nothing to keep, and the question still has
    /// no answer.
    pub fn answered(&mut self, answer: String, ending: TurnEnding, model: String) -> Option<Keep> {
        if answer.trim().is_empty() {
            return None;
        }
        let Asked { question, attempt } = self.asked.take()?;
        let turn = Turn { question, answer, ending, model };
        match attempt {
            Try::First => self.last = None,
            Try::Again => drop(self.turns.pop()),
        }
        self.turns.push(turn.clone());
        Some(Keep { turn, place: self.last.map_or(Place::EndOf(self.chat), Place::InsteadOf) })
    }

    /// The last turn was kept there.
    pub fn kept(&mut self, kept: Kept) {
        self.chat = Some(kept.chat);
        self.last = Some(kept);
    }

    /// What can be done about a question that failed.
    pub fn advice(&self, is_overflow: bool) -> String {
        let earlier = match &self.asked {
            Some(Asked { attempt: Try::Again, .. }) => self.turns.len().saturating_sub(1),
            _ => self.turns.len(),
        };
        match (is_overflow, earlier) {
            (true, 0) => {
                "The question is longer than the model can read. Ask a shorter one, or choose another \
                          model with /model."
                    .to_owned()
            }
            (true, turns) => format!(
                "With {} before it, the question is longer than the model can read. Nothing was left out: /new \
                 begins another conversation, and /retry then asks the question there.",
                counted(turns, "turn")
            ),
            (false, _) => "/retry asks again.".to_owned(),
        }
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
