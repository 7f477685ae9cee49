//! A run of a task outside its schedule, as events: for an app in this process, or for a running server.

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use futures::{Stream, stream};
use hob_app::AskService;
use hob_core::{Event, Subscription, TextSink};
use hob_tasks::{RunOutcome, Scheduler, TaskId, TaskRun, TaskRunOptions};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

use super::events::AnswerFailure;
use super::in_process::{check_engine, default_model};
use crate::failure::with_advice;
use crate::output::text::{one_line, shortened};

/// Events that wait for a slow reader. Then the answer waits too, and steps are skipped.
const WAITING: usize = 64;

/// The longest arguments or reason in a step.
const LONGEST: usize = 120;

/// Events until `Ended` or an error. Dropping it stops the run.
pub type TaskRunEvents<'a> = Pin<Box<dyn Stream<Item = Result<TaskRunEvent, AnswerFailure>> + Send + 'a>>;

/// Which task runs, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRunRequest {
    pub id: String,
    /// The model of this run; `None` for that of the task.
    pub model: Option<String>,
    /// The engine that must have the model; `None` for any.
    pub engine: Option<String>,
    /// Whether steps and pieces of the answer come while it runs.
    pub is_live: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskRunEvent {
    /// A call of a tool, or its failure, as one line.
    Step(String),
    /// The next piece of the answer.
    Text(String),
    Ended(Box<EndedTaskRun>),
}

/// A run as it is stored in the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndedTaskRun {
    pub has_succeeded: bool,
    /// `false` if it had no news, too.
    pub is_delivered: bool,
    pub result: Option<String>,
    /// Why it failed, or what its answer lacks.
    pub error: Option<String>,
    /// All of it, for `--json`.
    pub run: Value,
}

impl EndedTaskRun {
    fn of(run: TaskRun) -> Result<Self, AnswerFailure> {
        let json = serde_json::to_value(&run).map_err(AnswerFailure::of)?;
        let has_succeeded = run.outcome == Some(RunOutcome::Succeeded);
        let is_delivered = run.is_delivered();
        Ok(EndedTaskRun { has_succeeded, is_delivered, result: run.result, error: run.error, run: json })
    }
}

/// Sends the answer while it is written.
struct EventSink {
    events: mpsc::Sender<TaskRunEvent>,
}

#[async_trait]
impl TextSink for EventSink {
    async fn text(&self, piece: &str) {
        // A reader that left has stopped the run.
        let _ = self.events.send(TaskRunEvent::Text(piece.to_owned())).await;
    }
}

/// A run in progress.
struct Following<'a> {
    /// Closed when the run has ended.
    events: mpsc::Receiver<TaskRunEvent>,
    run: Pin<Box<dyn Future<Output = Result<EndedTaskRun, AnswerFailure>> + Send + 'a>>,
    outcome: Option<Result<EndedTaskRun, AnswerFailure>>,
}

impl Following<'_> {
    /// The next event, and whether it is the last one.
    async fn next(&mut self) -> (Result<TaskRunEvent, AnswerFailure>, bool) {
        if self.outcome.is_none() {
            tokio::select! {
                biased;
                event = self.events.recv() => match event {
                    Some(event) => return (Ok(event), false),
                    None => self.outcome = Some(self.run.as_mut().await),
                },
                outcome = self.run.as_mut() => self.outcome = Some(outcome),
            }
        }
        // What was sent before the end.
        if let Some(event) = self.events.recv().await {
            return (Ok(event), false);
        }
        let ended = |run| TaskRunEvent::Ended(Box::new(run));
        let lost = || Err(AnswerFailure::new("the run has ended already"));
        (self.outcome.take().unwrap_or_else(lost).map(ended), true)
    }
}

/// Runs a task with the app of this process. `hob serve` uses it for runs of the command line.
pub fn run_task<'a>(
    system: &'a AskService,
    scheduler: &'a Scheduler,
    request: TaskRunRequest,
) -> TaskRunEvents<'a> {
    let (sender, events) = mpsc::channel(WAITING);
    let run = Box::pin(run_to_end(system, scheduler, request, sender));
    let following = Following { events, run, outcome: None };
    Box::pin(stream::unfold(Some(following), async |following| {
        let mut following = following?;
        let (event, is_last) = following.next().await;
        Some((event, (!is_last).then_some(following)))
    }))
}

async fn run_to_end(
    system: &AskService,
    scheduler: &Scheduler,
    request: TaskRunRequest,
    events: mpsc::Sender<TaskRunEvent>,
) -> Result<EndedTaskRun, AnswerFailure> {
    let failed = |error| AnswerFailure::of(with_advice(error));
    let TaskRunRequest { id, model, engine, is_live } = request;
    let id = TaskId::parse(&id).map_err(failed)?;
    let model = match engine {
        Some(engine) => {
            let of_task = scheduler.tasks().get(&id).await.map_err(failed)?.model;
            let model = match model.or(of_task) {
                Some(model) => model,
                None => default_model(system).await?,
            };
            check_engine(system, &engine, &model).await?;
            // By its name, because the default model may have a fallback on another engine.
            Some(model)
        }
        None => model,
    };
    let _steps = is_live.then(|| send_steps(system, &id, events.clone()));
    let listener = is_live.then(|| Arc::new(EventSink { events }) as Arc<dyn TextSink>);
    let options = TaskRunOptions { model, listener, ..TaskRunOptions::default() };
    let run = scheduler.run_with(&id, options).await.map_err(failed)?;
    EndedTaskRun::of(run)
}

/// Sends the calls of tools in the runs of a task, until the subscription is dropped.
fn send_steps(system: &AskService, id: &TaskId, events: mpsc::Sender<TaskRunEvent>) -> Subscription {
    let runs = format!("task-{id}-");
    system.bus().subscribe(move |published| {
        if let Some(line) = step(&published.event).filter(|_| published.run.starts_with(&runs)) {
            // The run does not wait for a step.
            let _ = events.try_send(TaskRunEvent::Step(line));
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

    use serde_json::json;

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

    #[tokio::test]
    async fn everything_that_was_sent_comes_before_the_end() {
        let (sender, events) = mpsc::channel(WAITING);
        let ended = EndedTaskRun {
            has_succeeded: true,
            is_delivered: true,
            result: None,
            error: None,
            run: json!({}),
        };
        let run = {
            let ended = ended.clone();
            Box::pin(async move {
                for piece in ["a", "b"] {
                    sender.send(TaskRunEvent::Text(piece.to_owned())).await.expect("a reader");
                }
                Ok(ended)
            })
        };
        let mut following = Following { events, run, outcome: None };
        let mut heard = Vec::new();
        loop {
            let (event, is_last) = following.next().await;
            heard.push(event.expect("an event"));
            if is_last {
                break;
            }
        }
        let text = |piece: &str| TaskRunEvent::Text(piece.to_owned());
        assert_eq!(heard, [text("a"), text("b"), TaskRunEvent::Ended(Box::new(ended))]);
    }
}
