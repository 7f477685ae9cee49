//! The databases in Hob's directory: existing, intact, of a supported version, writable.

use std::path::{Path, PathBuf};

use hob_app::{DatabaseKind, DatabaseReport, inspect_databases};
use hob_db::DatabaseError;

use super::report::{CheckStatus, DoctorCheck};
use crate::output::number::memory;

/// Checks all databases. No answer needs them, so no result is worse than a warning. Blocks.
pub fn check(home: &Path) -> Vec<DoctorCheck> {
    inspect_databases(home).iter().map(check_one).collect()
}

fn check_one(database: &DatabaseReport) -> DoctorCheck {
    let DatabaseReport { path, kind, state } = database;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let shown = path.display();
    let error = match state {
        Ok(None) => {
            let message = match kind {
                DatabaseKind::Record => "not created yet (created by the first answer)",
                DatabaseKind::Memory => "not created yet (created by 'hob memory index PATH')",
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
            let again = match kind {
                DatabaseKind::Record => "Hob creates a new one",
                DatabaseKind::Memory => "rebuild it with 'hob memory index PATH'",
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
        error => (error.to_string(), "Check the setting database.url".to_owned()),
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
