//! Answers one piped message. Prints nothing else.

use std::process::ExitCode;

use anyhow::Result;

use super::answer_view::{AnswerView, StepDisplay};
use super::answering::{AnswerEnd, ChatAnswer, answer};
use super::saved_chats::SavedChats;
use super::session::{ChatEffect, ChatSession};
use super::target::ChatTarget;
use crate::answers::explain_overflow;
use crate::commands::ask::answer_output::ReasoningDisplay;
use crate::commands::ask::{TOKENS_OPTION, no_answer, note_truncation};
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
    let question = target.question(session.settings(), messages);
    let steps =
        if target.reasoning == ReasoningDisplay::Shown { StepDisplay::Shown } else { StepDisplay::Hidden };
    let mut view = AnswerView::new(None, steps, target.reasoning);
    let events = target.source.answer(question);
    let ChatAnswer { text, model, max_tokens, end } = answer(events, &mut view, signals).await;
    let kept_as = end.kept_as();
    let outcome = match end {
        AnswerEnd::Complete(reason) if text.trim().is_empty() => {
            return Err(no_answer(Some(&reason), max_tokens, TOKENS_OPTION));
        }
        AnswerEnd::Complete(reason) => {
            note_truncation(&reason, max_tokens, TOKENS_OPTION);
            Ok(ExitCode::SUCCESS)
        }
        AnswerEnd::Stopped(stop) => Ok(stop.exit_code()),
        AnswerEnd::Unshown(_, error) => Err(error.into()),
        AnswerEnd::Failed(error) => return Err(explain_overflow(error.into(), session.turns().len())),
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
