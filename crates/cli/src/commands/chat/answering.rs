//! One question: sends it, shows the answer as it streams, and stops it on a signal.

use std::io;
use std::time::Duration;

use futures::StreamExt;
use hob_conversations::TurnEnding;
use hob_core::FinishReason;
use tokio::time::timeout;

use super::answer_view::AnswerView;
use crate::answers::{AnswerEvent, AnswerEvents, AnswerFailure, UsedPassage};
use crate::commands::ask::note_sources;
use crate::signals::{Signals, StopSignal};

/// The time limit for printing the rest of a stopped answer. The reader may be gone.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The result of a question.
pub struct ChatAnswer {
    /// Possibly partial.
    pub text: String,
    /// The model that answered; empty if none began to.
    pub model: String,
    /// The most tokens it may have; `None` if the engine decides.
    pub max_tokens: Option<u32>,
    pub end: AnswerEnd,
}

/// How an answer ended.
pub enum AnswerEnd {
    Complete(FinishReason),
    Stopped(StopSignal),
    Failed(AnswerFailure),
    /// The answer cannot be printed: the reader is gone, or the disk is full. It is still saved.
    Unshown(TurnEnding, io::Error),
}

impl AnswerEnd {
    /// How the turn is saved; `None` if it is not.
    pub fn kept_as(&self) -> Option<TurnEnding> {
        match self {
            AnswerEnd::Complete(_) => Some(TurnEnding::Complete),
            AnswerEnd::Stopped(_) => Some(TurnEnding::Stopped),
            AnswerEnd::Unshown(ending, _) => Some(*ending),
            AnswerEnd::Failed(_) => None,
        }
    }
}

/// What has arrived of an answer.
#[derive(Default)]
struct Arrived {
    text: String,
    model: String,
    max_tokens: Option<u32>,
    passages: Vec<UsedPassage>,
}

/// Shows an answer until its end, or until a signal stops it.
pub async fn answer(events: AnswerEvents<'_>, view: &mut AnswerView, signals: &mut Signals) -> ChatAnswer {
    let mut arrived = Arrived::default();
    // Dropping the answer stops the engine's work on it.
    let end = tokio::select! {
        end = read(events, view, &mut arrived) => {
            end.unwrap_or_else(|error| AnswerEnd::Unshown(TurnEnding::Stopped, error))
        }
        stop = signals.next() => AnswerEnd::Stopped(stop),
    };
    let end = match end {
        AnswerEnd::Stopped(stop) => {
            // A failure to print does not matter: the answer was stopped.
            let _ = timeout(LAST_WORDS, view.end()).await;
            AnswerEnd::Stopped(stop)
        }
        end => tokio::select! {
            shown = view.end() => match (shown, end) {
                (Err(error), AnswerEnd::Complete(_)) => AnswerEnd::Unshown(TurnEnding::Complete, error),
                // A failed answer already has its reason.
                (_, end) => end,
            },
            stop = signals.next() => AnswerEnd::Stopped(stop),
        },
    };
    let Arrived { text, model, max_tokens, passages } = arrived;
    if matches!(end, AnswerEnd::Complete(_)) {
        note_sources(&text, &passages);
    }
    ChatAnswer { text, model, max_tokens, end }
}

async fn read(
    mut events: AnswerEvents<'_>,
    view: &mut AnswerView,
    arrived: &mut Arrived,
) -> io::Result<AnswerEnd> {
    view.wait("waiting for the answer".to_owned());
    let mut reason = FinishReason::Stop;
    while let Some(event) = events.next().await {
        match event {
            Ok(AnswerEvent::Prepared { passages, max_tokens }) => {
                (arrived.max_tokens, arrived.passages) = (max_tokens, passages);
            }
            Ok(AnswerEvent::Begun(head)) => {
                if let Some(reason) = &head.reason {
                    view.step(&format!("{} on {}. {reason}", head.model, head.engine)).await?;
                }
                arrived.model = head.model;
            }
            Ok(AnswerEvent::Text(piece)) => {
                arrived.text.push_str(&piece);
                view.text(&piece).await?;
            }
            Ok(AnswerEvent::Reasoning(piece)) => view.think(&piece),
            Ok(AnswerEvent::Step(line)) => view.step(&line).await?,
            Ok(AnswerEvent::Finished(told)) => reason = FinishReason::parse(&told),
            Ok(AnswerEvent::Done | AnswerEvent::Whole(_)) => {}
            Err(failure) => return Ok(AnswerEnd::Failed(failure)),
        }
    }
    Ok(AnswerEnd::Complete(reason))
}
