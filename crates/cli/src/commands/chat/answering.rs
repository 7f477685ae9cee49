//! One question: asked the way everybody asks, its answer shown as it comes, and stopped when its asker wants.

use std::io;

use futures::StreamExt;
use hob_core::{Delta, FinishReason, GenerateRequest, Passage};
use hob_system::{AskError, Caller, System};

use super::page::Page;
use crate::commands::ask::one_step;
use crate::signals::{Signals, Stop};

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
}

/// Asks. Fails only when the answer cannot be shown.
pub async fn answer(question: Question<'_>, page: &mut Page, signals: &mut Signals) -> io::Result<Answer> {
    let mut text = String::new();
    let mut model = question.request.model.clone();
    // Dropping the question ends the engine's work on it.
    let end = tokio::select! {
        end = read(question, page, &mut text, &mut model) => end?,
        stop = signals.next() => End::Stopped(stop),
    };
    let shown = page.end().await;
    // Where the terminal is gone, what was answered can still be kept.
    if !matches!(end, End::Stopped(_)) {
        shown?;
    }
    Ok(Answer { text, model, end })
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
    if let Some(reason) = &streaming.reason {
        page.step(&format!("{} on {}. {}", streaming.model, streaming.engine, reason.as_str())).await?;
    }
    *model = streaming.model;
    let mut deltas = streaming.deltas;
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
