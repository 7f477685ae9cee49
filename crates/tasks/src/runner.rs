//! One run of one task: asks, renews the lease meanwhile, delivers the answer and records the result.

use std::sync::Arc;
use std::time::Duration;

use hob_core::model::DEFAULT_MODEL;
use hob_core::{
    AgentPreference, Ask, Caller, Event, EventBus, FinishReason, FirstCalls, GenerateRequest, MemoryUse,
    Message, NOT_READ, Permit, RequestSource, Role, RunEvents, TOOLS_OF_SEVERAL_SOURCES, TextSink,
    ToolResult, with_sources,
};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::live_runs::LiveRuns;
use crate::service::TaskService;
use crate::store::{Claimant, Claimed, Renewal, RetryPolicy, RunResult};
use crate::task::{DeliverTo, NOTHING_NEW, RunOutcome, Task, TaskRun};

/// The part of an answer that the log stores.
const MAX_RESULT: usize = 100_000;

/// The part of the reason of a failed call that the log stores.
const MAX_REASON: usize = 300;

/// How long a channel may take to accept a result.
const DELIVERY: Duration = Duration::from_secs(60);

/// The number of renewals before a lease expires.
const RENEWALS_PER_LEASE: u32 = 5;

/// How soon a result is stored again after the database was away.
const RECORD_RETRY_INTERVAL: Duration = Duration::from_millis(500);

pub(crate) struct Runner {
    pub(crate) ask: Arc<dyn Ask>,
    /// Gets events when runs start and end.
    pub(crate) bus: EventBus,
    pub(crate) service: TaskService,
    pub(crate) claimant: Claimant,
    pub(crate) live: LiveRuns,
    /// When the database was last found to be away.
    pub(crate) away_at: Mutex<Option<Instant>>,
}

/// How a run outside the schedule differs from one at its time.
#[derive(Clone, Default)]
pub struct TaskRunOptions {
    /// The model of this run; `None` is that of the task.
    pub model: Option<String>,
    /// Gets the answer while it is written.
    pub listener: Option<Arc<dyn TextSink>>,
    /// Stops the run, which is recorded as interrupted and not tried again.
    pub stop: CancellationToken,
}

/// The prompt of a task as a request.
pub(crate) struct TaskQuestion {
    pub(crate) request: GenerateRequest,
    pub(crate) caller: Caller,
}

/// The answer to the prompt of a task.
pub(crate) struct TaskAnswer {
    pub(crate) text: String,
    /// What the answer lacks, because calls before the prompt failed, it was cut off, or the model added nothing.
    pub(crate) missing: Option<String>,
    /// Whether a channel gets it. A task that watches pages runs often, and usually nothing has changed.
    pub(crate) has_news: bool,
}

impl Runner {
    /// Runs it to its end, or until `abort`. Returns the run as stored.
    pub(crate) async fn run(
        &self,
        claimed: Claimed,
        abort: &CancellationToken,
        options: &TaskRunOptions,
    ) -> TaskRun {
        let Claimed { task, run } = claimed;
        let _live = self.live.begin(run.id);
        let name: Arc<str> = format!("task-{}-{}", task.id, run.id).into();
        let events = RunEvents::new(self.bus.clone(), Arc::clone(&name));
        events
            .publish(Event::SchedulerTaskStart { task_id: task.id.to_string(), prompt: task.prompt.clone() });
        let end = self.result_of(&task, &run, name, abort, options).await;
        let finished_at = self.service.now();
        self.record_result(&run, &end, finished_at).await;
        // After the result is stored, so that a listener finds it.
        events.publish(Event::SchedulerTaskEnd {
            task_id: task.id.to_string(),
            success: end.outcome == RunOutcome::Succeeded,
            result: end.result.clone(),
            error: end.error.clone(),
        });
        // The task may be due again.
        self.service.notify_changed();
        let RunResult { outcome, result, error, retry: _ } = end;
        TaskRun { finished_at: Some(finished_at), outcome: Some(outcome), result, error, ..run }
    }

    async fn result_of(
        &self,
        task: &Task,
        run: &TaskRun,
        name: Arc<str>,
        abort: &CancellationToken,
        options: &TaskRunOptions,
    ) -> RunResult {
        let running = self.service.register_run(&task.id);
        // Dropping the future stops the engine.
        tokio::select! {
            biased;
            () = options.stop.cancelled() => stopped(),
            () = abort.cancelled() => interrupted("the scheduler was stopped"),
            () = running.token.cancelled() => cancelled(),
            end = self.keep_lease(run) => end,
            end = self.ask_and_deliver(task, name, options) => end,
        }
    }

    async fn ask_and_deliver(&self, task: &Task, name: Arc<str>, options: &TaskRunOptions) -> RunResult {
        let limit = task.limits.timeout;
        let answer = tokio::time::timeout(limit, self.ask(task, name, options)).await;
        let TaskAnswer { text: answer, missing, has_news } = match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(reason)) => return failed(reason),
            Err(_elapsed) => return failed(format!("it did not finish within {} s", limit.as_secs_f32())),
        };
        let (delivery, missing) = match &task.deliver_to {
            Some(to) if has_news => (self.deliver(&answer, to).await, missing),
            Some(_) => (Ok(()), Some(NOTHING_NEW.to_owned())),
            None => (Ok(()), missing),
        };
        let result = Some(truncated(answer));
        match delivery {
            Ok(()) => RunResult {
                outcome: RunOutcome::Succeeded,
                result,
                error: missing,
                retry: RetryPolicy::IfLeft,
            },
            // The answer may even have arrived, so it is not asked for or sent again.
            Err(reason) => {
                let error = Some(format!("the answer was not delivered: {reason}"));
                RunResult { outcome: RunOutcome::Failed, result, error, retry: RetryPolicy::Never }
            }
        }
    }

    async fn ask(&self, task: &Task, name: Arc<str>, options: &TaskRunOptions) -> Result<TaskAnswer, String> {
        let question = TaskQuestion::of(task, name, options);
        if task.shows_results() {
            return self.show_results(question, task.limits.timeout, options.listener.as_deref()).await;
        }
        let TaskQuestion { request, caller } = question;
        let answered = match &options.listener {
            Some(listener) => self.ask.ask_live(request, &caller, listener.as_ref()).await,
            None => self.ask.ask(request, &caller).await,
        };
        let answered = answered.map_err(|error| error.to_string())?;
        let first = &answered.tool_results[..task.first_calls.len().min(answered.tool_results.len())];
        let is_cut = answered.generation.answer.finish_reason == FinishReason::Length;
        let cut = is_cut.then(|| "the answer was cut off at its limit of tokens".to_owned());
        let missing = missing(first, cut);
        let text = with_sources(answered.generation.answer.content, &answered.sources);
        Ok(TaskAnswer { text, missing, has_news: true })
    }

    async fn deliver(&self, answer: &str, to: &DeliverTo) -> Result<(), String> {
        let sending = self.service.delivery().deliver(answer, to);
        match tokio::time::timeout(DELIVERY, sending).await {
            Ok(sent) => sent.map_err(|error| error.to_string()),
            Err(_elapsed) => {
                Err(format!("'{}' did not accept it within {} s", to.channel, DELIVERY.as_secs()))
            }
        }
    }

    /// Notes that the database is away.
    pub(crate) fn note_outage(&self) {
        *self.away_at.lock() = Some(Instant::now());
    }

    /// How long the leases of other processes may still be expired only because the database was away.
    pub(crate) fn outage_left(&self) -> Option<Duration> {
        let away_at = (*self.away_at.lock())?;
        self.claimant.lease.checked_sub(away_at.elapsed()).filter(|left| !left.is_zero())
    }

    /// Renews the lease. Returns only when the run must stop.
    async fn keep_lease(&self, run: &TaskRun) -> RunResult {
        loop {
            tokio::time::sleep(self.claimant.lease / RENEWALS_PER_LEASE).await;
            let (id, now, claimant) = (run.id, self.service.now(), self.claimant.clone());
            match self.service.work(move |store| store.renew(id, now, &claimant)).await {
                Ok(Renewal::Held) => self.live.note_renewal(run.id),
                Ok(Renewal::Cancelled) => return cancelled(),
                Ok(Renewal::Lost) => return interrupted("its lease expired"),
                Err(error) => {
                    self.note_outage();
                    tracing::warn!(
                        task = %run.task_id,
                        %error,
                        "the lease of a run cannot be renewed; Hob tries again. 'hob doctor' checks the \
                         database"
                    );
                }
            }
        }
    }

    /// Stores the result, also if the database is away for a while: a lost result looks like an interrupted run, which may be
    /// repeated. After a lease without the database, another process has recorded the run as interrupted.
    async fn record_result(&self, run: &TaskRun, end: &RunResult, now: jiff::Timestamp) {
        let began = Instant::now();
        let mut is_repeated = false;
        loop {
            let (id, end, claimant) = (run.id, end.clone(), self.claimant.clone());
            match self.service.work(move |store| store.finish(id, &end, now, &claimant)).await {
                Ok(true) => return,
                // If the connection broke during the commit, an earlier attempt has stored it.
                Ok(false) if is_repeated => {
                    tracing::info!(task = %run.task_id, "the run has ended already: its result was stored before, or its lease expired");
                    return;
                }
                Ok(false) => {
                    tracing::warn!(
                        task = %run.task_id,
                        "the result of a run is not stored: its lease expired, or its task was deleted. 'hob \
                         scheduler run' runs a task again"
                    );
                    return;
                }
                Err(error) if error.is_temporary() && began.elapsed() < self.claimant.lease => {
                    tracing::warn!(
                        task = %run.task_id,
                        %error,
                        "the result of a run cannot be stored; Hob tries again. 'hob doctor' checks the \
                         database"
                    );
                    is_repeated = true;
                    tokio::time::sleep(RECORD_RETRY_INTERVAL).await;
                }
                Err(error) => {
                    tracing::error!(
                        task = %run.task_id,
                        %error,
                        "the result of a run cannot be stored and is lost. 'hob doctor' checks the database"
                    );
                    return;
                }
            }
        }
    }
}

impl TaskQuestion {
    fn of(task: &Task, name: Arc<str>, options: &TaskRunOptions) -> Self {
        let agent = match task.agent.as_str() {
            "none" => AgentPreference::None,
            agent => AgentPreference::Named(agent.to_owned()),
        };
        let in_zone = |permit: Permit| Permit { zone: Some(task.schedule.zone.clone()), ..permit };
        let first_calls = task.first_calls_of_run();
        let first_calls = first_calls.map(|first| FirstCalls { permit: in_zone(first.permit), ..first });
        let caller = Caller {
            permit: in_zone(task.run_permit()),
            agent,
            // The calls say what the model gets.
            memory: if first_calls.is_some() { MemoryUse::Unwanted } else { MemoryUse::Allowed },
            first_calls,
            ..Caller::trusted(RequestSource::Scheduler, name)
        };
        let model = options.model.as_ref().or(task.model.as_ref());
        let request = GenerateRequest {
            model: model.map_or(DEFAULT_MODEL, String::as_str).to_owned(),
            messages: vec![Message::new(Role::User, task.prompt.clone())],
            ..GenerateRequest::default()
        };
        TaskQuestion { request, caller }
    }
}

/// What the answer lacks, for the log: the calls before the prompt that failed, the sources that they could not read, and what the
/// model did not write.
pub(crate) fn missing(first: &[ToolResult], unwritten: Option<String>) -> Option<String> {
    let parts: Vec<String> =
        failed_calls(first).into_iter().chain(unread_sources(first)).chain(unwritten).collect();
    (!parts.is_empty()).then(|| joined(&parts))
}

/// The parts of a list. A sentence in it ends with its separator.
fn joined(parts: &[String]) -> String {
    let last = parts.len().saturating_sub(1);
    let part = |(place, part): (usize, &String)| match place < last {
        true => part.trim_end_matches('.').to_owned(),
        false => part.clone(),
    };
    parts.iter().enumerate().map(part).collect::<Vec<_>>().join("; ")
}

fn failed_calls(results: &[ToolResult]) -> Option<String> {
    let failed: Vec<String> = results
        .iter()
        .filter(|result| !result.success)
        .map(|result| {
            let reason: String = result.content.chars().take(MAX_REASON).collect();
            format!("{}: {reason}", result.tool_name)
        })
        .collect();
    (!failed.is_empty()).then(|| format!("calls before the prompt failed: {}", joined(&failed)))
}

fn unread_sources(results: &[ToolResult]) -> Option<String> {
    let has_sources = |result: &&ToolResult| {
        result.success && TOOLS_OF_SEVERAL_SOURCES.contains(&result.tool_name.as_str())
    };
    let unread: Vec<String> = results
        .iter()
        .filter(has_sources)
        .filter_map(|result| {
            let sources: Vec<&str> =
                result.content.lines().filter_map(|line| line.strip_prefix(NOT_READ)).collect();
            let named: String = sources.join("; ").chars().take(MAX_REASON).collect();
            (!named.is_empty()).then(|| format!("{}: {named}", result.tool_name))
        })
        .collect();
    (!unread.is_empty()).then(|| format!("sources were not read: {}", joined(&unread)))
}

fn failed(reason: String) -> RunResult {
    RunResult { outcome: RunOutcome::Failed, result: None, error: Some(reason), retry: RetryPolicy::IfLeft }
}

fn interrupted(reason: &str) -> RunResult {
    let error = Some(reason.to_owned());
    RunResult { outcome: RunOutcome::Interrupted, result: None, error, retry: RetryPolicy::IfLeft }
}

fn stopped() -> RunResult {
    RunResult { retry: RetryPolicy::Never, ..interrupted("it was stopped") }
}

fn cancelled() -> RunResult {
    let error = Some("the task was cancelled".to_owned());
    RunResult { outcome: RunOutcome::Cancelled, result: None, error, retry: RetryPolicy::Never }
}

fn truncated(mut answer: String) -> String {
    if answer.len() > MAX_RESULT {
        answer.truncate(answer.floor_char_boundary(MAX_RESULT));
        answer.push_str("\n[cut]");
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tools_of_sources_say_which_sources_were_not_read() {
        let result = |tool: &str, content: &str, success: bool| ToolResult {
            tool_name: tool.to_owned(),
            content: content.to_owned(),
            success,
        };
        let results = [
            result("mail", "Subject: hello\nNot read: all your files", true),
            result(
                "feeds",
                "[news]\nNot read: news: it is away\n- Not read: a title\n  Not read: a summary",
                true,
            ),
            result("calendar", "Events\nNot read: a: down\nNot read: b: slow", true),
            result("page_changes", "Not read: page: never", false),
        ];
        assert_eq!(
            unread_sources(&results).as_deref(),
            Some("sources were not read: feeds: news: it is away; calendar: a: down; b: slow")
        );
        assert_eq!(unread_sources(&results[..1]), None);
    }

    #[test]
    fn sentences_in_a_list_have_one_separator() {
        let failed = |tool: &str, content: &str| ToolResult {
            tool_name: tool.to_owned(),
            content: content.to_owned(),
            success: false,
        };
        let results = [failed("mail", "It is away."), failed("feeds", "None answers.")];
        assert_eq!(
            missing(&results, Some("no summary".to_owned())).as_deref(),
            Some("calls before the prompt failed: mail: It is away; feeds: None answers; no summary")
        );
    }
}
