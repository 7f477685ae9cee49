//! One question: asked the way everybody asks, its answer shown as it comes, and stopped when its asker wants.

use std::io;
use std::time::Duration;

use futures::StreamExt;
use hob_core::{AskError, Caller, Delta, FinishReason, GenerateRequest, Passage};
use hob_system::store::chats::TurnEnding;
use hob_system::{Streaming, System};
use tokio::time::timeout;

use super::page::Page;
use crate::commands::ask::one_step;
use crate::commands::ask::whole::whole;
use crate::signals::{Signals, Stop};

/// How long the rest of an answer that was stopped may take to be shown. Nobody may be reading any more.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What is asked, and by whom.
pub struct Question<'a> {
    pub system: &'a System,
    pub caller: &'a Caller,
    pub request: GenerateRequest,
}

/// What came of it.
pub struct Answer {
    /// As far as it came.
    pub text: String,
    /// Who answered, or would have.
    pub model: String,
    pub end: End,
}

/// How an answer ended.
pub enum End {
    Complete(FinishReason),
    Stopped(Stop),
    Failed(AskError),
    /// It cannot be shown: whoever read it has gone, or the disk is full. What was answered is worth keeping all the same.
    Unshown(TurnEnding, io::Error),
}

impl End {
    /// What is said of the answer where it is kept; `None` when it is not.
    pub fn kept_as(&self) -> Option<TurnEnding> {
        match self {
            End::Complete(_) => Some(TurnEnding::Complete),
            End::Stopped(_) => Some(TurnEnding::Stopped),
            End::Unshown(ending, _) => Some(*ending),
            End::Failed(_) => None,
        }
    }
}

/// Asks.
pub async fn answer(question: Question<'_>, page: &mut Page, signals: &mut Signals) -> Answer {
    let mut text = String::new();
    let mut model = question.request.model.clone();
    // Dropping the question ends the engine's work on it.
    let end = tokio::select! {
        end = read(question, page, &mut text, &mut model) => {
            end.unwrap_or_else(|error| End::Unshown(TurnEnding::Stopped, error))
        }
        stop = signals.next() => End::Stopped(stop),
    };
    let end = match end {
        End::Stopped(stop) => {
            // What cannot be shown now was stopped anyway.
            let _ = timeout(LAST_WORDS, page.end()).await;
            End::Stopped(stop)
        }
        end => tokio::select! {
            shown = page.end() => match (shown, end) {
                (Err(error), End::Complete(_)) => End::Unshown(TurnEnding::Complete, error),
                // Who failed has told the reason already.
                (_, end) => end,
            },
            stop = signals.next() => End::Stopped(stop),
        },
    };
    Answer { text, model, end }
}

async fn read(
    question: Question<'_>,
    page: &mut Page,
    text: &mut String,
    model: &mut String,
) -> io::Result<End> {
    let Question { system, caller, mut request } = question;
    page.wait("waiting for the answer".to_owned());
    let passages = system.recall(&mut request, caller).await;
    if !passages.is_empty() {
        page.step(&sources(&passages)).await?;
    }
    let streaming = match system.stream(request, caller).await {
        Ok(streaming) => streaming,
        Err(error) => return Ok(End::Failed(error)),
    };
    let Streaming { engine, model: answering, reason, deltas, .. } = streaming;
    if let Some(reason) = &reason {
        page.step(&format!("{answering} on {engine}. {}", reason.as_str())).await?;
    }
    *model = answering;
    let mut deltas = whole(deltas, &engine);
    let mut reason = FinishReason::Stop;
    while let Some(delta) = deltas.next().await {
        match delta {
            Ok(Delta::Text(piece)) => {
                text.push_str(&piece.text);
                page.text(&piece.text).await?;
            }
            Ok(Delta::Reasoning { text, .. }) => page.think(&text),
            Ok(Delta::Step(step)) => page.step(&one_step(&step)).await?,
            Ok(Delta::Finish { reason: told, .. }) => reason = told,
            Ok(Delta::ToolCall(_) | Delta::Done { .. }) => {}
            Err(error) => return Ok(End::Failed(error.into())),
        }
    }
    Ok(End::Complete(reason))
}

/// Which of the user's documents the answer can draw on.
fn sources(passages: &[Passage]) -> String {
    let places: Vec<String> = passages.iter().map(|passage| passage.location().to_string()).collect();
    format!("memory: {}", places.join(", "))
}
