//! Detects changes by other processes, whatever the database.

use std::path::PathBuf;

use rusqlite::Connection;

use crate::postgres::Topic;
use crate::{DatabaseError, DbResult};

/// Detects changes by other connections, of this or another process.
pub struct ChangeWatch(Source);

enum Source {
    /// SQLite counts the commits to a file.
    File { path: PathBuf, connection: Connection, last: Option<i64> },
    /// PostgreSQL announces the changes of one topic.
    Topic(Topic),
}

impl ChangeWatch {
    pub(crate) fn of_file(path: PathBuf, connection: Connection) -> Self {
        ChangeWatch(Source::File { path, connection, last: None })
    }

    pub(crate) fn of_topic(topic: Topic) -> Self {
        ChangeWatch(Source::Topic(topic))
    }

    /// Whether anything may have been committed since the last call. The first call returns true. Reads nothing of the database.
    pub fn has_changed(&mut self) -> DbResult<bool> {
        match &mut self.0 {
            Source::Topic(topic) => Ok(topic.has_changed()),
            Source::File { path, connection, last } => {
                let version = connection
                    .pragma_query_value(None, "data_version", |row| row.get(0))
                    .map_err(|error| DatabaseError::explain(path, error))?;
                Ok(last.replace(version) != Some(version))
            }
        }
    }
}
