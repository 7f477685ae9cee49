//! Errors of tasks, with what to do.

use anyhow::Result;
use hob_tasks::{TaskError, TaskId};

/// The id as it was typed.
pub(super) fn read_id(text: &str) -> Result<TaskId> {
    TaskId::parse(text).map_err(with_advice)
}

/// The error with a hint, if one helps.
pub(super) fn with_advice(error: TaskError) -> anyhow::Error {
    let advice = match &error {
        TaskError::NotFound { .. } => Some("'hob scheduler list' lists the tasks"),
        TaskError::Running { .. } => Some("'hob scheduler logs ID' shows its progress"),
        TaskError::Invalid { .. } | TaskError::Refused { .. } | TaskError::Unavailable(_) => None,
    };
    match advice {
        Some(advice) => anyhow::anyhow!("{error}; {advice}"),
        None => error.into(),
    }
}
