//! Failures of the database and of the disk.

use std::error::Error;

use axum::http::StatusCode;
use hob_db::{DatabaseError, DiskFault};

use super::ApiError;

/// Seconds after which a client should try again. A server that restarts is back by then.
const RETRY_AFTER: u64 = 5;

/// The same for a disk, which a person must repair.
const RETRY_AFTER_DISK: u64 = 30;

impl ApiError {
    /// What cannot be stored or read now, but later. The reason can name machines, so it is only logged.
    fn database_away() -> Self {
        let message =
            "the database cannot be used at the moment, so the request cannot be stored. Try again later";
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
        ApiError { code: Some("database_unavailable"), retry_after: Some(RETRY_AFTER), ..error }
    }

    /// The disk takes no data. The log names the file.
    fn disk_failed(fault: DiskFault) -> Self {
        let (code, message) = match fault {
            DiskFault::Full => {
                ("disk_full", "the disk is full, so nothing was saved. Free some space, and try again")
            }
            DiskFault::ReadOnly => (
                "disk_read_only",
                "the disk is read-only, so nothing was saved. Let Hob write to it, and try again",
            ),
        };
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
        ApiError { code: Some(code), retry_after: Some(RETRY_AFTER_DISK), ..error }
    }

    /// The answer to a failure of a store or of a file: 503 if a disk or a database may work later, else `permanent`.
    pub(crate) fn of_store(cause: &(dyn Error + 'static), permanent: Self) -> Self {
        let mut next = Some(cause);
        let mut is_temporary = false;
        while let Some(cause) = next {
            if let Some(fault) = disk_fault(cause) {
                return Self::disk_failed(fault);
            }
            is_temporary |= cause.downcast_ref().is_some_and(DatabaseError::is_temporary);
            next = cause.source();
        }
        if is_temporary { Self::database_away() } else { permanent }
    }
}

fn disk_fault(cause: &(dyn Error + 'static)) -> Option<DiskFault> {
    match cause.downcast_ref::<DatabaseError>() {
        Some(error) => error.disk_fault(),
        None => DiskFault::of_io(cause.downcast_ref()?),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;

    use hob_config::SettingsError;
    use hob_keys::KeyError;
    use hob_memory::{DocumentLibraryError, MemoryError};
    use hob_process::WriteError;
    use hob_routing::RateError;
    use hob_tasks::TaskError;

    use super::*;

    fn answer(error: impl Into<ApiError>) -> (u16, Option<&'static str>, Option<u64>) {
        let error: ApiError = error.into();
        assert!(!error.message().contains("db.internal"), "{}", error.message());
        (error.status.as_u16(), error.code, error.retry_after)
    }

    fn of_tasks(cause: DatabaseError) -> TaskError {
        TaskError::Unavailable(Box::new(cause))
    }

    #[test]
    fn only_a_failure_that_passes_asks_to_try_again() {
        let server = || "db.internal:5432/hob".to_owned();
        let away = || DatabaseError::NoConnection { server: server(), max: 10 };
        assert_eq!(answer(of_tasks(away())), (503, Some("database_unavailable"), Some(5)));
        assert_eq!(answer(KeyError::Database(away())), (503, Some("database_unavailable"), Some(5)));
        let newer = || DatabaseError::NewerSchema { server: server(), found: 3, known: 2 };
        assert_eq!(answer(of_tasks(newer())), (500, Some("tasks_unavailable"), None));
        assert_eq!(answer(KeyError::Database(newer())), (500, Some("keys_unavailable"), None));
        let file = DatabaseError::Newer { path: PathBuf::from("/db.internal"), found: 3, known: 2 };
        assert_eq!(answer(of_tasks(file)), (500, Some("tasks_unavailable"), None));
    }

    /// Every error of a service behind a route that writes, with this fault of the disk as its cause.
    fn failures(kind: io::ErrorKind) -> Vec<ApiError> {
        let path = || PathBuf::from("/db.internal");
        let cause = || io::Error::from(kind);
        let database = || DatabaseError::Create { path: path(), source: cause() };
        let memory = || MemoryError::Store(Box::new(database()));
        vec![
            of_tasks(database()).into(),
            KeyError::Database(database()).into(),
            SettingsError::Write(WriteError::Write { path: path(), source: cause() }).into(),
            SettingsError::Write(WriteError::Directory { path: path(), source: cause() }).into(),
            memory().into(),
            DocumentLibraryError::Memory(memory()).into(),
            DocumentLibraryError::Write { path: path(), source: cause() }.into(),
            RateError::Store(database()).into(),
            ApiError::chats_failed(database()),
            ApiError::store_failed(database()),
        ]
    }

    #[test]
    fn every_route_that_writes_says_what_is_wrong_with_the_disk() {
        for (kind, code, words) in [
            (io::ErrorKind::StorageFull, "disk_full", "the disk is full, so nothing was saved"),
            (io::ErrorKind::QuotaExceeded, "disk_full", "the disk is full, so nothing was saved"),
            (
                io::ErrorKind::ReadOnlyFilesystem,
                "disk_read_only",
                "the disk is read-only, so nothing was saved",
            ),
        ] {
            for error in failures(kind) {
                assert!(error.message().starts_with(words), "{error:?}");
                assert_eq!(answer(error), (503, Some(code), Some(30)));
            }
        }
        for error in failures(io::ErrorKind::PermissionDenied) {
            assert_eq!(error.status, StatusCode::INTERNAL_SERVER_ERROR, "{error:?}");
        }
    }
}
