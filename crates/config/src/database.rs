//! `[database]`: PostgreSQL instead of files, for several Hobs that share their state.

use std::path::PathBuf;
use std::time::Duration;

use hob_core::defaults::{DATABASE_CONNECT_TIMEOUT, DATABASE_CONNECTIONS, DATABASE_STATEMENT_TIMEOUT};
use secrecy::{ExposeSecret, SecretString};

use crate::kind::{COUNT, OPTIONAL_PATH, SECONDS, SECRET};
use crate::settings_schema::keys_of;

/// Settings of the database.
#[derive(Debug, Clone)]
pub struct DatabaseConfig {
    /// `None` stores everything in SQLite files in the home directory. May contain a password. `HOB_DATABASE_URL` overrides the file.
    pub url: Option<SecretString>,
    /// A file with the password and nothing else.
    pub password_file: Option<PathBuf>,
    /// Connections of one process.
    pub max_connections: usize,
    /// How long connecting to one host may take, and how long a request waits for a free connection.
    pub connect_timeout: Duration,
    /// How long one statement may take.
    pub statement_timeout: Duration,
}

impl DatabaseConfig {
    /// The URL with its password. It must not be shown or logged.
    pub fn exposed_url(&self) -> Option<&str> {
        self.url.as_ref().map(ExposeSecret::expose_secret)
    }
}

impl Default for DatabaseConfig {
    fn default() -> Self {
        DatabaseConfig {
            url: None,
            password_file: None,
            max_connections: DATABASE_CONNECTIONS,
            connect_timeout: DATABASE_CONNECT_TIMEOUT,
            statement_timeout: DATABASE_STATEMENT_TIMEOUT,
        }
    }
}

keys_of! {
    DatabaseConfig {
        url: SECRET, "URL of a PostgreSQL database, such as \"postgres://hob@db.example.org/hob?sslmode=verify-full\"; \"\" stores everything in SQLite files. HOB_DATABASE_URL overrides it.";
        password_file: OPTIONAL_PATH, "File that contains the password of the database; \"\" uses the URL, or the file that PGPASSFILE names, or ~/.pgpass.";
        max_connections: COUNT, "Connections to PostgreSQL that one process may open, besides one that listens for changes.";
        connect_timeout: SECONDS, "Seconds that connecting to PostgreSQL, or waiting for a free connection, may take.";
        statement_timeout: SECONDS, "Seconds that one statement may take in PostgreSQL.";
    }
}
