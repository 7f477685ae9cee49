//! The conversation at the terminal: reads lines, lets the session decide, and does what it says.

use std::future::Future;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use anyhow::{Context, Result};
use hob_config::WriteError;
use hob_core::model::AUTO;
use hob_core::{AskError, CallerRole, Message, ModelKind};
use hob_system::store::chats::ChatId;
use tokio::time::timeout;

use super::answering::{Answer, End, answer};
use super::archive::Archive;
use super::editor::{Editor, EditorOptions, Input, Typed};
use super::house::House;
use super::listing;
use super::page::{Page, Steps};
use super::save::{expand, write};
use super::session::{Effect, Keep, Save, Session};
use super::show::{show_help, show_last};
use super::terminal::Terminal;
use crate::args::AgentChoice;
use crate::commands::ask::{no_answer, tell_of_early_end};
use crate::commands::model::Format;
use crate::commands::tools;
use crate::failure;
use crate::output;
use crate::output::markdown::Look;
use crate::output::progress::Spinner;
use crate::output::style::{DIM, NAME};
use crate::output::text::one_line;
use crate::signals::{Signals, Stop};

/// Columns of a terminal that does not tell.
const USUAL_WIDTH: usize = 80;

/// Wider lines are hard to read.
const WIDEST: usize = 100;

/// What is shown while lists of models are waited for.
const ASKING: &str = "asking for models";

/// How long the database is waited for after Ctrl-C.
const MOMENT: Duration = Duration::from_secs(1);

/// The file of earlier lines.
const HISTORY: &str = "chat_history";

pub struct Talk<'a> {
    pub house: &'a House<'a>,
    pub session: Session,
    /// `None` when nothing can be kept.
    pub archive: Option<Archive>,
}

/// Where a conversation takes place.
struct Stage<'s> {
    look: Option<Look>,
    terminal: &'s Terminal,
    signals: &'s mut Signals,
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
    pub async fn run(mut self, home: &Path, signals: &mut Signals) -> Result<ExitCode> {
        let terminal = Terminal::take();
        let is_stdout = io::stdout().is_terminal();
        let has_colours = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
        let editor = Editor::start(EditorOptions { history: home.join(HISTORY), has_colours, is_stdout })?;
        let look = |width: Option<usize>| {
            is_stdout.then(|| Look::new(width.unwrap_or(USUAL_WIDTH).min(WIDEST), has_colours))
        };
        self.greet(look(None))?;
        loop {
            let input = match listen(&editor, signals).await? {
                Heard::Input(input) => input,
                Heard::Stop(stop) => return Ok(stop.exit_code()),
            };
            let next = match input.typed {
                Typed::Line(line) => {
                    let effect = self.session.hear(&line);
                    let stage =
                        Stage { look: look(input.width), terminal: &terminal, signals: &mut *signals };
                    self.carry_out(effect, stage).await?
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

    async fn carry_out(&mut self, effect: Effect, stage: Stage<'_>) -> Result<Next> {
        let Stage { look, signals, .. } = stage;
        match effect {
            Effect::Nothing => {}
            Effect::Say(text) => output::note(text),
            Effect::Help => show_help()?,
            Effect::Ask(messages) => {
                let _hush = stage.terminal.hush();
                return self.ask(messages, look, signals).await;
            }
            Effect::ShowModels => return Ok(attend(self.show_models(), signals).await),
            Effect::ChooseModel(model) => return Ok(attend(self.choose_model(model), signals).await),
            Effect::ShowTools => self.show_tools()?,
            Effect::Save(save) => self.save(save),
            Effect::List => return Ok(attend(self.show_chats(), signals).await),
            Effect::Resume(chat) => return Ok(attend(self.resume(chat, look), signals).await),
            Effect::Forget(chat) => return Ok(attend(self.forget(chat), signals).await),
            Effect::Leave => return Ok(Next::Leave(ExitCode::SUCCESS)),
        }
        Ok(Next::GoOn)
    }

    async fn ask(
        &mut self,
        messages: Vec<Message>,
        look: Option<Look>,
        signals: &mut Signals,
    ) -> Result<Next> {
        let caller = self.house.caller(self.session.settings());
        let question = self.house.question(self.session.settings(), &caller, messages);
        let mut page = Page::new(look, Steps::Shown, self.house.thoughts);
        let Answer { text, model, end } = answer(question, &mut page, signals).await;
        let keep = end.kept_as().and_then(|ending| self.session.answered(text, ending, model));
        let is_answer = keep.is_some();
        if let Some(stop) = self.keep(keep, signals).await {
            return Ok(Next::Leave(stop.exit_code()));
        }
        match end {
            End::Complete(reason) if is_answer => tell_of_early_end(&reason, self.house.max_tokens()),
            End::Complete(reason) => {
                failure::report(&no_answer(Some(&reason), self.house.max_tokens()));
                output::note(self.session.advice(false));
            }
            End::Stopped(Stop::Interrupt) => output::note(match is_answer {
                true => "Stopped. What was answered is kept; /retry asks again.",
                false => "Stopped before the answer began. /retry asks again.",
            }),
            End::Stopped(stop) => return Ok(Next::Leave(stop.exit_code())),
            End::Unshown(_, error) => return Err(error.into()),
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

    /// Keeps a turn. Returns the signal that ends everything, if one came meanwhile.
    async fn keep(&mut self, keep: Option<Keep>, signals: &mut Signals) -> Option<Stop> {
        let (Some(keep), Some(archive)) = (keep, &self.archive) else { return None };
        let mut keeping = pin!(archive.keep(keep));
        let kept = tokio::select! {
            kept = &mut keeping => Ok(kept),
            stop = signals.next() => match stop {
                // Whoever presses Ctrl-C twice meant the answer both times, and the database needs but a moment.
                Stop::Interrupt => timeout(MOMENT, keeping).await,
                stop => return Some(stop),
            },
        };
        match kept {
            Ok(Ok(kept)) => self.session.kept(kept),
            Ok(Err(error)) => {
                output::warning(format_args!("this turn is not kept: {}", failure::explain(&error)));
            }
            // The database goes on by itself, so nobody knows.
            Err(_) => output::warning("this turn may not be kept: the database was not waited for."),
        }
        None
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
        let conversation = self.archive()?.conversation(chat).await?;
        self.session.resume(conversation);
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
        let listed = {
            let _waiting = Spinner::start(ASKING);
            system.listed_models(CallerRole::Owner).await?
        };
        // Others may have a model by the same name; the first of them answers.
        let answering = listed.iter().position(|listed| system.pool().means(current, listed));
        for (number, listed) in listed.iter().enumerate() {
            if listed.model.kind != ModelKind::Text {
                continue;
            }
            let sign = if answering == Some(number) { "*" } else { " " };
            let (model, engine) = (one_line(&listed.model.id), &listed.engine);
            output::line(format_args!("{sign} {NAME}{model}{NAME:#} {DIM}{engine}{DIM:#}"))?;
        }
        output::note(format_args!(
            "'/model NAME' has another one answer; '/model {AUTO}' leaves the choice to Hob."
        ));
        Ok(())
    }

    async fn choose_model(&mut self, model: String) -> Result<()> {
        if model != AUTO {
            let _waiting = Spinner::start(ASKING);
            self.house.household.system.pool().engine_of(&model).await?;
        }
        output::note(format_args!("{} answers.", one_line(&model)));
        self.session.use_model(model);
        Ok(())
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
            Err(WriteError::Exists { path }) => {
                output::note(format_args!("{} is there already. Choose another name.", path.display()));
            }
            Err(error) => {
                failure::report(&error.into());
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

/// The next line, unless a signal ends everything. Ctrl-C is a key while a line is typed, so an interrupt that comes as a
/// signal then was meant for the answer that had just ended.
async fn listen(editor: &Editor, signals: &mut Signals) -> Result<Heard> {
    let mut input = editor.read();
    loop {
        tokio::select! {
            input = &mut input => return Ok(Heard::Input(input.context("the line editor failed")??)),
            stop = signals.next() => match stop {
                Stop::Interrupt => {}
                stop => return Ok(Heard::Stop(stop)),
            },
        }
    }
}

/// Waits for some work, and says what went wrong with it. A signal ends the wait; Ctrl-C ends nothing else.
async fn attend(work: impl Future<Output = Result<()>>, signals: &mut Signals) -> Next {
    tokio::select! {
        outcome = work => {
            if let Err(error) = outcome {
                failure::report(&error);
            }
            Next::GoOn
        }
        stop = signals.next() => match stop {
            Stop::Interrupt => {
                output::note("Stopped.");
                Next::GoOn
            }
            stop => Next::Leave(stop.exit_code()),
        },
    }
}
