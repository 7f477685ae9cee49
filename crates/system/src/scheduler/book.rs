//! The book of tasks: the contract [`Schedule`] over the database. Runs nothing.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::databases::HOB_MIGRATIONS;
use async_trait::async_trait;
use hob_core::schedule::{Change, Field};
use hob_core::{
    Clock, NewTask, Schedule, ScheduleError, SystemClock, Task, TaskId, TaskRun, TaskStatus, Zone,
};
use hob_db::{ChangeWatch, Database, DatabaseError};
use hob_store::Tasks;
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::deliver::{Deliver, NoDelivery};

/// Letters of an id. Without those that look alike, as people type ids.
const LETTERS: &[u8] = b"abcdefghjkmnpqrstuvwxyz23456789";
const ID_LENGTH: usize = 8;

/// The tasks of this home. Cheap to clone; all clones are the same book. The file is opened when it is first needed.
#[derive(Clone)]
pub struct TaskBook {
    inner: Arc<Inner>,
}

/// What a [`TaskBook`] needs besides its database.
pub struct TaskOptions {
    pub clock: Arc<dyn Clock>,
    /// The zone of tasks that name none.
    pub zone: Zone,
    /// Where results are sent; a task with another target is refused.
    pub deliver: Arc<dyn Deliver>,
    /// The agents that a task may name; `none` needs no agent.
    pub agents: Vec<String>,
    /// Other names of these agents, which no error lists.
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
    path: PathBuf,
    opened: Mutex<Option<Tasks>>,
    options: TaskOptions,
    /// Told when something may be due that was not.
    changed: Notify,
    /// What runs in this process, and how to stop it.
    running: Mutex<HashMap<TaskId, CancellationToken>>,
}

impl TaskBook {
    /// The book in the database at `path`.
    pub fn at(path: &Path, options: TaskOptions) -> Self {
        Self::new(path.to_owned(), None, options)
    }

    /// A book over an open database.
    pub fn over(tasks: Tasks, options: TaskOptions) -> Self {
        Self::new(PathBuf::new(), Some(tasks), options)
    }

    fn new(path: PathBuf, tasks: Option<Tasks>, options: TaskOptions) -> Self {
        let inner = Inner {
            path,
            opened: Mutex::new(tasks),
            options,
            changed: Notify::new(),
            running: Mutex::default(),
        };
        TaskBook { inner: Arc::new(inner) }
    }

    pub fn now(&self) -> Timestamp {
        self.inner.options.clock.now()
    }

    /// Whether a task was ever made here. Creates nothing.
    pub fn exists(&self) -> bool {
        self.inner.path.as_os_str().is_empty() || self.inner.path.exists()
    }

    /// Removes a task and its log for good. A run of it is stopped.
    pub async fn delete(&self, id: &TaskId) -> Result<(), ScheduleError> {
        let wanted = id.clone();
        let deleted = self.work(move |tasks| tasks.delete(&wanted)).await?;
        self.stop(id);
        if deleted { Ok(()) } else { Err(ScheduleError::NotFound { id: id.to_string() }) }
    }

    /// Works with the database on a thread that may wait.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Tasks) -> Result<T, DatabaseError> + Send + 'static,
    ) -> Result<T, ScheduleError> {
        let inner = Arc::clone(&self.inner);
        let done = tokio::task::spawn_blocking(move || inner.tasks().and_then(|tasks| work(&tasks))).await;
        match done {
            Ok(done) => done.map_err(|error| ScheduleError::Unavailable(Box::new(error))),
            Err(error) => Err(ScheduleError::Unavailable(Box::new(error))),
        }
    }

    /// Where results are sent.
    pub(super) fn delivery(&self) -> &dyn Deliver {
        self.inner.options.deliver.as_ref()
    }

    /// Whether a task may name this agent.
    fn has_agent(&self, name: &str) -> bool {
        let TaskOptions { agents, agent_aliases, .. } = &self.inner.options;
        name == "none" || agents.iter().chain(agent_aliases).any(|known| known == name)
    }

    /// Notices tasks that other processes make or change; `None` where there can be no others.
    pub(super) async fn watch(&self) -> Result<Option<ChangeWatch>, ScheduleError> {
        self.work(|tasks| tasks.watch()).await
    }

    /// Waits until something may be due.
    pub(super) async fn changed(&self) {
        self.inner.changed.notified().await;
    }

    pub(super) fn tell_of_change(&self) {
        self.inner.changed.notify_one();
    }

    /// Notes that a task runs here. The token is cancelled when the task is.
    pub(super) fn note_run(&self, id: &TaskId) -> Noted<'_> {
        let token = CancellationToken::new();
        self.running().insert(id.clone(), token.clone());
        Noted { book: self, id: id.clone(), token }
    }

    fn stop(&self, id: &TaskId) {
        if let Some(token) = self.running().get(id) {
            token.cancel();
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<TaskId, CancellationToken>> {
        self.inner.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn tasks(&self) -> Result<Tasks, DatabaseError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tasks) = &*opened {
            return Ok(tasks.clone());
        }
        let tasks = Tasks::new(Database::open(&self.path, HOB_MIGRATIONS)?);
        *opened = Some(tasks.clone());
        Ok(tasks)
    }
}

/// A run that can be stopped, for as long as this lives.
pub(super) struct Noted<'a> {
    book: &'a TaskBook,
    id: TaskId,
    pub(super) token: CancellationToken,
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        self.book.running().remove(&self.id);
    }
}

#[async_trait]
impl Schedule for TaskBook {
    async fn create(&self, mut task: NewTask) -> Result<Task, ScheduleError> {
        if !self.has_agent(&task.agent) {
            let shown: String = task.agent.chars().take(60).collect();
            let known = self.inner.options.agents.join(", ");
            let reason = format!("there is no agent '{shown}'; there are {known}");
            return Err(ScheduleError::invalid(Field::Agent, reason));
        }
        task.timezone.get_or_insert_with(|| self.inner.options.zone.clone());
        let task = task.plan(new_id()?, self.now())?;
        if let Some(to) = &task.deliver_to {
            // A target that does not exist would be noticed only when the task runs.
            let checked = self.delivery().check(&to.channel).await;
            checked.map_err(|error| ScheduleError::invalid(Field::Channel, error.to_string()))?;
        }
        let kept = task.clone();
        self.work(move |tasks| tasks.insert(&kept)).await?;
        self.tell_of_change();
        Ok(task)
    }

    async fn list(&self, status: Option<TaskStatus>) -> Result<Vec<Task>, ScheduleError> {
        if !self.exists() {
            return Ok(Vec::new());
        }
        self.work(move |tasks| tasks.list(status)).await
    }

    async fn get(&self, id: &TaskId) -> Result<Task, ScheduleError> {
        let not_found = || ScheduleError::NotFound { id: id.to_string() };
        if !self.exists() {
            return Err(not_found());
        }
        let wanted = id.clone();
        self.work(move |tasks| tasks.get(&wanted)).await?.ok_or_else(not_found)
    }

    async fn change(&self, id: &TaskId, change: Change) -> Result<Task, ScheduleError> {
        self.get(id).await?;
        let (wanted, now) = (id.clone(), self.now());
        let task = self.work(move |tasks| tasks.change(&wanted, change, now)).await??;
        if task.status == TaskStatus::Cancelled {
            self.stop(id);
        }
        self.tell_of_change();
        Ok(task)
    }

    async fn runs(&self, id: &TaskId, limit: usize) -> Result<Vec<TaskRun>, ScheduleError> {
        self.get(id).await?;
        let wanted = id.clone();
        self.work(move |tasks| tasks.runs(&wanted, limit)).await
    }
}

fn new_id() -> Result<TaskId, ScheduleError> {
    let letter = || char::from(LETTERS[fastrand::usize(..LETTERS.len())]);
    TaskId::parse(&std::iter::repeat_with(letter).take(ID_LENGTH).collect::<String>())
}
