//! The databases in Hob's directory: there or not, whole, of our age, free to be written.

use std::path::{Path, PathBuf};

use hob_db::DatabaseError;
use hob_system::{DatabaseKind, DatabaseReport, inspect_databases};

use super::report::{CheckStatus, DoctorCheck};
use crate::output::number::memory;

/// Looks at them all. An answer needs none of them, so nothing here is worse than a warning. Blocks.
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
                DatabaseKind::Record => "not there yet; the first answer makes it",
                DatabaseKind::Memory => "not there yet; 'hob memory index PATH' makes it",
            };
            return DoctorCheck::new(name, CheckStatus::Off, message);
        }
        Ok(Some(found)) if found.steps_behind > 0 => {
            let message = format!(
                "{}, from an older Hob; it is brought up to date when it is next used",
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
                DatabaseKind::Record => "Hob starts with a new one",
                DatabaseKind::Memory => "fill a new one with 'hob memory index PATH'",
            };
            ("the file is damaged, or no database of Hob's".to_owned(), move_away(path, "damaged", again))
        }
        DatabaseError::Busy { .. } => (
            "another process keeps it locked".to_owned(),
            format!("Wait until it is done, or find and stop it: 'fuser {shown}' tells its number"),
        ),
        DatabaseError::Newer { found, known, .. } => (
            format!("it was written by a newer Hob: its version is {found}, and this one knows {known}"),
            "Update Hob, or set HOB_HOME to another directory".to_owned(),
        ),
        DatabaseError::Full { .. } => {
            ("there is no space left for it".to_owned(), "Make room on its disk".to_owned())
        }
        DatabaseError::Directory { .. }
        | DatabaseError::Create { .. }
        | DatabaseError::Open { .. }
        | DatabaseError::ReadOnly { .. } => (
            "it cannot be opened for reading and writing".to_owned(),
            format!("Make it yours with 'chown \"$USER\" {shown}' and 'chmod u+rw {shown}'"),
        ),
        DatabaseError::Failed { source, .. } => {
            (format!("it cannot be used: {source}"), move_away(path, "failed", "try again"))
        }
    };
    DoctorCheck::new(name, CheckStatus::Warning, message).advise(advice)
}

/// How to put a database aside so that nothing of it is lost: what was written last may stand in a file beside it, which
/// belongs to it by its name, and would be taken for a part of the next one.
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
        // What was put aside before stays as it is.
        if !directory.exists() {
            break;
        }
        directory = beside(&format!(".{aside}-{number}"));
    }
    let directory = directory.display();
    format!("Stop Hob, then mkdir '{directory}' && mv {} '{directory}', and {then}", files.join(" "))
}
