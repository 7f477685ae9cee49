//! What the errors of PostgreSQL mean.

use std::error::Error;

use thiserror::Error;
use tokio_postgres::error::SqlState;

use crate::DatabaseError;

/// Why the work of a transaction failed.
#[derive(Debug, Error)]
pub enum QueryError {
    #[error("{}", with_sources(.0))]
    Server(#[from] tokio_postgres::Error),

    #[error("the column '{column}' cannot be read")]
    Unreadable { column: &'static str, source: Box<dyn Error + Send + Sync> },

    #[error("the server did not answer in time")]
    NoAnswer,
}

impl QueryError {
    /// A value in a row that does not mean anything.
    pub fn unreadable(column: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        QueryError::Unreadable { column, source: source.into() }
    }

    /// Whether a row with this key is already there.
    pub fn is_duplicate(&self) -> bool {
        self.state() == Some(&SqlState::UNIQUE_VIOLATION)
    }

    fn state(&self) -> Option<&SqlState> {
        match self {
            QueryError::Server(error) => error.code(),
            QueryError::Unreadable { .. } | QueryError::NoAnswer => None,
        }
    }

    /// Whether the transaction lost against another one, and may win when it runs again.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self.state(), Some(&SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED))
    }

    /// Whether the connection is of no use any more.
    pub(super) fn breaks_connection(&self) -> bool {
        match self {
            QueryError::Unreadable { .. } => false,
            QueryError::NoAnswer => true,
            QueryError::Server(error) => match error.code() {
                // A server that became a standby: its connections must go to the new primary.
                Some(state) => is_unreachable(state) || state == &SqlState::READ_ONLY_SQL_TRANSACTION,
                None => error.is_closed() || is_transport(error),
            },
        }
    }

    /// Adds the server, and says what to do.
    pub(super) fn explain(self, server: &str) -> DatabaseError {
        let server = server.to_owned();
        let state = self.state().cloned();
        match (&self, state) {
            (QueryError::NoAnswer, _) => DatabaseError::Overloaded { server, source: Box::new(self) },
            (_, Some(state)) if is_unreachable(&state) => {
                DatabaseError::Unreachable { server, source: Box::new(self) }
            }
            (_, Some(state)) if is_login(&state) => {
                DatabaseError::LoginRefused { server, source: Box::new(self) }
            }
            (_, Some(state)) if is_overloaded(&state) => {
                DatabaseError::Overloaded { server, source: Box::new(self) }
            }
            (_, Some(SqlState::DISK_FULL | SqlState::OUT_OF_MEMORY)) => {
                DatabaseError::ServerFull { server, source: Box::new(self) }
            }
            (_, Some(SqlState::READ_ONLY_SQL_TRANSACTION)) => {
                DatabaseError::Standby { server, source: Box::new(self) }
            }
            (QueryError::Server(error), None) if error.is_closed() || is_transport(error) => {
                DatabaseError::Unreachable { server, source: Box::new(self) }
            }
            _ => DatabaseError::QueryFailed { server, source: Box::new(self) },
        }
    }
}

/// Why there is no connection. The client has no code for a password that is missing or a server that cannot do TLS.
pub(super) fn explain_connect(server: &str, error: tokio_postgres::Error) -> DatabaseError {
    if error.code().is_some() || is_transport(&error) {
        return QueryError::Server(error).explain(server);
    }
    let text = error.to_string();
    let source = Box::new(QueryError::Server(error));
    let server = server.to_owned();
    if text.starts_with("authentication error") || text.starts_with("invalid configuration") {
        DatabaseError::LoginRefused { server, source }
    } else {
        DatabaseError::Unreachable { server, source }
    }
}

/// An error of the socket, not of the server.
fn is_transport(error: &tokio_postgres::Error) -> bool {
    error.source().is_some_and(|source| source.is::<std::io::Error>())
}

/// The server ends, starts, or closes the connection.
fn is_unreachable(state: &SqlState) -> bool {
    state.code().starts_with("08")
        || [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::DATABASE_DROPPED,
        ]
        .contains(state)
}

fn is_login(state: &SqlState) -> bool {
    state.code().starts_with("28") || state == &SqlState::INVALID_CATALOG_NAME
}

/// Too many connections, a lock that another transaction holds, or a statement that took too long.
fn is_overloaded(state: &SqlState) -> bool {
    [
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::CONFIGURATION_LIMIT_EXCEEDED,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::QUERY_CANCELED,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ]
    .contains(state)
}

/// The client hides the words of the server in the source of its error.
fn with_sources(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        source = cause.source();
    }
    text
}
