//! One question: sends it, shows the answer as it streams, and stops it on a signal.

use std::io;
use std::time::Duration;

use futures::StreamExt;
use hob_app::{AnswerStream, AskService};
use hob_conversations::TurnEnding;
use hob_core::{AskError, Caller, Delta, FinishReason, GenerateRequest};
use hob_memory::Passage;
use tokio::time::timeout;

use super::answer_view::AnswerView;
use crate::commands::ask::complete_stream::until_done;
use crate::commands::ask::one_step;
use crate::signals::{Signals, StopSignal};

/// The time limit for printing the rest of a stopped answer. The reader may be gone.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A question and its caller.
pub struct ChatQuestion<'a> {
    pub system: &'a AskService,
    pub caller: &'a Caller,
    pub request: GenerateRequest,
}

/// The result of a question.
pub struct ChatAnswer {
    /// Possibly partial.
    pub text: String,
    /// The model that answered or should have answered.
    pub model: String,
    pub end: AnswerEnd,
}

/// How an answer ended.
pub enum AnswerEnd {
    Complete(FinishReason),
    Stopped(StopSignal),
    Failed(AskError),
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

/// Asks.
pub async fn answer(question: ChatQuestion<'_>, view: &mut AnswerView, signals: &mut Signals) -> ChatAnswer {
    let mut text = String::new();
    let mut model = question.request.model.clone();
    // Dropping the request stops the engine's work on it.
    let end = tokio::select! {
        end = read(question, view, &mut text, &mut model) => {
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
    ChatAnswer { text, model, end }
}

async fn read(
    question: ChatQuestion<'_>,
    view: &mut AnswerView,
    text: &mut String,
    model: &mut String,
) -> io::Result<AnswerEnd> {
    let ChatQuestion { system, caller, mut request } = question;
    view.wait("waiting for the answer".to_owned());
    let passages = system.recall(&mut request, caller).await;
    if !passages.is_empty() {
        view.step(&sources(&passages)).await?;
    }
    let streaming = match system.stream(request, caller).await {
        Ok(streaming) => streaming,
        Err(error) => return Ok(AnswerEnd::Failed(error)),
    };
    let AnswerStream { engine, model: answering, reason, deltas, .. } = streaming;
    if let Some(reason) = &reason {
        view.step(&format!("{answering} on {engine}. {}", reason.as_str())).await?;
    }
    *model = answering;
    let mut deltas = until_done(deltas, &engine);
    let mut reason = FinishReason::Stop;
    while let Some(delta) = deltas.next().await {
        match delta {
            Ok(Delta::Text(piece)) => {
                text.push_str(&piece.text);
                view.text(&piece.text).await?;
            }
            Ok(Delta::Reasoning { text, .. }) => view.think(&text),
            Ok(Delta::Step(step)) => view.step(&one_step(&step)).await?,
            Ok(Delta::Finish { reason: told, .. }) => reason = told,
            Ok(Delta::ReasoningSeal { .. } | Delta::ToolCall(_) | Delta::Done { .. }) => {}
            Err(error) => return Ok(AnswerEnd::Failed(error.into())),
        }
    }
    Ok(AnswerEnd::Complete(reason))
}

/// The documents that the model gets.
fn sources(passages: &[Passage]) -> String {
    let places: Vec<String> = passages.iter().map(|passage| passage.location().to_string()).collect();
    format!("memory: {}", places.join(", "))
}
