//! Errors of statements.

use std::error::Error;

use thiserror::Error;
use tokio_postgres::error::SqlState;

/// What a statement returns.
pub type QueryResult<T> = Result<T, QueryError>;

/// Why the work of a transaction failed.
#[derive(Debug, Error)]
pub enum QueryError {
    #[error("{}", with_sources(.0))]
    Server(#[from] tokio_postgres::Error),

    #[error("the column '{column}' cannot be read")]
    Unreadable { column: &'static str, source: Box<dyn Error + Send + Sync> },

    #[error("the server did not answer in time")]
    NoAnswer,

    /// The database has no extension, and Hob may not create it.
    #[error("{source}")]
    NeedsExtension {
        /// What it is known as, and its name in SQL.
        product: &'static str,
        extension: &'static str,
        source: Box<QueryError>,
    },
}

impl QueryError {
    /// A value in a row that does not mean anything.
    pub fn unreadable(column: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        QueryError::Unreadable { column, source: source.into() }
    }

    /// Why an extension that a statement needs cannot be used.
    pub fn needs_extension(product: &'static str, extension: &'static str, source: QueryError) -> Self {
        QueryError::NeedsExtension { product, extension, source: Box::new(source) }
    }

    pub(super) fn state(&self) -> Option<&SqlState> {
        match self {
            QueryError::Server(error) => error.code(),
            QueryError::Unreadable { .. } | QueryError::NoAnswer => None,
            QueryError::NeedsExtension { source, .. } => source.state(),
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
            QueryError::NeedsExtension { source, .. } => source.breaks_connection(),
            QueryError::Server(error) => match error.code() {
                // A server that became a standby: its connections must go to the new primary.
                Some(state) => is_unreachable(state) || state == &SqlState::READ_ONLY_SQL_TRANSACTION,
                None => is_transport(error),
            },
        }
    }
}

/// An error of the socket, not of the server.
pub(super) fn is_transport(error: &tokio_postgres::Error) -> bool {
    error.is_closed() || error.source().is_some_and(|source| source.is::<std::io::Error>())
}

/// The server ends, starts, or closes the connection.
pub(super) fn is_unreachable(state: &SqlState) -> bool {
    state.code().starts_with("08")
        || [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::DATABASE_DROPPED,
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
