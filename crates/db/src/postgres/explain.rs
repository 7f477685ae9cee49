//! What the errors of PostgreSQL mean, and what to do.

use tokio_postgres::error::SqlState;

use super::query_error::{QueryError, is_transport, is_unreachable};
use crate::DatabaseError;

/// Adds the server.
pub(super) fn explain(server: &str, error: QueryError) -> DatabaseError {
    let server = server.to_owned();
    let error = match error {
        QueryError::NeedsExtension { source, .. } if source.breaks_connection() => *source,
        QueryError::NeedsExtension { product, extension, source } => {
            return DatabaseError::NeedsExtension { server, product, extension, source };
        }
        error => error,
    };
    let kind = match (&error, error.state()) {
        (QueryError::NoAnswer, _) => Meaning::Overloaded,
        (QueryError::Server(error), None) if is_transport(error) => Meaning::Unreachable,
        (_, Some(state)) => meaning(state),
        (QueryError::Server(_) | QueryError::Unreadable { .. } | QueryError::NeedsExtension { .. }, None) => {
            Meaning::Failed
        }
    };
    let source = Box::new(error);
    match kind {
        Meaning::Unreachable => DatabaseError::Unreachable { server, source },
        Meaning::LoginRefused => DatabaseError::LoginRefused { server, source },
        Meaning::Overloaded => DatabaseError::Overloaded { server, source },
        Meaning::Full => DatabaseError::ServerFull { server, source },
        Meaning::Standby => DatabaseError::Standby { server, source },
        Meaning::Failed => DatabaseError::QueryFailed { server, source },
    }
}

/// Why there is no connection. The client has no code for a password that is missing or a server that cannot do TLS.
pub(super) fn explain_connect(server: &str, error: tokio_postgres::Error) -> DatabaseError {
    if error.code().is_some() || is_transport(&error) {
        return explain(server, QueryError::Server(error));
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

enum Meaning {
    Unreachable,
    LoginRefused,
    Overloaded,
    Full,
    Standby,
    Failed,
}

fn meaning(state: &SqlState) -> Meaning {
    if is_unreachable(state) {
        return Meaning::Unreachable;
    }
    match *state {
        SqlState::INVALID_CATALOG_NAME => Meaning::LoginRefused,
        _ if state.code().starts_with("28") => Meaning::LoginRefused,
        SqlState::DISK_FULL | SqlState::OUT_OF_MEMORY => Meaning::Full,
        SqlState::READ_ONLY_SQL_TRANSACTION => Meaning::Standby,
        // Too many connections, a lock that another transaction holds, or a statement that took too long.
        SqlState::TOO_MANY_CONNECTIONS
        | SqlState::CONFIGURATION_LIMIT_EXCEEDED
        | SqlState::LOCK_NOT_AVAILABLE
        | SqlState::QUERY_CANCELED
        | SqlState::T_R_SERIALIZATION_FAILURE
        | SqlState::T_R_DEADLOCK_DETECTED => Meaning::Overloaded,
        _ => Meaning::Failed,
    }
}
