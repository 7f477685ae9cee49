//! Answers one piped message. Prints nothing else.

use std::process::ExitCode;

use anyhow::{Error, Result};
use hob_core::AskError;

use super::answer_view::{AnswerView, StepDisplay};
use super::answering::{AnswerEnd, ChatAnswer, answer};
use super::saved_chats::SavedChats;
use super::session::{ChatEffect, ChatSession};
use super::target::ChatTarget;
use crate::commands::ask::answer_output::ReasoningDisplay;
use crate::commands::ask::{no_answer, note_truncation};
use crate::failure;
use crate::output;
use crate::signals::Signals;

/// Asks, and saves the answer.
pub async fn run(
    message: String,
    target: &ChatTarget<'_>,
    mut session: ChatSession,
    saved_chats: Option<&SavedChats>,
    signals: &mut Signals,
) -> Result<ExitCode> {
    let ChatEffect::Ask(messages) = session.ask(message) else { return Ok(ExitCode::SUCCESS) };
    let caller = target.caller(session.settings());
    let question = target.question(session.settings(), &caller, messages);
    let steps =
        if target.reasoning == ReasoningDisplay::Shown { StepDisplay::Shown } else { StepDisplay::Hidden };
    let mut view = AnswerView::new(None, steps, target.reasoning);
    let ChatAnswer { text, model, end } = answer(question, &mut view, signals).await;
    let kept_as = end.kept_as();
    let outcome = match end {
        AnswerEnd::Complete(reason) if text.trim().is_empty() => {
            return Err(no_answer(Some(&reason), target.max_tokens()));
        }
        AnswerEnd::Complete(reason) => {
            note_truncation(&reason, target.max_tokens());
            Ok(ExitCode::SUCCESS)
        }
        AnswerEnd::Stopped(stop) => Ok(stop.exit_code()),
        AnswerEnd::Unshown(_, error) => Err(error.into()),
        AnswerEnd::Failed(error) => return Err(explain(error, session.turns().len())),
    };
    let keep = kept_as.and_then(|ending| session.answered(text, ending, model));
    let (Some(keep), Some(saved_chats)) = (keep, saved_chats) else { return outcome };
    tokio::select! {
        kept = saved_chats.keep(keep) => {
            if let Err(error) = kept {
                output::warning(format_args!("this turn was not saved: {}", failure::explain(&error)));
            }
            outcome
        }
        stop = signals.next() => Ok(stop.exit_code()),
    }
}

/// If the conversation is too long, suggests a new one.
fn explain(error: AskError, turns: usize) -> Error {
    let is_overflow = matches!(&error, AskError::Engine(error) if error.is_context_overflow());
    let error = Error::from(error);
    if is_overflow && turns > 0 {
        error.context("the conversation exceeds the model's context; start a new one without --continue")
    } else {
        error
    }
}
