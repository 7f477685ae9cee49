//! The databases: existing or reachable, intact, of a supported version, writable.

use std::path::{Path, PathBuf};

use hob_app::{Databases, MEMORY_DATABASE, state_files};
use hob_config::Config;
use hob_db::postgres::{ExtensionState, PostgresState};
use hob_db::{DatabaseError, DatabaseState, DbResult, inspect};

use super::report::{CheckStatus, DoctorCheck};
use crate::output::number::{counted, memory};

const SERVER: &str = "database";
const PGVECTOR: &str = "pgvector";

const SET_URL: &str = "Correct [database] url in config.toml, or HOB_DATABASE_URL";

/// Checks all databases. No answer needs them, so no result is worse than a warning. Blocks.
///
/// Without a configuration, those in files are checked.
pub fn check(config: Option<&Config>, home: &Path) -> Vec<DoctorCheck> {
    let databases = match config.map(|config| Databases::open(config, home)) {
        Some(Ok(databases)) => databases,
        Some(Err(error)) => {
            return vec![DoctorCheck::new(SERVER, CheckStatus::Warning, error.to_string()).advise(SET_URL)];
        }
        None => Databases::in_files(home),
    };
    match databases.postgres() {
        Some(database) => check_server(database.server(), &database.inspect()),
        None => state_files()
            .iter()
            .map(|file| {
                let path = home.join(file.name);
                check_file(&path, file.name, &inspect(&path, file.migrations))
            })
            .collect(),
    }
}

/// PostgreSQL, and its extension for vectors.
fn check_server(server: &str, state: &DbResult<PostgresState>) -> Vec<DoctorCheck> {
    let state = match state {
        Ok(state) => state,
        Err(error) => {
            let advice = match error {
                error if error.is_temporary() => "Start PostgreSQL, or correct its address in database.url",
                DatabaseError::NewerSchema { .. } => "Update Hob, or use another database",
                _ => SET_URL,
            };
            return vec![DoctorCheck::new(SERVER, CheckStatus::Warning, error.to_string()).advise(advice)];
        }
    };
    vec![check_server_state(server, state), check_vectors(&state.pgvector)]
}

fn check_server_state(server: &str, state: &PostgresState) -> DoctorCheck {
    let connections = state.connections;
    let migrations = match state.steps_behind {
        0 => "up to date".to_owned(),
        steps => format!("{}, taken when it is next used", counted(steps, "pending migration")),
    };
    let message = format!(
        "PostgreSQL {} at {server}, {}, answers in {:.1} ms\nschema: {migrations}\nconnections: at most {} of this process; the server has \
         {} of {} in use",
        state.version,
        memory(state.bytes),
        state.latency.as_secs_f64() * 1000.0,
        connections.own_max,
        connections.in_use,
        connections.server_max,
    );
    if state.is_read_only {
        let message = format!("{message}\nit is read-only, so nothing can be stored");
        return DoctorCheck::new(SERVER, CheckStatus::Warning, message)
            .advise("Name all servers in database.url, so that Hob finds the primary, or allow changes");
    }
    DoctorCheck::new(SERVER, CheckStatus::Good, message)
}

fn check_vectors(pgvector: &ExtensionState) -> DoctorCheck {
    match pgvector {
        ExtensionState::Installed(version) => DoctorCheck::new(PGVECTOR, CheckStatus::Good, version.clone()),
        ExtensionState::Available => {
            DoctorCheck::new(PGVECTOR, CheckStatus::Good, "available; created when the memory needs vectors")
        }
        ExtensionState::Missing => DoctorCheck::new(
            PGVECTOR,
            CheckStatus::Off,
            "the server does not have it; only 'hob memory' with vectors needs it",
        ),
    }
}

/// One file; its state is `None` if it does not exist.
fn check_file(path: &Path, name: &str, state: &DbResult<Option<DatabaseState>>) -> DoctorCheck {
    let is_memory = name == MEMORY_DATABASE;
    let shown = path.display();
    let error = match state {
        Ok(None) => {
            let message = match is_memory {
                true => "not created yet (created by 'hob memory index PATH')",
                false => "not created yet (created by the first answer)",
            };
            return DoctorCheck::new(name, CheckStatus::Off, message);
        }
        Ok(Some(found)) if found.steps_behind > 0 => {
            let message = format!(
                "{}, from an older version of Hob; it is migrated when it is next used",
                memory(found.bytes)
            );
            return DoctorCheck::new(name, CheckStatus::Good, message);
        }
        Ok(Some(found)) => return DoctorCheck::new(name, CheckStatus::Good, memory(found.bytes)),
        Err(error) => error,
    };
    let (message, advice) = match error {
        DatabaseError::Damaged { .. } => {
            let again = match is_memory {
                true => "rebuild it with 'hob memory index PATH'",
                false => "Hob creates a new one",
            };
            ("the file is damaged, or is not a Hob database".to_owned(), move_away(path, "damaged", again))
        }
        DatabaseError::Busy { .. } => (
            "another process has locked it".to_owned(),
            format!("Wait until it is done, or find and stop it: 'fuser {shown}' prints its process ID"),
        ),
        DatabaseError::Newer { found, known, .. } => (
            format!(
                "it was written by a newer Hob: its schema version is {found}, and this Hob supports {known}"
            ),
            "Update Hob, or set HOB_HOME to another directory".to_owned(),
        ),
        DatabaseError::Full { .. } => {
            ("its disk is full".to_owned(), "Free some space on its disk".to_owned())
        }
        DatabaseError::Directory { .. }
        | DatabaseError::Create { .. }
        | DatabaseError::Open { .. }
        | DatabaseError::ReadOnly { .. } => (
            "it cannot be opened for reading and writing".to_owned(),
            format!("Take ownership with 'chown \"$USER\" {shown}' and 'chmod u+rw {shown}'"),
        ),
        DatabaseError::Failed { source, .. } => {
            (format!("it cannot be used: {source}"), move_away(path, "failed", "try again"))
        }
        // A file has no errors of a server.
        error => (error.to_string(), SET_URL.to_owned()),
    };
    DoctorCheck::new(name, CheckStatus::Warning, message).advise(advice)
}

/// How to move a database away without losing data: recent writes may be in the -wal file next to it, which SQLite would
/// otherwise apply to the next database.
fn move_away(path: &Path, aside: &str, then: &str) -> String {
    let beside = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let files: Vec<String> = ["", "-wal", "-shm"]
        .map(beside)
        .iter()
        .filter(|file| file.exists())
        .map(|file| format!("'{}'", file.display()))
        .collect();
    let mut directory = beside(&format!(".{aside}"));
    for number in 2..100 {
        // Earlier copies are kept.
        if !directory.exists() {
            break;
        }
        directory = beside(&format!(".{aside}-{number}"));
    }
    let directory = directory.display();
    format!("Stop Hob, then mkdir '{directory}' && mv {} '{directory}', and {then}", files.join(" "))
}
