//! The databases: where they are, and which tables they have.

use std::path::Path;

use hob_config::Config;
use hob_db::postgres::{InvalidUrl, PostgresDatabase, PostgresMigrations, PostgresOptions};
use hob_db::{DatabaseError, LazyDatabase, Migrations, Storage};
use thiserror::Error;

/// The file of the calls, tasks and conversations, in the configuration directory.
pub(crate) const DATABASE: &str = "hob.db";

/// The file of the user's documents. A separate file, because it is large and indexing can rebuild it.
pub const MEMORY_DATABASE: &str = "memory.db";

/// The directory of uploaded documents in the home directory.
pub(crate) const UPLOADS: &str = "documents";

/// The tables of `hob.db`: calls, tasks, conversations, keys, watched pages and what the router learned.
pub const HOB_MIGRATIONS: &[Migrations] = &[
    hob_telemetry::MIGRATIONS,
    hob_tasks::MIGRATIONS,
    hob_channels::MIGRATIONS,
    hob_routing::MIGRATIONS,
    hob_conversations::MIGRATIONS,
    hob_keys::MIGRATIONS,
    hob_sources::MIGRATIONS,
];

/// The tables of `memory.db`: the user's documents.
pub const MEMORY_MIGRATIONS: &[Migrations] = &[hob_memory::MIGRATIONS];

/// All tables in PostgreSQL.
pub const POSTGRES_MIGRATIONS: &[PostgresMigrations] = &[
    hob_telemetry::POSTGRES_MIGRATIONS,
    hob_tasks::POSTGRES_MIGRATIONS,
    hob_channels::POSTGRES_MIGRATIONS,
    hob_routing::POSTGRES_MIGRATIONS,
    hob_conversations::POSTGRES_MIGRATIONS,
    hob_keys::POSTGRES_MIGRATIONS,
    hob_sources::POSTGRES_MIGRATIONS,
    hob_memory::POSTGRES_MIGRATIONS,
];

/// Why no database can be used, before any is opened.
#[derive(Debug, Error)]
pub enum StorageError {
    #[error("{0}. Correct the setting database.url, or HOB_DATABASE_URL.")]
    Url(#[from] InvalidUrl),
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Where the state of Hob is: in two files in the home directory, or in one database of PostgreSQL. Cheap to clone; clones share
/// their connections, so a process calls [`Databases::open`] once.
#[derive(Clone)]
pub struct Databases {
    /// Calls, tasks, conversations, keys and what the router learned.
    pub hob: Storage,
    /// The user's documents.
    pub memory: Storage,
}

impl Databases {
    /// The databases that the configuration names. Opens and creates nothing yet, and asks no server.
    pub fn open(config: &Config, home: &Path) -> Result<Self, StorageError> {
        let Some(options) = postgres_options(config)? else { return Ok(Databases::in_files(home)) };
        let storage: Storage = PostgresDatabase::new(options, POSTGRES_MIGRATIONS)?.into();
        Ok(Databases { hob: storage.clone(), memory: storage })
    }

    /// Files in `home`.
    pub fn in_files(home: &Path) -> Self {
        let memory = LazyDatabase::at(&home.join(MEMORY_DATABASE), MEMORY_MIGRATIONS);
        Databases { hob: hob_database(home).into(), memory: memory.into() }
    }

    /// `None` if everything is stored in files.
    pub fn postgres(&self) -> Option<&PostgresDatabase> {
        match &self.hob {
            Storage::Postgres(database) => Some(database),
            Storage::Sqlite(_) => None,
        }
    }
}

/// How to reach PostgreSQL; `None` if everything is stored in files.
pub fn postgres_options(config: &Config) -> Result<Option<PostgresOptions>, InvalidUrl> {
    let settings = &config.database;
    let Some(url) = settings.exposed_url() else { return Ok(None) };
    let mut options: PostgresOptions = url.parse()?;
    options.password_file = settings.password_file.clone();
    if options.passfile.is_none() {
        // One in the URL overrides the one of the environment.
        options.passfile = config.passfile.clone();
    }
    options.max_connections = settings.max_connections;
    options.connect_timeout = settings.connect_timeout;
    options.statement_timeout = settings.statement_timeout;
    Ok(Some(options))
}

/// The file of the calls, tasks and conversations in `home`. Opens and creates nothing yet.
pub fn hob_database(home: &Path) -> LazyDatabase {
    LazyDatabase::at(&home.join(DATABASE), HOB_MIGRATIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_and_the_environment_make_the_options() {
        let mut config = Config::default();
        assert!(postgres_options(&config).expect("files").is_none());
        config.database.url = Some("postgres://hob@one/state".into());
        config.database.max_connections = 3;
        config.passfile = Some("/home/ann/.pgpass".into());
        let options = postgres_options(&config).expect("a good URL").expect("a server");
        assert_eq!((options.server().as_str(), options.max_connections), ("one:5432/state", 3));
        assert_eq!(options.passfile.as_deref(), Some(Path::new("/home/ann/.pgpass")));
        config.database.url = Some("postgres://hob@one/state?passfile=/etc/pgpass".into());
        let options = postgres_options(&config).expect("a good URL").expect("a server");
        assert_eq!(options.passfile.as_deref(), Some(Path::new("/etc/pgpass")));
        config.database.url = Some("mysql://hob:secret@one/state".into());
        assert!(!postgres_options(&config).expect_err("another database").to_string().contains("secret"));
    }
}
