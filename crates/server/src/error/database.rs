//! Failures of the database.

use std::error::Error;

use axum::http::StatusCode;
use hob_db::DatabaseError;

use super::ApiError;

/// Seconds after which a client should try again. A server that restarts is back by then.
const RETRY_AFTER: u64 = 5;

impl ApiError {
    /// What cannot be stored or read now, but later. The reason can name machines, so it is only logged.
    fn database_away() -> Self {
        let message =
            "the database cannot be used at the moment, so the request cannot be stored. Try again later";
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
        ApiError { code: Some("database_unavailable"), retry_after: Some(RETRY_AFTER), ..error }
    }

    /// The answer to a failure of a store: 503 if it is a database that may work later, else `permanent`.
    pub(crate) fn of_store(cause: &(dyn Error + 'static), permanent: Self) -> Self {
        let mut next = Some(cause);
        let mut is_temporary = false;
        while let Some(cause) = next {
            is_temporary |= cause.downcast_ref().is_some_and(DatabaseError::is_temporary);
            next = cause.source();
        }
        if is_temporary { Self::database_away() } else { permanent }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use hob_tasks::TaskError;

    use super::*;

    fn answer(cause: DatabaseError) -> (u16, Option<&'static str>, Option<u64>) {
        let error = ApiError::from(TaskError::Unavailable(Box::new(cause)));
        assert!(!error.message().contains("db.internal"), "{}", error.message());
        (error.status.as_u16(), error.code, error.retry_after)
    }

    #[test]
    fn only_a_failure_that_passes_asks_to_try_again() {
        let server = || "db.internal:5432/hob".to_owned();
        let away = DatabaseError::NoConnection { server: server(), max: 10 };
        assert_eq!(answer(away), (503, Some("database_unavailable"), Some(5)));
        let newer = DatabaseError::NewerSchema { server: server(), found: 3, known: 2 };
        assert_eq!(answer(newer), (500, Some("tasks_unavailable"), None));
        let file = DatabaseError::Newer { path: PathBuf::from("/db.internal"), found: 3, known: 2 };
        assert_eq!(answer(file), (500, Some("tasks_unavailable"), None));
    }
}
