//! Shows a run of a task in the terminal: the steps on stderr, the answer on stdout.

use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use async_trait::async_trait;
use hob_core::{Event, EventBus, Subscription, TextSink};
use hob_tasks::TaskId;
use tokio::sync::Mutex as AsyncMutex;

use crate::commands::ask::answer_output::{AnswerOutput, ReasoningDisplay};
use crate::output;
use crate::output::progress::Spinner;
use crate::output::text::{one_line, shortened};

/// The longest arguments or reason in a line.
const LONGEST: usize = 120;

/// Prints an answer while it is written.
pub(super) struct LiveRun {
    /// Until the first piece of the answer.
    waiting: Mutex<Option<Spinner>>,
    answer: AsyncMutex<AnswerOutput>,
}

impl LiveRun {
    pub(super) fn new(waiting: Spinner) -> Self {
        LiveRun {
            waiting: Mutex::new(Some(waiting)),
            answer: AsyncMutex::new(AnswerOutput::new(ReasoningDisplay::Hidden)),
        }
    }

    /// Ends the last line. Returns whether there was an answer.
    pub(super) async fn end(&self) -> Result<bool> {
        self.stop_waiting();
        let mut answer = self.answer.lock().await;
        answer.end().await?;
        Ok(answer.has_words())
    }

    fn stop_waiting(&self) {
        drop(self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

#[async_trait]
impl TextSink for LiveRun {
    async fn text(&self, piece: &str) {
        self.stop_waiting();
        // The run continues without a reader of stdout: its result is stored and delivered.
        let _ = self.answer.lock().await.write(piece).await;
    }
}

/// Prints the calls of tools in the runs of a task, until the subscription is dropped.
pub(super) fn show_steps(bus: &EventBus, id: &TaskId) -> Subscription {
    let runs = format!("task-{id}-");
    bus.subscribe(move |published| {
        if let Some(line) = step(&published.event).filter(|_| published.run.starts_with(&runs)) {
            output::note(line);
        }
    })
}

fn step(event: &Event) -> Option<String> {
    match event {
        Event::ToolCallStart { tool, arguments, .. } => {
            let arguments = if arguments == "{}" { "" } else { arguments };
            Some(shortened(&one_line(format!("→ {tool} {arguments}").trim_end()), LONGEST))
        }
        Event::ToolCallEnd { tool, success: false, result, .. } => {
            Some(shortened(&one_line(&format!("! {tool}: {result}")), LONGEST))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn calls_and_failures_are_lines() {
        let start = |arguments: &str| Event::ToolCallStart {
            id: "first-1".into(),
            tool: "calendar".into(),
            arguments: arguments.into(),
        };
        let end = |success: bool| Event::ToolCallEnd {
            id: "first-1".into(),
            tool: "calendar".into(),
            result: "no\nanswer".into(),
            success,
            latency: Duration::ZERO,
        };
        assert_eq!(step(&start("{}")).as_deref(), Some("→ calendar"));
        assert_eq!(step(&start(r#"{"from":"today"}"#)).as_deref(), Some(r#"→ calendar {"from":"today"}"#));
        assert_eq!(step(&end(true)), None);
        assert_eq!(step(&end(false)).as_deref(), Some("! calendar: no answer"));
        assert_eq!(step(&Event::AgentTurnStart { agent: "simple".into(), turn: 1 }), None);
    }
}
