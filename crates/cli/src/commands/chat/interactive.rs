//! The interactive chat: reads lines, passes them to the session, and carries out its effects.

use std::future::Future;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use anyhow::{Context, Result};
use hob_conversations::{AttachmentKind, ChatId};
use hob_core::model::AUTO;
use hob_process::WriteError;
use tokio::time::timeout;

use super::answer_view::{AnswerView, StepDisplay};
use super::answering::{AnswerEnd, ChatAnswer, answer};
use super::clipboard;
use super::editor::{Editor, EditorEvent, EditorInput, EditorOptions};
use super::listing;
use super::save_file::{expand, write};
use super::saved_chats::SavedChats;
use super::session::{ChatEffect, ChatSession, SaveFile, SaveTurn};
use super::show::{show_help, show_last};
use super::target::ChatTarget;
use super::terminal::Terminal;
use crate::answers::AskMessage;
use crate::answers::question_files::read_question_file;
use crate::args::AgentChoice;
use crate::commands::ask::{no_answer, note_truncation};
use crate::commands::tools;
use crate::failure;
use crate::output;
use crate::output::markdown::MarkdownLook;
use crate::output::progress::Spinner;
use crate::output::style::{DIM, NAME};
use crate::output::text::one_line;
use crate::signals::{Signals, StopSignal};

/// The width of a terminal that does not report it.
const USUAL_WIDTH: usize = 80;

/// Wider lines are hard to read.
const WIDEST: usize = 100;

/// The spinner text while models are listed.
const ASKING: &str = "loading the list of models";

/// The longest wait for the database after Ctrl-C.
const MOMENT: Duration = Duration::from_secs(1);

/// What raises the limit of tokens here.
const TOKENS_COMMAND: &str = "'/set max_tokens NUMBER'";

/// The history file.
const HISTORY: &str = "chat_history";

pub struct InteractiveChat<'a> {
    pub target: &'a ChatTarget<'a>,
    pub session: ChatSession,
    /// `None` if conversations cannot be saved.
    pub saved_chats: Option<SavedChats>,
}

/// The context of one turn.
struct TurnContext<'s> {
    look: Option<MarkdownLook>,
    signals: &'s mut Signals,
}

/// The next event at the prompt.
enum PromptEvent {
    Input(EditorInput),
    Stop(StopSignal),
}

/// Whether the chat continues.
enum Next {
    GoOn,
    Leave(ExitCode),
}

impl InteractiveChat<'_> {
    pub async fn run(mut self, home: &Path, terminal: &Terminal, signals: &mut Signals) -> Result<ExitCode> {
        let quiet = terminal.quiet();
        let is_stdout = io::stdout().is_terminal();
        let has_colours = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
        let editor = Editor::start(EditorOptions { history: home.join(HISTORY), has_colours, is_stdout })?;
        let look = |width: Option<usize>| {
            is_stdout.then(|| MarkdownLook::new(width.unwrap_or(USUAL_WIDTH).min(WIDEST), has_colours))
        };
        self.greet(look(None))?;
        loop {
            let input = match listen(&editor, signals).await? {
                PromptEvent::Input(input) => input,
                PromptEvent::Stop(stop) => return Ok(stop.exit_code()),
            };
            let next = match input.typed {
                EditorEvent::Line(line) => {
                    quiet.renew();
                    let effect = self.session.handle_input(&line);
                    let stage = TurnContext { look: look(input.width), signals: &mut *signals };
                    self.carry_out(effect, stage).await?
                }
                EditorEvent::Interrupt => {
                    output::note("Press Ctrl-D or type /quit to quit; Ctrl-C stops an answer.");
                    Next::GoOn
                }
                EditorEvent::End => Next::Leave(ExitCode::SUCCESS),
            };
            if let Next::Leave(code) = next {
                return Ok(code);
            }
        }
    }

    async fn carry_out(&mut self, effect: ChatEffect, stage: TurnContext<'_>) -> Result<Next> {
        let TurnContext { look, signals } = stage;
        match effect {
            ChatEffect::Nothing => {}
            ChatEffect::Say(text) => output::note(text),
            ChatEffect::Help => show_help()?,
            ChatEffect::Ask(messages) => return self.ask(messages, look, signals).await,
            ChatEffect::ShowModels => return Ok(attend(self.show_models(), signals).await),
            ChatEffect::ChooseModel(model) => return Ok(attend(self.choose_model(model), signals).await),
            ChatEffect::ShowTools => return Ok(attend(self.show_tools(), signals).await),
            ChatEffect::Attach(file) => return Ok(attend(self.attach(file), signals).await),
            ChatEffect::Copy(text) => return Ok(attend(copy(text), signals).await),
            ChatEffect::Save(save) => self.save(save),
            ChatEffect::List => return Ok(attend(self.show_chats(), signals).await),
            ChatEffect::Resume(chat) => return Ok(attend(self.resume(chat, look), signals).await),
            ChatEffect::Forget(chat) => return Ok(attend(self.forget(chat), signals).await),
            ChatEffect::Leave => return Ok(Next::Leave(ExitCode::SUCCESS)),
        }
        Ok(Next::GoOn)
    }

    async fn ask(
        &mut self,
        messages: Vec<AskMessage>,
        look: Option<MarkdownLook>,
        signals: &mut Signals,
    ) -> Result<Next> {
        let question = self.target.question(self.session.settings(), messages);
        let mut view = AnswerView::new(look, StepDisplay::Shown, self.target.reasoning);
        let events = self.target.source.answer(question);
        let ChatAnswer { text, model, max_tokens, end } = answer(events, &mut view, signals).await;
        let keep = end.kept_as().and_then(|ending| self.session.answered(text, ending, model));
        let is_answer = keep.is_some();
        if let Some(stop) = self.keep(keep, signals).await {
            return Ok(Next::Leave(stop.exit_code()));
        }
        match end {
            AnswerEnd::Complete(reason) if is_answer => note_truncation(&reason, max_tokens, TOKENS_COMMAND),
            AnswerEnd::Complete(reason) => {
                failure::report(&no_answer(Some(&reason), max_tokens, TOKENS_COMMAND));
                output::note(self.session.advice(false));
            }
            AnswerEnd::Stopped(StopSignal::Interrupt) => output::note(match is_answer {
                true => "Stopped. The partial answer is saved; /retry asks again.",
                false => "Stopped before the answer began. /retry asks again.",
            }),
            AnswerEnd::Stopped(stop) => return Ok(Next::Leave(stop.exit_code())),
            AnswerEnd::Unshown(_, error) => return Err(error.into()),
            AnswerEnd::Failed(error) => {
                let is_overflow = error.is_context_overflow;
                failure::report(&error.into());
                output::note(self.session.advice(is_overflow));
            }
        }
        // An empty line before the next question.
        output::stderr_line("");
        Ok(Next::GoOn)
    }

    /// Saves a turn. Returns a signal that ends the program, if one arrived meanwhile.
    async fn keep(&mut self, keep: Option<SaveTurn>, signals: &mut Signals) -> Option<StopSignal> {
        let (Some(keep), Some(saved_chats)) = (keep, &self.saved_chats) else { return None };
        let mut keeping = pin!(saved_chats.keep(keep));
        let kept = tokio::select! {
            kept = &mut keeping => Ok(kept),
            stop = signals.next() => match stop {
                // A second Ctrl-C was meant for the answer, and the database needs only a moment.
                StopSignal::Interrupt => timeout(MOMENT, keeping).await,
                stop => return Some(stop),
            },
        };
        match kept {
            Ok(Ok(kept)) => self.session.kept(kept),
            Ok(Err(error)) => {
                output::warning(format_args!("this turn was not saved: {}", failure::explain(&error)));
            }
            // The write continues in the background, so its outcome is unknown.
            Err(_) => output::warning("this turn may not be saved: the database did not respond in time."),
        }
        None
    }

    fn saved_chats(&self) -> Result<&SavedChats> {
        self.saved_chats.as_ref().context("conversations are not saved")
    }

    async fn show_chats(&self) -> Result<()> {
        listing::print(&self.saved_chats()?.list().await?)?;
        output::note("Type '/resume ID' to resume one of them.");
        Ok(())
    }

    async fn resume(&mut self, chat: ChatId, look: Option<MarkdownLook>) -> Result<()> {
        let conversation = self.saved_chats()?.conversation(chat).await?;
        self.session.resume(conversation);
        show_last(self.session.turns(), look)
    }

    async fn forget(&mut self, chat: ChatId) -> Result<()> {
        self.saved_chats()?.forget(chat).await?;
        self.session.forgotten(chat);
        output::note(format_args!("Deleted conversation {chat}."));
        Ok(())
    }

    async fn show_models(&self) -> Result<()> {
        let current = self.session.settings().model.as_ref().unwrap_or(&self.target.default_model);
        let table = {
            let _waiting = Spinner::start(ASKING);
            self.target.source.models(current).await?
        };
        for (number, (model, engine)) in table.models.iter().enumerate() {
            let sign = if table.answering == Some(number) { "*" } else { " " };
            let model = one_line(model);
            output::line(format_args!("{sign} {NAME}{model}{NAME:#} {DIM}{engine}{DIM:#}"))?;
        }
        output::note(format_args!(
            "'/model NAME' switches to another model; '/model {AUTO}' lets Hob choose."
        ));
        Ok(())
    }

    async fn choose_model(&mut self, model: String) -> Result<()> {
        if model != AUTO {
            let _waiting = Spinner::start(ASKING);
            self.target.source.check_model(&model).await?;
        }
        match model.as_str() {
            AUTO => output::note("Hob now picks a model for each question."),
            model => output::note(format_args!("Now using {}.", one_line(model))),
        }
        self.session.use_model(model);
        Ok(())
    }

    async fn show_tools(&self) -> Result<()> {
        tools::print_table(&self.target.source.tools().await?)?;
        if let Some(only) = &self.target.only_tools {
            output::note(format_args!("In this chat, agents may use only {}.", only.join(", ")));
        }
        if self.session.settings().agent == AgentChoice::None {
            output::note("No agent is active, so no tools are used. Type '/agent orchestrator' to use them.");
        }
        Ok(())
    }

    async fn attach(&mut self, file: PathBuf) -> Result<()> {
        let path = expand(&file);
        let read = tokio::task::spawn_blocking(move || read_question_file(&path));
        let attached = read.await.context("the file was not read")??;
        let what = match attached.kind {
            AttachmentKind::Image => "the picture",
            AttachmentKind::Text => "the document",
        };
        output::note(format_args!("The next message has {what} {} with it.", file.display()));
        self.session.attach(attached);
        Ok(())
    }

    fn save(&mut self, save: SaveFile) {
        let file = expand(&save.file);
        match write(&file, &save) {
            Ok(()) => {
                output::note(format_args!("Saved to {}.", file.display()));
                self.session.saved(save.file);
            }
            Err(WriteError::Exists { path }) => {
                output::note(format_args!("{} already exists. Choose another name.", path.display()));
            }
            Err(error) => {
                failure::report(&error.into());
            }
        }
    }

    fn greet(&self, look: Option<MarkdownLook>) -> Result<()> {
        let model = self.session.settings().model.as_ref().unwrap_or(&self.target.default_model);
        output::stderr_line(format_args!(
            "{NAME}{}{NAME:#} {DIM}on {}. Type /help for help, Ctrl-D to quit.{DIM:#}",
            one_line(model),
            self.target.source.engine()
        ));
        show_last(self.session.turns(), look)
    }
}

/// Copies an answer to the clipboard.
async fn copy(text: String) -> Result<()> {
    clipboard::copy(&text).await?;
    output::note("Copied the last answer.");
    Ok(())
}

/// The next line, or a signal that ends the program. The editor reads Ctrl-C as a key, so an interrupt signal here was meant
/// for the answer that has just ended.
async fn listen(editor: &Editor, signals: &mut Signals) -> Result<PromptEvent> {
    let mut input = editor.read();
    loop {
        tokio::select! {
            input = &mut input => return Ok(PromptEvent::Input(input.context("the line editor failed")??)),
            stop = signals.next() => match stop {
                StopSignal::Interrupt => {}
                stop => return Ok(PromptEvent::Stop(stop)),
            },
        }
    }
}

/// Waits for some work, and reports its failure. A signal ends the wait; Ctrl-C does not end the chat.
async fn attend(work: impl Future<Output = Result<()>>, signals: &mut Signals) -> Next {
    tokio::select! {
        outcome = work => {
            if let Err(error) = outcome {
                failure::report(&error);
            }
            Next::GoOn
        }
        stop = signals.next() => match stop {
            StopSignal::Interrupt => {
                output::note("Stopped.");
                Next::GoOn
            }
            stop => Next::Leave(stop.exit_code()),
        },
    }
}
