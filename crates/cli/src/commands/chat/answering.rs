//! One question: asked the way everybody asks, its answer shown as it comes, and stopped when its asker wants.

use std::io;
use std::time::Duration;

use futures::StreamExt;
use hob_core::{AskError, Caller, Delta, FinishReason, GenerateRequest, Passage};
use hob_system::store::chats::TurnEnding;
use hob_system::{Streaming, System};
use tokio::time::timeout;

use super::answer_view::AnswerView;
use crate::commands::ask::complete_stream::until_done;
use crate::commands::ask::one_step;
use crate::signals::{Signals, StopSignal};

/// How long the rest of an answer that was stopped may take to be shown. Nobody may be reading any more.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What is asked, and by whom.
pub struct ChatQuestion<'a> {
    pub system: &'a System,
    pub caller: &'a Caller,
    pub request: GenerateRequest,
}

/// What came of it.
pub struct ChatAnswer {
    /// As far as it came.
    pub text: String,
    /// Who answered, or would have.
    pub model: String,
    pub end: AnswerEnd,
}

/// How an answer ended.
pub enum AnswerEnd {
    Complete(FinishReason),
    Stopped(StopSignal),
    Failed(AskError),
    /// It cannot be shown: whoever read it has gone, or the disk is full. What was answered is worth keeping all the same.
    Unshown(TurnEnding, io::Error),
}

impl AnswerEnd {
    /// What is said of the answer where it is kept; `None` when it is not.
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
    // Dropping the question ends the engine's work on it.
    let end = tokio::select! {
        end = read(question, view, &mut text, &mut model) => {
            end.unwrap_or_else(|error| AnswerEnd::Unshown(TurnEnding::Stopped, error))
        }
        stop = signals.next() => AnswerEnd::Stopped(stop),
    };
    let end = match end {
        AnswerEnd::Stopped(stop) => {
            // What cannot be shown now was stopped anyway.
            let _ = timeout(LAST_WORDS, view.end()).await;
            AnswerEnd::Stopped(stop)
        }
        end => tokio::select! {
            shown = view.end() => match (shown, end) {
                (Err(error), AnswerEnd::Complete(_)) => AnswerEnd::Unshown(TurnEnding::Complete, error),
                // Who failed has told the reason already.
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
    let Streaming { engine, model: answering, reason, deltas, .. } = streaming;
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
            Ok(Delta::ToolCall(_) | Delta::Done { .. }) => {}
            Err(error) => return Ok(AnswerEnd::Failed(error.into())),
        }
    }
    Ok(AnswerEnd::Complete(reason))
}

/// Which of the user's documents the answer can draw on.
fn sources(passages: &[Passage]) -> String {
    let places: Vec<String> = passages.iter().map(|passage| passage.location().to_string()).collect();
    format!("memory: {}", places.join(", "))
}
