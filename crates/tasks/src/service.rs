//! Creates, lists and changes tasks. Runs none.

use std::collections::HashMap;
use std::sync::Arc;

use hob_core::{Clock, SystemClock, Zone};
use hob_db::{ChangeWatch, DbResult};
use jiff::{Timestamp, Zoned};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::deliver::{Deliver, NoDelivery};
use crate::schedule::{Schedule, ScheduleType};
use crate::store::TaskStore;
use crate::task::{NewTask, Task, TaskRun};
use crate::types::{TaskChange, TaskError, TaskField, TaskId, TaskStatus};

/// Letters of an id, without similar ones, because people type ids.
const LETTERS: &[u8] = b"abcdefghjkmnpqrstuvwxyz23456789";
const ID_LENGTH: usize = 8;

/// Tasks of one key that have not ended. Of those that have, as many are kept.
const MOST_TASKS_OF_KEY: usize = 200;

/// Creates, lists and changes tasks. Cheap to clone; all clones share their state.
#[derive(Clone)]
pub struct TaskService {
    inner: Arc<Inner>,
}

/// The options of a [`TaskService`].
pub struct TaskOptions {
    pub clock: Arc<dyn Clock>,
    /// The zone of tasks without one.
    pub zone: Zone,
    /// Delivers results. A task with an unknown target is refused.
    pub deliver: Arc<dyn Deliver>,
    /// The agents that a task may name; `none` needs no agent.
    pub agents: Vec<String>,
    /// Other names of these agents, which are not listed in errors.
    pub agent_aliases: Vec<String>,
}

impl Default for TaskOptions {
    /// The clock and the zone of this machine, no targets and no agents.
    fn default() -> Self {
        TaskOptions {
            clock: Arc::new(SystemClock),
            zone: Zone::system(),
            deliver: Arc::new(NoDelivery),
            agents: Vec::new(),
            agent_aliases: Vec::new(),
        }
    }
}

struct Inner {
    store: Arc<dyn TaskStore>,
    options: TaskOptions,
    /// Notified when a task may be due earlier than before.
    changed: Notify,
    /// The runs in this process, with their stop tokens.
    running: Mutex<HashMap<TaskId, CancellationToken>>,
}

impl TaskService {
    pub fn new(store: Arc<dyn TaskStore>, options: TaskOptions) -> Self {
        let inner = Inner { store, options, changed: Notify::new(), running: Mutex::default() };
        TaskService { inner: Arc::new(inner) }
    }

    pub fn now(&self) -> Timestamp {
        self.inner.options.clock.now()
    }

    /// Whether there may be tasks. Creates nothing.
    pub fn exists(&self) -> bool {
        self.inner.store.exists()
    }

    /// Checks a new task and saves it.
    pub async fn create(&self, mut task: NewTask) -> Result<Task, TaskError> {
        if !self.has_agent(&task.agent) {
            let shown: String = task.agent.chars().take(60).collect();
            let known = self.inner.options.agents.join(", ");
            let reason = format!("there is no agent '{shown}'; use one of {known}");
            return Err(TaskError::invalid(TaskField::Agent, reason));
        }
        task.timezone.get_or_insert_with(|| self.inner.options.zone.clone());
        let mut task = task.plan(new_id()?, self.now())?;
        if let Some(to) = task.deliver_to.take() {
            // Otherwise a missing target would be noticed only when the task runs.
            let checked = self.delivery().check(to).await;
            let to = checked.map_err(|error| TaskError::invalid(TaskField::Channel, error.to_string()))?;
            task.deliver_to = Some(to);
        }
        let kept = task.clone();
        match task.permit.key.clone() {
            None => self.work(move |store| store.insert(&kept)).await?,
            Some(key) => {
                let name = key.to_string();
                let most = MOST_TASKS_OF_KEY;
                if !self.work(move |store| store.insert_of_key(&kept, &key, most)).await? {
                    return Err(TaskError::TooManyTasks { key: name, most });
                }
            }
        }
        self.notify_changed();
        Ok(task)
    }

    /// The next `count` times of a schedule that a task would have if it were created now, in its time zone.
    pub fn preview(
        &self,
        kind: ScheduleType,
        value: &str,
        zone: Option<Zone>,
        count: usize,
    ) -> Result<Vec<Zoned>, TaskError> {
        let zone = zone.unwrap_or_else(|| self.inner.options.zone.clone());
        let now = self.now();
        let schedule = Schedule::from_now(kind, value, zone, now)?;
        let time_zone = schedule.zone.time_zone().clone();
        Ok(schedule.upcoming(now).take(count).map(|at| at.to_zoned(time_zone.clone())).collect())
    }

    /// The agents that a task may name, and the time zone of tasks without one.
    pub fn choices(&self) -> (Vec<String>, &Zone) {
        let TaskOptions { agents, zone, .. } = &self.inner.options;
        (std::iter::once("none".to_owned()).chain(agents.iter().cloned()).collect(), zone)
    }

    /// All tasks, or those in one state; the next to run first.
    pub async fn list(&self, status: Option<TaskStatus>) -> Result<Vec<Task>, TaskError> {
        if !self.exists() {
            return Ok(Vec::new());
        }
        self.work(move |store| store.list(status)).await
    }

    pub async fn get(&self, id: &TaskId) -> Result<Task, TaskError> {
        let not_found = || TaskError::NotFound { id: id.to_string() };
        if !self.exists() {
            return Err(not_found());
        }
        let wanted = id.clone();
        self.work(move |store| store.get(&wanted)).await?.ok_or_else(not_found)
    }

    /// Pauses, resumes or cancels a task, and returns it. Cancelling stops its run.
    pub async fn change(&self, id: &TaskId, change: TaskChange) -> Result<Task, TaskError> {
        self.get(id).await?;
        let (wanted, now) = (id.clone(), self.now());
        let task = self.work(move |store| store.change(&wanted, change, now)).await??;
        if task.status == TaskStatus::Cancelled {
            self.stop(id);
        }
        self.notify_changed();
        Ok(task)
    }

    /// The newest `limit` runs of a task, newest first.
    pub async fn runs(&self, id: &TaskId, limit: usize) -> Result<Vec<TaskRun>, TaskError> {
        self.get(id).await?;
        let wanted = id.clone();
        self.work(move |store| store.runs(&wanted, limit)).await
    }

    /// Deletes a task and its log. Stops its run.
    pub async fn delete(&self, id: &TaskId) -> Result<(), TaskError> {
        let wanted = id.clone();
        let deleted = self.work(move |store| store.delete(&wanted)).await?;
        self.stop(id);
        if deleted { Ok(()) } else { Err(TaskError::NotFound { id: id.to_string() }) }
    }

    /// Runs store work on a blocking thread.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn TaskStore) -> DbResult<T> + Send + 'static,
    ) -> Result<T, TaskError> {
        let inner = Arc::clone(&self.inner);
        let done = hob_db::spawn_blocking(move || work(inner.store.as_ref())).await;
        match done {
            Ok(done) => done.map_err(|error| TaskError::Unavailable(Box::new(error))),
            Err(error) => Err(TaskError::Unavailable(Box::new(error))),
        }
    }

    pub(crate) fn delivery(&self) -> &dyn Deliver {
        self.inner.options.deliver.as_ref()
    }

    fn has_agent(&self, name: &str) -> bool {
        let TaskOptions { agents, agent_aliases, .. } = &self.inner.options;
        name == "none" || agents.iter().chain(agent_aliases).any(|known| known == name)
    }

    /// Watches changes of other processes; `None` if there can be none.
    pub(crate) async fn watch(&self) -> Result<Option<ChangeWatch>, TaskError> {
        self.work(|store| store.watch()).await
    }

    /// Waits until something may be due.
    pub(crate) async fn changed(&self) {
        self.inner.changed.notified().await;
    }

    pub(crate) fn notify_changed(&self) {
        self.inner.changed.notify_one();
    }

    /// Registers a run in this process. The token is cancelled with the task.
    pub(crate) fn register_run(&self, id: &TaskId) -> RunningTask<'_> {
        let token = CancellationToken::new();
        self.inner.running.lock().insert(id.clone(), token.clone());
        RunningTask { service: self, id: id.clone(), token }
    }

    fn stop(&self, id: &TaskId) {
        if let Some(token) = self.inner.running.lock().get(id) {
            token.cancel();
        }
    }
}

/// A registered run, until this is dropped.
pub(crate) struct RunningTask<'a> {
    service: &'a TaskService,
    id: TaskId,
    pub(crate) token: CancellationToken,
}

impl Drop for RunningTask<'_> {
    fn drop(&mut self) {
        self.service.inner.running.lock().remove(&self.id);
    }
}

fn new_id() -> Result<TaskId, TaskError> {
    let letter = || char::from(LETTERS[fastrand::usize(..LETTERS.len())]);
    TaskId::parse(&std::iter::repeat_with(letter).take(ID_LENGTH).collect::<String>())
}
