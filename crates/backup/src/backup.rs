//! A backup of all databases in one file, from SQLite or PostgreSQL: a ZIP archive of SQLite files and a manifest, so the migrations
//! of Hob also apply to old backups.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hob_core::time::Moment;
use hob_db::copy::{ExistingRows, forget_copy};
use hob_db::{Database, DatabaseError, copy_file, count_rows, inspect, settle_file};
use hob_process::LockFile;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tempfile::{NamedTempFile, TempDir};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::copy::CopyListener;
use crate::error::{BackupError, StateCopyError};
use crate::service::{BackupService, StateLocation};

/// The form of the archive. A new form gets the next number.
const FORMAT: u32 = 1;

const MANIFEST: &str = "manifest.json";

/// The most bytes of a manifest.
const MAX_MANIFEST: u64 = 1 << 20;

/// Begins the name of the temporary directory of a restore.
const RESTORE_PREFIX: &str = ".hob-restore-";

/// The lock of a restore, a file in the directory of the restore.
const RESTORE_LOCK: &str = ".restore.lock";

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

/// A backup whose checksums are right, extracted.
pub struct OpenedBackup {
    pub manifest: BackupManifest,
    pub(crate) directory: TempDir,
    /// By which an unfinished restore of it is recognised.
    pub(crate) name: String,
    /// Until the end of the restore.
    _lock: LockFile,
}

impl BackupService {
    /// Writes everything in `from` to the new file `path`, while Hob may run. Blocks.
    pub fn back_up(
        &self,
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
        let work =
            tempfile::Builder::new().prefix(".hob-backup-").tempdir_in(directory).map_err(unwritable)?;
        let database = match from {
            StateLocation::Files(home) => {
                for file in &self.files {
                    copy_file(&home.join(file.name), &work.path().join(file.name))?;
                }
                "sqlite"
            }
            StateLocation::Postgres(database) => {
                self.postgres_to_files(database, work.path(), ExistingRows::Continue, listener)?;
                for file in &self.files {
                    let path = work.path().join(file.name);
                    if path.exists() {
                        forget_copy(&Database::open(&path, file.migrations)?)?;
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
            for name in self.files.iter().map(|file| file.name) {
                let source = work.path().join(name);
                if !source.exists() {
                    continue;
                }
                let rows = count_rows(&source)?;
                archive.start_file(name, options).map_err(|error| unwritable(error.into()))?;
                let (bytes, sha256) = File::open(&source)
                    .map_err(HashedCopyError::Read)
                    .and_then(|mut file| copy_hashed(&mut file, &mut archive))
                    .map_err(|error| match error {
                        HashedCopyError::Read(error) => BackupError::Read { path: source, source: error },
                        HashedCopyError::Write(error) => unwritable(error),
                    })?;
                manifest.files.push(BackupFile { name: name.to_owned(), bytes, sha256, rows });
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

    /// Checks the backup at `path`, and extracts it to a temporary directory in `scratch`. Fails while another restore uses that directory.
    /// Blocks.
    pub fn open(&self, path: &Path, scratch: &Path) -> Result<OpenedBackup, BackupError> {
        let unreadable = |source| BackupError::Read { path: path.to_owned(), source };
        let damaged = |what: String| BackupError::Damaged { path: path.to_owned(), what };
        let file = File::open(path).map_err(unreadable)?;
        let mut archive = ZipArchive::new(file).map_err(|error| not_opened(error, path))?;
        let manifest = read_manifest(&mut archive, path)?;
        fs::create_dir_all(scratch)
            .map_err(|source| BackupError::Write { path: scratch.to_owned(), source })?;
        // Without it, two restores at once would mix two backups, and remove each other's temporary directory.
        let lock_path = scratch.join(RESTORE_LOCK);
        let lock = LockFile::try_take(&lock_path)
            .map_err(|source| BackupError::Write { path: lock_path, source })?
            .ok_or_else(|| BackupError::RestoreRuns { directory: scratch.to_owned() })?;
        remove_leftovers(scratch);
        let directory = tempfile::Builder::new()
            .prefix(RESTORE_PREFIX)
            .tempdir_in(scratch)
            .map_err(|source| BackupError::Write { path: scratch.to_owned(), source })?;
        for BackupFile { name, bytes, sha256, .. } in &manifest.files {
            let newer = || BackupError::Newer { path: path.to_owned(), hob: manifest.hob.clone() };
            let file = self.files.iter().find(|file| file.name == name).ok_or_else(newer)?;
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
            inspect(&target, file.migrations).map_err(|error| match error {
                DatabaseError::Newer { .. } => newer(),
                other => damaged(format!("{name}: {other}")),
            })?;
            settle_file(&target)?;
        }
        let hashes: Vec<&str> =
            manifest.files.iter().map(|file| &file.sha256[..16.min(file.sha256.len())]).collect();
        let name = format!("the backup {}", hashes.join("-"));
        Ok(OpenedBackup { manifest, directory, name, _lock: lock })
    }
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

/// Removes what restores left that were stopped by a signal. The caller has the lock.
fn remove_leftovers(scratch: &Path) {
    for entry in fs::read_dir(scratch).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(RESTORE_PREFIX)
            && let Err(error) = fs::remove_dir_all(entry.path())
        {
            tracing::warn!(
                path = %entry.path().display(),
                %error,
                "a temporary directory of a restore cannot be removed. Delete it"
            );
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

#[cfg(test)]
#[path = "backup_tests.rs"]
mod tests;
