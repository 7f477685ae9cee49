//! Backups of all databases in one file, from SQLite or PostgreSQL, and back into either. A backup is a ZIP archive of SQLite files
//! and a manifest, so the migrations of Hob also apply to old backups.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hob_config::{FileLock, WriteError};
use hob_core::time::Moment;
use hob_db::copy::{CopyError, CopyReport, ExistingRows, forget_copy};
use hob_db::postgres::PostgresDatabase;
use hob_db::{Database, DatabaseError, copy_file, count_rows, inspect, settle_file};
use hob_memory::{MemoryStore, PostgresMemoryStore, SqliteMemoryStore};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tempfile::{NamedTempFile, TempDir};
use thiserror::Error;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::database_copy::{
    CopyListener, StateCopyError, StateLocation, check_unused, files_to_postgres, postgres_to_files,
};
use crate::databases::{DATABASE, HOB_MIGRATIONS, MEMORY_DATABASE, MEMORY_MIGRATIONS, UPLOADS};
use crate::restored_uploads::move_unknown;

/// The form of the archive. A new form gets the next number.
const FORMAT: u32 = 1;

const MANIFEST: &str = "manifest.json";

/// The most bytes of a manifest.
const MAX_MANIFEST: u64 = 1 << 20;

/// Begins the name of the temporary directory of a restore.
const RESTORE_PREFIX: &str = ".hob-restore-";

/// Names the lock of a restore, a file in the directory of the restore.
const RESTORE_LOCK: &str = "restore";

const FILES: [&str; 2] = [DATABASE, MEMORY_DATABASE];

/// What a backup contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupManifest {
    /// The form of the archive.
    pub format: u32,
    /// The version of the Hob that wrote it.
    pub hob: String,
    /// When, in UTC.
    pub created: String,
    /// `sqlite` or `postgres`.
    pub database: String,
    pub files: Vec<BackupFile>,
}

/// A SQLite file in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupFile {
    pub name: String,
    pub bytes: u64,
    pub sha256: String,
    /// The number of rows of each table.
    pub rows: BTreeMap<String, u64>,
}

/// Where the data went that a restored backup replaced.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Restored {
    pub aside: Vec<PathBuf>,
}

#[derive(Debug, Error)]
pub enum BackupError {
    #[error("the file {} already exists. Use another name.", path.display())]
    Exists { path: PathBuf },

    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },

    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },

    #[error("{} is not a backup of Hob, or it is incomplete. Use a file that 'hob backup' wrote.", path.display())]
    NotABackup { path: PathBuf },

    #[error("the backup {} is damaged: {what}. Nothing was changed. Use another backup.", path.display())]
    Damaged { path: PathBuf, what: String },

    #[error("the backup {} was written by a newer Hob ({hob}). Update Hob, and try again.", path.display())]
    Newer { path: PathBuf, hob: String },

    #[error("{name} already has data. Add --force to replace it; the old data is kept.")]
    Occupied { name: String },

    #[error("another restore is running in {}. Wait until it has ended, and try again.", directory.display())]
    RestoreRuns { directory: PathBuf },

    #[error(transparent)]
    Lock(WriteError),

    #[error(transparent)]
    Copy(#[from] StateCopyError),

    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Writes everything in `from` to the new file `path`, while Hob may run. Blocks.
pub fn back_up(
    from: &StateLocation,
    path: &Path,
    listener: CopyListener<'_>,
) -> Result<BackupManifest, BackupError> {
    if path.exists() {
        return Err(BackupError::Exists { path: path.to_owned() });
    }
    let unwritable = |source| BackupError::Write { path: path.to_owned(), source };
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let work = tempfile::Builder::new().prefix(".hob-backup-").tempdir_in(directory).map_err(unwritable)?;
    let database = match from {
        StateLocation::Files(home) => {
            for file in FILES {
                copy_file(&home.join(file), &work.path().join(file))?;
            }
            "sqlite"
        }
        StateLocation::Postgres(database) => {
            postgres_to_files(database, work.path(), ExistingRows::Continue, listener)?;
            for (file, migrations) in [(DATABASE, HOB_MIGRATIONS), (MEMORY_DATABASE, MEMORY_MIGRATIONS)] {
                let path = work.path().join(file);
                if path.exists() {
                    forget_copy(&Database::open(&path, migrations)?)?;
                    settle_file(&path)?;
                }
            }
            "postgres"
        }
    };
    let mut manifest = BackupManifest {
        format: FORMAT,
        hob: env!("CARGO_PKG_VERSION").to_owned(),
        created: Moment::of(SystemTime::now()).timestamp().to_string(),
        database: database.to_owned(),
        files: Vec::new(),
    };
    let mut archive = ZipWriter::new(NamedTempFile::new_in(directory).map_err(unwritable)?);
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .large_file(true)
        .unix_permissions(0o600);
    let mut write = || -> Result<(), BackupError> {
        for file in FILES {
            let source = work.path().join(file);
            if !source.exists() {
                continue;
            }
            let rows = count_rows(&source)?;
            archive.start_file(file, options).map_err(|error| unwritable(error.into()))?;
            let (bytes, sha256) = File::open(&source)
                .map_err(HashedCopyError::Read)
                .and_then(|mut file| copy_hashed(&mut file, &mut archive))
                .map_err(|error| match error {
                    HashedCopyError::Read(error) => BackupError::Read { path: source, source: error },
                    HashedCopyError::Write(error) => unwritable(error),
                })?;
            manifest.files.push(BackupFile { name: file.to_owned(), bytes, sha256, rows });
        }
        Ok(())
    };
    write()?;
    if manifest.files.is_empty() {
        return Err(StateCopyError::NothingThere { path: PathBuf::from(from.name()) }.into());
    }
    let text = serde_json::to_vec_pretty(&manifest).map_err(|error| unwritable(error.into()))?;
    archive.start_file(MANIFEST, options).map_err(|error| unwritable(error.into()))?;
    archive.write_all(&text).map_err(unwritable)?;
    let file = archive.finish().map_err(|error| unwritable(error.into()))?;
    file.as_file().sync_all().map_err(unwritable)?;
    file.persist_noclobber(path).map_err(|error| unwritable(error.error))?;
    Ok(manifest)
}

/// The side on which a copy failed.
#[derive(Debug)]
enum HashedCopyError {
    Read(io::Error),
    Write(io::Error),
}

impl HashedCopyError {
    /// For a copy of an entry of the backup at `path` to the file `target`, which has the entry's name.
    fn of_extraction(self, path: &Path, target: &Path) -> BackupError {
        match self {
            HashedCopyError::Write(source) => BackupError::Write { path: target.to_owned(), source },
            HashedCopyError::Read(error) => {
                let name = target.file_name().unwrap_or_default();
                unread_entry(error.into(), path, &name.to_string_lossy())
            }
        }
    }
}

/// Reads `input` to its end, and returns its length and its SHA-256.
fn copy_hashed(input: &mut dyn Read, output: &mut dyn Write) -> Result<(u64, String), HashedCopyError> {
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = input.read(&mut buffer).map_err(HashedCopyError::Read)?;
        if count == 0 {
            let digest = hash.finalize();
            return Ok((bytes, digest.iter().map(|byte| format!("{byte:02x}")).collect()));
        }
        hash.update(&buffer[..count]);
        output.write_all(&buffer[..count]).map_err(HashedCopyError::Write)?;
        bytes += count as u64;
    }
}

/// A backup whose checksums are right, extracted.
pub struct OpenedBackup {
    pub manifest: BackupManifest,
    directory: TempDir,
    /// By which an unfinished restore of it is recognised.
    name: String,
    /// Until the end of the restore.
    _lock: FileLock,
}

/// Checks the backup at `path`, and extracts it to a temporary directory in `scratch`. Fails while another restore uses that directory.
/// Blocks.
pub fn open_backup(path: &Path, scratch: &Path) -> Result<OpenedBackup, BackupError> {
    let unreadable = |source| BackupError::Read { path: path.to_owned(), source };
    let damaged = |what: String| BackupError::Damaged { path: path.to_owned(), what };
    let file = File::open(path).map_err(unreadable)?;
    let mut archive = ZipArchive::new(file).map_err(|error| not_opened(error, path))?;
    let manifest = read_manifest(&mut archive, path)?;
    fs::create_dir_all(scratch).map_err(|source| BackupError::Write { path: scratch.to_owned(), source })?;
    let lock = lock_restores(scratch)?;
    remove_leftovers(scratch);
    let directory = tempfile::Builder::new()
        .prefix(RESTORE_PREFIX)
        .tempdir_in(scratch)
        .map_err(|source| BackupError::Write { path: scratch.to_owned(), source })?;
    for BackupFile { name, bytes, sha256, .. } in &manifest.files {
        if !FILES.contains(&name.as_str()) {
            return Err(BackupError::Newer { path: path.to_owned(), hob: manifest.hob.clone() });
        }
        let mut entry = archive.by_name(name).map_err(|error| unread_entry(error, path, name))?;
        let target = directory.path().join(name);
        let unwritable = |source| BackupError::Write { path: target.clone(), source };
        // Readable by its owner only.
        let mut output = NamedTempFile::new_in(directory.path()).map_err(unwritable)?;
        let found = copy_hashed(&mut entry.by_ref().take(bytes.saturating_add(1)), &mut output)
            .map_err(|error| error.of_extraction(path, &target))?;
        output.as_file().sync_all().map_err(unwritable)?;
        output.persist(&target).map_err(|error| unwritable(error.error))?;
        if found != (*bytes, sha256.clone()) {
            return Err(damaged(format!("the checksum of {name} is wrong")));
        }
        let migrations = if name == DATABASE { HOB_MIGRATIONS } else { MEMORY_MIGRATIONS };
        inspect(&target, migrations).map_err(|error| match error {
            DatabaseError::Newer { .. } => {
                BackupError::Newer { path: path.to_owned(), hob: manifest.hob.clone() }
            }
            other => damaged(format!("{name}: {other}")),
        })?;
        settle_file(&target)?;
    }
    let hashes: Vec<&str> =
        manifest.files.iter().map(|file| &file.sha256[..16.min(file.sha256.len())]).collect();
    let name = format!("the backup {}", hashes.join("-"));
    Ok(OpenedBackup { manifest, directory, name, _lock: lock })
}

/// A file that the system cannot read may still be a backup.
fn not_opened(error: ZipError, path: &Path) -> BackupError {
    let path = path.to_owned();
    match error {
        ZipError::Io(source) if is_of_system(&source) => BackupError::Read { path, source },
        _ => BackupError::NotABackup { path },
    }
}

/// An entry that the system cannot read may still be whole.
fn unread_entry(error: ZipError, path: &Path, name: &str) -> BackupError {
    let path = path.to_owned();
    match error {
        ZipError::Io(source) if is_of_system(&source) => BackupError::Read { path, source },
        ZipError::Io(error) => BackupError::Damaged { path, what: format!("{name}: {error}") },
        error => BackupError::Damaged { path, what: format!("{name}: {error}") },
    }
}

/// Errors of the ZIP library itself are about the content, and so is a place that no file can have.
fn is_of_system(error: &io::Error) -> bool {
    error.raw_os_error().is_some() && error.kind() != io::ErrorKind::InvalidInput
}

/// Without it, two restores at once would mix two backups, and remove each other's temporary directory.
fn lock_restores(directory: &Path) -> Result<FileLock, BackupError> {
    FileLock::take_within(&directory.join(RESTORE_LOCK), Duration::ZERO).map_err(|error| match error {
        WriteError::Busy { .. } => BackupError::RestoreRuns { directory: directory.to_owned() },
        other => BackupError::Lock(other),
    })
}

/// Removes what restores left that were stopped by a signal. The caller has the lock.
fn remove_leftovers(scratch: &Path) {
    for entry in fs::read_dir(scratch).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(RESTORE_PREFIX)
            && let Err(error) = fs::remove_dir_all(entry.path())
        {
            tracing::warn!(path = %entry.path().display(), %error, "cannot remove a temporary directory");
        }
    }
}

fn read_manifest(archive: &mut ZipArchive<File>, path: &Path) -> Result<BackupManifest, BackupError> {
    let damaged = |what: String| BackupError::Damaged { path: path.to_owned(), what };
    let entry = archive.by_name(MANIFEST).map_err(|error| not_opened(error, path))?;
    let mut text = String::new();
    let read = entry.take(MAX_MANIFEST).read_to_string(&mut text);
    read.map_err(|error| unread_entry(error.into(), path, MANIFEST))?;
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| damaged(format!("{MANIFEST}: {error}")))?;
    if value["format"].as_u64().is_none_or(|format| format > u64::from(FORMAT)) {
        let hob = value["hob"].as_str().unwrap_or("of an unknown version").to_owned();
        return Err(BackupError::Newer { path: path.to_owned(), hob });
    }
    serde_json::from_value(value).map_err(|error| damaged(format!("{MANIFEST}: {error}")))
}

/// Whether a restored backup may replace data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    Never,
    /// The old data is moved aside first.
    KeepingOld,
}

/// Puts a backup in the place of what is in `to`. `home` has the uploaded documents, and gets what is moved aside. Nothing else may use
/// `to`. Blocks.
pub fn restore(
    backup: OpenedBackup,
    to: &StateLocation,
    home: &Path,
    replace: Replace,
    listener: CopyListener<'_>,
) -> Result<Restored, BackupError> {
    let mut restored = match to {
        StateLocation::Files(directory) => restore_files(&backup, directory, replace)?,
        StateLocation::Postgres(database) => {
            check_unused(to)?;
            restore_to_server(&backup, database, home, replace, listener)?
        }
    };
    if replace == Replace::KeepingOld {
        restored.aside.extend(move_uploads_aside(to, home)?);
    }
    Ok(restored)
}

/// Moves uploaded files aside that the restored memory does not have. Returns where they are.
fn move_uploads_aside(to: &StateLocation, home: &Path) -> Result<Option<PathBuf>, BackupError> {
    let uploads = home.join(UPLOADS);
    // As in the memory: without links.
    let Ok(resolved) = uploads.canonicalize() else { return Ok(None) };
    let name = resolved.to_string_lossy();
    let known = match to {
        StateLocation::Files(directory) => match SqliteMemoryStore::find(&directory.join(MEMORY_DATABASE))? {
            Some(memory) => memory.known_below(&name)?,
            None => HashMap::new(),
        },
        StateLocation::Postgres(database) => PostgresMemoryStore::new(database.clone()).known_below(&name)?,
    };
    let is_known = |path: &Path| path.to_str().is_some_and(|path| known.contains_key(path));
    // On the same disk, also if the directory is a link to another one.
    let aside = beside(&resolved, &format!(".before-restore-{}", stamp()));
    match move_unknown(&resolved, &aside, &is_known) {
        Ok(has_moved) => Ok(has_moved.then_some(aside)),
        Err(source) => Err(BackupError::Write { path: aside, source }),
    }
}

fn restore_files(backup: &OpenedBackup, home: &Path, replace: Replace) -> Result<Restored, BackupError> {
    let existing: Vec<PathBuf> =
        FILES.iter().map(|file| home.join(file)).filter(|path| path.exists()).collect();
    if let (Some(path), Replace::Never) = (existing.first(), replace) {
        return Err(BackupError::Occupied { name: path.display().to_string() });
    }
    match check_unused(&StateLocation::Files(home.to_owned())) {
        // What is damaged is moved aside, too.
        Ok(()) | Err(StateCopyError::Database(DatabaseError::Damaged { .. })) => {}
        Err(error) => return Err(error.into()),
    }
    let stamp = stamp();
    let mut restored = Restored::default();
    let rename = |from: &Path, to: &Path| {
        fs::rename(from, to).map_err(|source| BackupError::Write { path: to.to_owned(), source })
    };
    for path in existing {
        let aside = beside(&path, &format!(".before-restore-{stamp}"));
        for ending in ["-wal", "-shm"] {
            let log = beside(&path, ending);
            if log.exists() {
                rename(&log, &beside(&aside, ending))?;
            }
        }
        rename(&path, &aside)?;
        restored.aside.push(aside);
    }
    for file in &backup.manifest.files {
        rename(&backup.directory.path().join(&file.name), &home.join(&file.name))?;
    }
    Ok(restored)
}

fn restore_to_server(
    backup: &OpenedBackup,
    database: &PostgresDatabase,
    home: &Path,
    replace: Replace,
    listener: CopyListener<'_>,
) -> Result<Restored, BackupError> {
    let copy =
        |existing| files_to_postgres(backup.directory.path(), database, &backup.name, existing, listener);
    // An unfinished restore of the same backup continues.
    match copy(ExistingRows::Continue) {
        Ok(CopyReport { was_complete: false, .. }) => return Ok(Restored::default()),
        Ok(_) | Err(StateCopyError::Copy(CopyError::Occupied { .. } | CopyError::OtherSource { .. })) => {}
        Err(error) => return Err(error.into()),
    }
    if replace == Replace::Never {
        return Err(BackupError::Occupied { name: format!("the database at {}", database.server()) });
    }
    let aside = home.join(format!("before-restore-{}.zip", stamp()));
    back_up(&StateLocation::Postgres(database.clone()), &aside, listener)?;
    copy(ExistingRows::Delete)?;
    Ok(Restored { aside: vec![aside] })
}

/// Such as `20261116T131500`.
fn stamp() -> String {
    let now = Moment::of(SystemTime::now()).timestamp().to_string();
    now.chars().filter(|character| !matches!(character, '-' | ':')).take(15).collect()
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

#[cfg(test)]
#[path = "backup_tests.rs"]
mod tests;
