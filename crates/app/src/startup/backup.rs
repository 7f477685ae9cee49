//! What a backup and a copy of all data consist of: the files, their tables, and the uploaded documents.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use hob_backup::{BackupError, BackupOptions, BackupService, StateFile, StateLocation};
use hob_memory::{MemoryStore, PostgresMemoryStore, SqliteMemoryStore, move_unknown_uploads};

use crate::databases::{DATABASE, HOB_MIGRATIONS, MEMORY_DATABASE, MEMORY_MIGRATIONS, UPLOADS};

/// Backs up, restores and copies everything that Hob stores in databases.
pub fn backup_service() -> BackupService {
    BackupService::new(BackupOptions { files: state_files(), move_unknown: move_uploads_aside })
}

/// The files and their tables.
pub fn state_files() -> Vec<StateFile> {
    let capabilities = [
        hob_telemetry::COPY_TABLES,
        hob_tasks::COPY_TABLES,
        hob_channels::COPY_TABLES,
        hob_routing::COPY_TABLES,
        hob_conversations::COPY_TABLES,
        hob_keys::COPY_TABLES,
        hob_sources::COPY_TABLES,
    ];
    let hob = StateFile {
        name: DATABASE,
        migrations: HOB_MIGRATIONS,
        tables: capabilities.concat(),
        is_needed: None,
        after_copy: None,
    };
    let memory = StateFile {
        name: MEMORY_DATABASE,
        migrations: MEMORY_MIGRATIONS,
        tables: hob_memory::COPY_TABLES.to_vec(),
        is_needed: Some(|database| PostgresMemoryStore::new(database.clone()).has_sources()),
        // Builds the indexes, which takes less time than adding each vector to them.
        after_copy: Some(|database| PostgresMemoryStore::new(database.clone()).sync()),
    };
    vec![hob, memory]
}

/// Moves uploaded files aside that the restored memory does not have. Returns where they are.
fn move_uploads_aside(to: &StateLocation, home: &Path, ending: &str) -> Result<Option<PathBuf>, BackupError> {
    // As in the memory: without links.
    let Ok(uploads) = home.join(UPLOADS).canonicalize() else { return Ok(None) };
    let name = uploads.to_string_lossy();
    let known = match to {
        StateLocation::Files(directory) => match SqliteMemoryStore::find(&directory.join(MEMORY_DATABASE))? {
            Some(memory) => memory.known_below(&name)?,
            None => HashMap::new(),
        },
        StateLocation::Postgres(database) => PostgresMemoryStore::new(database.clone()).known_below(&name)?,
    };
    // On the same disk, also if the directory is a link to another one.
    let mut aside = uploads.clone().into_os_string();
    aside.push(ending);
    let aside = PathBuf::from(aside);
    match move_unknown_uploads(&uploads, &aside, &known) {
        Ok(has_moved) => Ok(has_moved.then_some(aside)),
        Err(source) => Err(BackupError::Write { path: aside, source }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::SystemTime;

    use hob_backup::Replace;
    use hob_core::CollectionName;
    use hob_db::Database;
    use hob_memory::PositionUnit;
    use hob_memory::store::{NewSource, SourceStamp};

    use super::*;

    #[test]
    fn uploaded_files_that_the_backup_does_not_know_are_moved_aside() {
        let root = tempfile::tempdir().expect("a directory");
        let home = root.path().canonicalize().expect("a directory");
        let uploads = home.join(UPLOADS).join("default");
        fs::create_dir_all(&uploads).expect("made");
        let memory = SqliteMemoryStore::open(&home.join(MEMORY_DATABASE)).expect("opened");
        let source = NewSource {
            collection: CollectionName::default(),
            path: uploads.join("kept.md").to_str().expect("text").to_owned(),
            title: "Kept".to_owned(),
            place: PositionUnit::Line,
            stamp: SourceStamp { hash: [7; 32], modified: 5, size: 4, recipe: "1:512/64".to_owned() },
            chunks: Vec::new(),
        };
        memory.save(&source, SystemTime::UNIX_EPOCH).expect("saved");
        drop(memory);
        drop(Database::open(&home.join(DATABASE), HOB_MIGRATIONS).expect("made"));
        let (path, to) = (home.join("backup.zip"), StateLocation::Files(home.clone()));
        let service = backup_service();
        service.back_up(&to, &path, &|_| {}).expect("saved");
        for file in ["kept.md", ".pending-kept.md", "new.md", ".pending-new.md"] {
            fs::write(uploads.join(file), "text").expect("written");
        }

        let backup = service.open(&path, &home).expect("good");
        let restored = service.restore(backup, &to, &home, Replace::KeepingOld, &|_| {}).expect("restored");
        let names = |directory: &Path| {
            let entries = fs::read_dir(directory).expect("a directory");
            let names =
                entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        };
        assert_eq!(names(&uploads), [".pending-kept.md", "kept.md"]);
        let aside = restored.aside.last().expect("moved");
        assert!(aside.to_string_lossy().contains("documents.before-restore-"), "{aside:?}");
        assert_eq!(names(&aside.join("default")), [".pending-new.md", "new.md"]);
    }
}
