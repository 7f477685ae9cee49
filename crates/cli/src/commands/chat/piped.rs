//! One message that was piped in, and its answer: nothing else is printed.

use std::process::ExitCode;

use anyhow::{Error, Result};
use hob_core::AskError;

use super::answering::{Answer, End, answer};
use super::archive::Archive;
use super::house::House;
use super::page::{Page, Steps};
use super::session::{Effect, Session};
use crate::commands::ask::{Thoughts, no_answer, tell_of_early_end};
use crate::failure;
use crate::output;
use crate::signals::Signals;

/// Asks, and keeps what was answered.
pub async fn run(
    message: String,
    house: &House<'_>,
    mut session: Session,
    archive: Option<&Archive>,
    signals: &mut Signals,
) -> Result<ExitCode> {
    let Effect::Ask(messages) = session.ask(message) else { return Ok(ExitCode::SUCCESS) };
    let caller = house.caller(session.settings());
    let question = house.question(session.settings(), &caller, messages);
    let steps = if house.thoughts == Thoughts::Shown { Steps::Shown } else { Steps::Hidden };
    let mut page = Page::new(None, steps, house.thoughts);
    let Answer { text, model, end } = answer(question, &mut page, signals).await;
    let kept_as = end.kept_as();
    let outcome = match end {
        End::Complete(reason) if text.trim().is_empty() => {
            return Err(no_answer(Some(&reason), house.max_tokens()));
        }
        End::Complete(reason) => {
            tell_of_early_end(&reason, house.max_tokens());
            Ok(ExitCode::SUCCESS)
        }
        End::Stopped(stop) => Ok(stop.exit_code()),
        End::Unshown(_, error) => Err(error.into()),
        End::Failed(error) => return Err(explain(error, session.turns().len())),
    };
    let keep = kept_as.and_then(|ending| session.answered(text, ending, model));
    let (Some(keep), Some(archive)) = (keep, archive) else { return outcome };
    tokio::select! {
        kept = archive.keep(keep) => {
            if let Err(error) = kept {
                output::warning(format_args!("this turn is not kept: {}", failure::explain(&error)));
            }
            outcome
        }
        stop = signals.next() => Ok(stop.exit_code()),
    }
}

/// A conversation that has become too long can only be begun anew.
fn explain(error: AskError, turns: usize) -> Error {
    let is_overflow = matches!(&error, AskError::Engine(error) if error.is_context_overflow());
    let error = Error::from(error);
    if is_overflow && turns > 0 {
        error
            .context("the conversation is longer than the model can read; begin a new one without --continue")
    } else {
        error
    }
}
