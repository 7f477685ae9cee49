//! One run of one task: asked as everything is asked, kept alive while it lasts, and written down however it ends.

use std::sync::Arc;
use std::time::Duration;

use hob_core::model::DEFAULT_MODEL;
use hob_core::{
    AgentPreference, Ask, Caller, Event, EventBus, GenerateRequest, Message, RequestSource, Role, RunEvents,
};
use tokio_util::sync::CancellationToken;

use crate::service::TaskBook;
use crate::store::{Claimant, Claimed, Renewal, Retry, RunEnd};
use crate::task::{DeliverTo, RunOutcome, Task, TaskRun};

/// As much of an answer as the log keeps.
const LONGEST_RESULT: usize = 100_000;

/// How long a channel may take to accept a result.
const DELIVERY: Duration = Duration::from_secs(60);

/// A lease is renewed so many times before it runs out.
const RENEWALS_PER_LEASE: u32 = 5;

/// Runs what was claimed.
pub(crate) struct Runner {
    pub(crate) ask: Arc<dyn Ask>,
    /// Hears when runs begin and end.
    pub(crate) bus: EventBus,
    pub(crate) book: TaskBook,
    pub(crate) claimant: Claimant,
}

impl Runner {
    /// Runs it to its end; `cut` ends it early. The run as it is then in the log, as far as it could be written.
    pub(crate) async fn run(&self, claimed: Claimed, cut: &CancellationToken) -> TaskRun {
        let Claimed { task, run } = claimed;
        let name: Arc<str> = format!("task-{}-{}", task.id, run.id).into();
        let events = RunEvents::new(self.bus.clone(), Arc::clone(&name));
        events
            .publish(Event::SchedulerTaskStart { task_id: task.id.to_string(), prompt: task.prompt.clone() });
        let end = self.end_of(&task, &run, name, cut).await;
        let finished_at = self.book.now();
        self.write_down(&run, &end, finished_at).await;
        // Whoever hears of the end finds it in the log.
        events.publish(Event::SchedulerTaskEnd {
            task_id: task.id.to_string(),
            success: end.outcome == RunOutcome::Succeeded,
            result: end.result.clone(),
            error: end.error.clone(),
        });
        // Its task may be due again.
        self.book.tell_of_change();
        let RunEnd { outcome, result, error, retry: _ } = end;
        TaskRun { finished_at: Some(finished_at), outcome: Some(outcome), result, error, ..run }
    }

    async fn end_of(&self, task: &Task, run: &TaskRun, name: Arc<str>, cut: &CancellationToken) -> RunEnd {
        let noted = self.book.note_run(&task.id);
        // Dropping the question ends the engine's work on it.
        tokio::select! {
            biased;
            () = cut.cancelled() => interrupted("the scheduler was stopped"),
            () = noted.token.cancelled() => cancelled(),
            end = self.keep_lease(run) => end,
            end = self.ask_and_deliver(task, name) => end,
        }
    }

    async fn ask_and_deliver(&self, task: &Task, name: Arc<str>) -> RunEnd {
        let limit = task.limits.timeout;
        let answer = match tokio::time::timeout(limit, self.ask(task, name)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(reason)) => return failed(reason),
            Err(_elapsed) => return failed(format!("it did not finish within {} s", limit.as_secs_f32())),
        };
        let delivery = match &task.deliver_to {
            Some(to) => self.deliver(&answer, to).await,
            None => Ok(()),
        };
        let result = Some(cut_off(answer));
        match delivery {
            Ok(()) => RunEnd { outcome: RunOutcome::Succeeded, result, error: None, retry: Retry::IfLeft },
            // The answer is there, and may even have arrived: asking and sending again could only do harm.
            Err(reason) => {
                let error = Some(format!("the answer is not delivered: {reason}"));
                RunEnd { outcome: RunOutcome::Failed, result, error, retry: Retry::Never }
            }
        }
    }

    async fn ask(&self, task: &Task, name: Arc<str>) -> Result<String, String> {
        let agent = match task.agent.as_str() {
            "none" => AgentPreference::None,
            agent => AgentPreference::Named(agent.to_owned()),
        };
        let caller =
            Caller { permit: task.run_permit(), agent, ..Caller::trusted(RequestSource::Scheduler, name) };
        let request = GenerateRequest {
            model: DEFAULT_MODEL.to_owned(),
            messages: vec![Message::new(Role::User, task.prompt.clone())],
            ..GenerateRequest::default()
        };
        match self.ask.ask(request, &caller).await {
            Ok(outcome) => Ok(outcome.generation.answer.content),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn deliver(&self, answer: &str, to: &DeliverTo) -> Result<(), String> {
        let sending = self.book.delivery().deliver(answer, to);
        match tokio::time::timeout(DELIVERY, sending).await {
            Ok(sent) => sent.map_err(|error| error.to_string()),
            Err(_elapsed) => Err(format!("'{}' did not take it within {} s", to.channel, DELIVERY.as_secs())),
        }
    }

    /// Says again and again that the run is alive. Ends only when the run should.
    async fn keep_lease(&self, run: &TaskRun) -> RunEnd {
        loop {
            tokio::time::sleep(self.claimant.lease / RENEWALS_PER_LEASE).await;
            let (id, now, claimant) = (run.id, self.book.now(), self.claimant.clone());
            match self.book.work(move |tasks| tasks.renew(id, now, &claimant)).await {
                Ok(Renewal::Held) => {}
                Ok(Renewal::Cancelled) => return cancelled(),
                Ok(Renewal::Lost) => return interrupted("it was given up for dead"),
                Err(error) => tracing::warn!(task = %run.task_id, %error, "a lease cannot be renewed"),
            }
        }
    }

    async fn write_down(&self, run: &TaskRun, end: &RunEnd, now: jiff::Timestamp) {
        let (id, end, claimant) = (run.id, end.clone(), self.claimant.clone());
        match self.book.work(move |tasks| tasks.finish(id, &end, now, &claimant)).await {
            Ok(true) => {}
            Ok(false) => {
                tracing::warn!(task = %run.task_id, "the end of a run is not kept: it was given up for dead, or its task is gone")
            }
            Err(error) => {
                tracing::error!(task = %run.task_id, %error, "the end of a run cannot be written down")
            }
        }
    }
}

fn failed(reason: String) -> RunEnd {
    RunEnd { outcome: RunOutcome::Failed, result: None, error: Some(reason), retry: Retry::IfLeft }
}

fn interrupted(reason: &str) -> RunEnd {
    let error = Some(reason.to_owned());
    RunEnd { outcome: RunOutcome::Interrupted, result: None, error, retry: Retry::IfLeft }
}

fn cancelled() -> RunEnd {
    let error = Some("the task was cancelled".to_owned());
    RunEnd { outcome: RunOutcome::Cancelled, result: None, error, retry: Retry::Never }
}

/// What fits into the log.
fn cut_off(mut answer: String) -> String {
    if answer.len() > LONGEST_RESULT {
        answer.truncate(answer.floor_char_boundary(LONGEST_RESULT));
        answer.push_str("\n[cut off here]");
    }
    answer
}
