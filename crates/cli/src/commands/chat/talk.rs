//! The conversation at the terminal: reads lines, lets the session decide, and does what it says.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use anyhow::{Context, Result};
use hob_core::routing::AUTO;
use hob_core::{Message, ModelKind};
use hob_system::store::chats::{ChatId, TurnEnding};
use hob_system::{AskError, ListedModel};

use super::answering::{Answer, End, answer};
use super::archive::Archive;
use super::editor::{Editor, EditorOptions, Input, Typed};
use super::house::House;
use super::listing;
use super::page::{Page, Steps};
use super::save::{expand, write};
use super::session::{Effect, Save, Session};
use super::show::{show_help, show_last};
use super::terminal::Terminal;
use crate::args::AgentChoice;
use crate::commands::ask::{no_answer, tell_of_early_end};
use crate::commands::model::Format;
use crate::commands::tools;
use crate::failure;
use crate::output;
use crate::output::markdown::Look;
use crate::output::style::{DIM, NAME};
use crate::output::text::one_line;
use crate::signals::{Signals, Stop};

/// Columns of a terminal that does not tell.
const USUAL_WIDTH: usize = 80;

/// Wider lines are hard to read.
const WIDEST: usize = 100;

/// The file of earlier lines.
const HISTORY: &str = "chat_history";

pub struct Talk<'a> {
    pub house: &'a House<'a>,
    pub session: Session,
    /// `None` when nothing can be kept.
    pub archive: Option<Archive>,
    pub signals: &'a mut Signals,
}

/// What was waited for at the prompt.
enum Heard {
    Input(Input),
    Stop(Stop),
}

/// Whether the conversation goes on.
enum Next {
    GoOn,
    Leave(ExitCode),
}

impl Talk<'_> {
    pub async fn run(mut self, home: &Path) -> Result<ExitCode> {
        let terminal = Terminal::take();
        let is_stdout = io::stdout().is_terminal();
        let has_colours = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
        let editor = Editor::start(EditorOptions { history: home.join(HISTORY), has_colours, is_stdout })?;
        let look = |width: Option<usize>| {
            is_stdout.then(|| Look::new(width.unwrap_or(USUAL_WIDTH).min(WIDEST), has_colours))
        };
        self.greet(look(None))?;
        loop {
            let input = match self.listen(&editor).await? {
                Heard::Input(input) => input,
                Heard::Stop(stop) => return Ok(stop.exit_code()),
            };
            let next = match input.typed {
                Typed::Line(line) => {
                    let effect = self.session.hear(&line);
                    self.carry_out(effect, look(input.width), &terminal).await?
                }
                Typed::Interrupt => {
                    output::note("Ctrl-D or /quit leaves; Ctrl-C stops an answer.");
                    Next::GoOn
                }
                Typed::End => Next::Leave(ExitCode::SUCCESS),
            };
            if let Next::Leave(code) = next {
                return Ok(code);
            }
        }
    }

    /// The next line, unless a signal ends everything. Ctrl-C is a key while a line is typed, so an interrupt that comes as a
    /// signal then was meant for the answer that had just ended.
    async fn listen(&mut self, editor: &Editor) -> Result<Heard> {
        let mut input = editor.read();
        loop {
            tokio::select! {
                input = &mut input => return Ok(Heard::Input(input.context("the line editor failed")??)),
                stop = self.signals.next() => match stop {
                    Stop::Interrupt => {}
                    stop => return Ok(Heard::Stop(stop)),
                },
            }
        }
    }

    async fn carry_out(&mut self, effect: Effect, look: Option<Look>, terminal: &Terminal) -> Result<Next> {
        match effect {
            Effect::Nothing => {}
            Effect::Say(text) => output::note(text),
            Effect::Help => show_help()?,
            Effect::Ask(messages) => {
                let _hush = terminal.hush();
                return self.ask(messages, look).await;
            }
            Effect::ShowModels => self.report(self.show_models().await),
            Effect::ChooseModel(model) => self.choose_model(model).await,
            Effect::ShowTools => self.show_tools()?,
            Effect::Save(save) => self.save(save),
            Effect::List => self.report(self.show_chats().await),
            Effect::Resume(chat) => {
                let resumed = self.resume(chat, look).await;
                self.report(resumed);
            }
            Effect::Forget(chat) => {
                let forgotten = self.forget(chat).await;
                self.report(forgotten);
            }
            Effect::Leave => return Ok(Next::Leave(ExitCode::SUCCESS)),
        }
        Ok(Next::GoOn)
    }

    /// Says what went wrong, and goes on.
    fn report(&self, outcome: Result<()>) {
        if let Err(error) = outcome {
            failure::report(&error);
        }
    }

    async fn ask(&mut self, messages: Vec<Message>, look: Option<Look>) -> Result<Next> {
        let caller = self.house.caller(self.session.settings());
        let question = self.house.question(self.session.settings(), &caller, messages);
        let mut page = Page::new(look, Steps::Shown, self.house.thoughts);
        let Answer { text, model, end } = answer(question, &mut page, self.signals).await?;
        match end {
            End::Complete(reason) => {
                let max_tokens = self.house.max_tokens();
                if self.keep(text, TurnEnding::Complete, model).await {
                    tell_of_early_end(&reason, max_tokens);
                } else {
                    failure::report(&no_answer(Some(&reason), max_tokens));
                    output::note(self.session.advice(false));
                }
            }
            End::Stopped(stop) => {
                let kept = self.keep(text, TurnEnding::Stopped, model).await;
                if stop != Stop::Interrupt {
                    return Ok(Next::Leave(stop.exit_code()));
                }
                output::note(match kept {
                    true => "Stopped. What was answered is kept; /retry asks again.",
                    false => "Stopped before the answer began. /retry asks again.",
                });
            }
            End::Failed(error) => {
                let is_overflow = matches!(&error, AskError::Engine(error) if error.is_context_overflow());
                failure::report(&error.into());
                output::note(self.session.advice(is_overflow));
            }
        }
        // A free line before the next question.
        output::complain("");
        Ok(Next::GoOn)
    }

    /// Keeps an answer; `false` when there is none.
    async fn keep(&mut self, text: String, ending: TurnEnding, model: String) -> bool {
        let Some(keep) = self.session.answered(text, ending, model) else { return false };
        if let Some(archive) = &self.archive {
            match archive.keep(keep).await {
                Ok(chat) => self.session.kept(chat),
                Err(error) => {
                    output::warning(format_args!("this turn is not kept: {}", failure::explain(&error)))
                }
            }
        }
        true
    }

    fn archive(&self) -> Result<&Archive> {
        self.archive.as_ref().context("conversations are not kept")
    }

    async fn show_chats(&self) -> Result<()> {
        listing::print(&self.archive()?.list().await?)?;
        output::note("'/resume ID' goes on with one of them.");
        Ok(())
    }

    async fn resume(&mut self, chat: ChatId, look: Option<Look>) -> Result<()> {
        let turns = self.archive()?.turns(chat).await?;
        self.session.resume(chat, turns);
        show_last(self.session.turns(), look)
    }

    async fn forget(&mut self, chat: ChatId) -> Result<()> {
        self.archive()?.forget(chat).await?;
        self.session.forgotten(chat);
        output::note(format_args!("Conversation {chat} is gone."));
        Ok(())
    }

    async fn show_models(&self) -> Result<()> {
        let system = &self.house.household.system;
        let current = self.session.settings().model.as_ref().unwrap_or(&self.house.default_model);
        for ListedModel { engine, model } in system.listed_models().await? {
            if model.kind != ModelKind::Text {
                continue;
            }
            let sign = if system.engine().means(current, &model.id) { "*" } else { " " };
            output::line(format_args!("{sign} {NAME}{}{NAME:#} {DIM}{engine}{DIM:#}", one_line(&model.id)))?;
        }
        output::note(format_args!(
            "'/model NAME' has another one answer; '/model {AUTO}' leaves the choice to Hob."
        ));
        Ok(())
    }

    async fn choose_model(&mut self, model: String) {
        let is_there = match model.as_str() {
            AUTO => Ok(()),
            name => self.house.household.system.pool().engine_of(name).await.map(drop),
        };
        match is_there {
            Ok(()) => {
                output::note(format_args!("{} answers.", one_line(&model)));
                self.session.use_model(model);
            }
            Err(error) => self.report(Err(error.into())),
        }
    }

    fn show_tools(&self) -> Result<()> {
        tools::list(&self.house.household.system.tools(), Format::People)?;
        if let Some(only) = &self.house.only_tools {
            output::note(format_args!("Of these, agents may use {} here.", only.join(", ")));
        }
        if self.session.settings().agent == AgentChoice::None {
            output::note("No agent answers, so no tool is used; '/agent orchestrator' changes that.");
        }
        Ok(())
    }

    fn save(&mut self, save: Save) {
        let file = expand(&save.file);
        match write(&file, &save) {
            Ok(()) => {
                output::note(format_args!("Saved to {}.", file.display()));
                self.session.saved(save.file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                output::note(format_args!("{} is there already. Choose another name.", file.display()));
            }
            Err(error) => {
                let error = anyhow::Error::new(error).context(format!("cannot write {}", file.display()));
                self.report(Err(error));
            }
        }
    }

    fn greet(&self, look: Option<Look>) -> Result<()> {
        let engine = self.house.household.system.engine();
        let model = self.session.settings().model.as_ref().unwrap_or(&self.house.default_model);
        output::complain(format_args!(
            "{NAME}{}{NAME:#} {DIM}on {}. /help shows what there is; Ctrl-D leaves.{DIM:#}",
            one_line(model),
            engine.key()
        ));
        show_last(self.session.turns(), look)
    }
}
