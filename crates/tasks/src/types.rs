//! The id, the states and the errors of a task, and the changes that each state allows. Pure.

use std::fmt;

use hob_db::DatabaseError;
use serde::Serialize;
use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct TaskId(String);

impl TaskId {
    const LONGEST: usize = 64;

    /// Parses an id. The task need not exist.
    pub fn parse(text: &str) -> Result<Self, TaskError> {
        let is_good = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
        if text.is_empty() || text.len() > Self::LONGEST || !text.chars().all(is_good) {
            let shown: String = text.chars().take(60).filter(|letter| !letter.is_control()).collect();
            return Err(TaskError::NotFound { id: shown });
        }
        Ok(TaskId(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskStatus {
    Active,
    Paused,
    /// It has no more runs.
    Completed,
    Cancelled,
}

impl TaskStatus {
    pub const ALL: [TaskStatus; 4] =
        [TaskStatus::Active, TaskStatus::Paused, TaskStatus::Completed, TaskStatus::Cancelled];

    pub fn as_str(self) -> &'static str {
        match self {
            TaskStatus::Active => "active",
            TaskStatus::Paused => "paused",
            TaskStatus::Completed => "completed",
            TaskStatus::Cancelled => "cancelled",
        }
    }

    /// Parses the name in the API and the command line.
    pub fn parse(word: &str) -> Result<Self, TaskError> {
        Self::ALL.into_iter().find(|status| status.as_str() == word).ok_or_else(|| {
            let shown: String = word.chars().take(60).collect();
            let reason = format!("'{shown}' is not active, paused, completed or cancelled");
            TaskError::invalid(TaskField::Status, reason)
        })
    }

    /// The state after `change`.
    pub fn after(self, change: TaskChange) -> Result<Self, TaskError> {
        match (change, self) {
            (TaskChange::Pause, TaskStatus::Active) => Ok(TaskStatus::Paused),
            (TaskChange::Resume, TaskStatus::Paused) => Ok(TaskStatus::Active),
            (TaskChange::Cancel, TaskStatus::Active | TaskStatus::Paused) => Ok(TaskStatus::Cancelled),
            (change, from) => Err(TaskError::Refused { change, from }),
        }
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A change of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskChange {
    Pause,
    Resume,
    Cancel,
    /// Run it now, outside its schedule.
    Run,
}

/// The invalid field of a new task, by its name in the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskField {
    Prompt,
    ScheduleType,
    ScheduleValue,
    Timezone,
    Agent,
    Model,
    Tools,
    FirstCalls,
    Channel,
    Retries,
    Timeout,
    Missed,
    Metadata,
    Status,
}

impl TaskField {
    pub fn as_str(self) -> &'static str {
        match self {
            TaskField::Prompt => "prompt",
            TaskField::ScheduleType => "schedule_type",
            TaskField::ScheduleValue => "schedule_value",
            TaskField::Timezone => "timezone",
            TaskField::Agent => "agent",
            TaskField::Model => "model",
            TaskField::Tools => "tools",
            TaskField::FirstCalls => "first_calls",
            TaskField::Channel => "channel",
            TaskField::Retries => "retries",
            TaskField::Timeout => "timeout",
            TaskField::Missed => "missed",
            TaskField::Metadata => "metadata",
            TaskField::Status => "status",
        }
    }
}

/// Why a task was not created, found or changed.
#[derive(Debug, Error)]
pub enum TaskError {
    #[error("{reason}")]
    Invalid { field: TaskField, reason: String },

    #[error("there is no task '{id}'")]
    NotFound { id: String },

    #[error("{}", refusal(*change, *from))]
    Refused { change: TaskChange, from: TaskStatus },

    #[error("the task '{id}' is already running")]
    Running { id: TaskId },

    #[error("the key '{key}' has {most} tasks that have not ended; cancel or delete one of them first")]
    TooManyTasks { key: String, most: usize },

    #[error("{most} runs{} outside the schedule are active; try again when one has ended", of_key(key.as_deref()))]
    TooManyRuns { key: Option<String>, most: usize },

    #[error("cannot read or write the tasks")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl TaskError {
    pub fn invalid(field: TaskField, reason: impl Into<String>) -> Self {
        TaskError::Invalid { field, reason: reason.into() }
    }

    /// Whether the same call may work later without a change by the user: the database is down, busy or full.
    pub fn is_temporary(&self) -> bool {
        match self {
            TaskError::Unavailable(source) => {
                source.downcast_ref::<DatabaseError>().is_some_and(DatabaseError::is_temporary)
            }
            TaskError::Invalid { .. }
            | TaskError::NotFound { .. }
            | TaskError::Refused { .. }
            | TaskError::Running { .. }
            | TaskError::TooManyTasks { .. }
            | TaskError::TooManyRuns { .. } => false,
        }
    }
}

fn of_key(key: Option<&str>) -> String {
    key.map_or_else(String::new, |key| format!(" of the key '{key}'"))
}

fn refusal(change: TaskChange, from: TaskStatus) -> &'static str {
    match (change, from) {
        (TaskChange::Cancel, TaskStatus::Cancelled) => "the task is already cancelled",
        (_, TaskStatus::Cancelled) => "a cancelled task cannot be changed",
        (TaskChange::Pause, TaskStatus::Paused) => "the task is already paused",
        (TaskChange::Resume, TaskStatus::Active) => "the task is already active",
        (TaskChange::Pause, TaskStatus::Completed) => "a completed task cannot be paused",
        (_, TaskStatus::Completed) => "a completed task cannot be changed",
        (TaskChange::Run, _) => "the task cannot be run now",
        (TaskChange::Pause | TaskChange::Cancel, TaskStatus::Active)
        | (TaskChange::Resume | TaskChange::Cancel, TaskStatus::Paused) => {
            "the task was changed by another caller at the same time; try again"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_change_as_documented_and_refusals_say_why() {
        use TaskChange::{Cancel, Pause, Resume};
        use TaskStatus::{Active, Cancelled, Completed, Paused};
        let mut table = Vec::new();
        for from in TaskStatus::ALL {
            for change in [Pause, Resume, Cancel] {
                table.push(from.after(change).map_err(|error| error.to_string()));
            }
        }
        let refused = |words: &str| Err(words.to_owned());
        let expected = [
            Ok(Paused),
            refused("the task is already active"),
            Ok(Cancelled),
            refused("the task is already paused"),
            Ok(Active),
            Ok(Cancelled),
            refused("a completed task cannot be paused"),
            refused("a completed task cannot be changed"),
            refused("a completed task cannot be changed"),
            refused("a cancelled task cannot be changed"),
            refused("a cancelled task cannot be changed"),
            refused("the task is already cancelled"),
        ];
        assert_eq!(table, expected);
        assert_eq!(Completed.as_str(), "completed");
    }

    #[test]
    fn an_invalid_id_is_not_found_and_not_repeated_completely() {
        for bad in ["", "a b", "../x", "x".repeat(65).as_str(), "\u{1b}[2J", "ü"] {
            let error = TaskId::parse(bad).unwrap_err().to_string();
            assert!(error.starts_with("there is no task '") && error.len() < 100, "{error}");
            assert!(!error.contains('\u{1b}'));
        }
        assert_eq!(TaskId::parse("task-7f_2").unwrap().as_str(), "task-7f_2");
    }
}
