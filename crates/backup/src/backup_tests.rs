use std::io::{Seek, SeekFrom};

use hob_db::Migrations;

use super::*;
use crate::restore::Replace;
use crate::service::{BackupOptions, StateFile};

const FILES: [&str; 2] = ["hob.db", "memory.db"];

const MIGRATIONS: &[Migrations] = &[Migrations {
    capability: "notes",
    steps: &["CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT"],
    legacy_versions: &[],
}];

fn service() -> BackupService {
    let file = |name| StateFile {
        name,
        migrations: MIGRATIONS,
        tables: Vec::new(),
        is_needed: None,
        after_copy: None,
    };
    BackupService::new(BackupOptions { files: FILES.map(file).into(), move_unknown: |_, _, _| Ok(None) })
}

/// A home with both files, and its backup.
fn backed_up() -> (TempDir, PathBuf) {
    let root = tempfile::tempdir().expect("a directory");
    for file in FILES {
        drop(Database::open(&root.path().join(file), MIGRATIONS).expect("made"));
    }
    let path = root.path().join("backup.zip");
    service().back_up(&StateLocation::Files(root.path().to_owned()), &path, &|_| {}).expect("saved");
    (root, path)
}

/// A backup with these files.
fn archive(path: &Path, entries: &[(&str, &[u8])]) {
    let mut archive = ZipWriter::new(File::create(path).expect("a file"));
    for (name, bytes) in entries {
        archive.start_file(*name, SimpleFileOptions::default()).expect("begun");
        archive.write_all(bytes).expect("written");
    }
    archive.finish().expect("written");
}

#[test]
fn a_backup_is_readable_by_its_owner_only_and_leaves_nothing_beside_it() {
    let (root, path) = backed_up();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(path.metadata().expect("there").permissions().mode() & 0o777, 0o600);
    }
    let opened = service().open(&path, root.path()).expect("good");
    let names: Vec<&str> = opened.manifest.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, FILES);
    drop(opened);
    let hidden = fs::read_dir(root.path())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with('.') && name != ".restore.lock");
    assert_eq!(hidden.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn what_a_killed_restore_left_is_removed() {
    let (root, path) = backed_up();
    let leftover = root.path().join(format!("{RESTORE_PREFIX}old"));
    fs::create_dir(&leftover).expect("made");
    drop(service().open(&path, root.path()).expect("good"));
    assert!(!leftover.exists());
}

#[test]
fn a_second_restore_is_refused_until_the_first_has_ended() {
    let (root, path) = backed_up();
    let first = service().open(&path, root.path()).expect("good");
    let refused = service().open(&path, root.path()).err().expect("refused").to_string();
    assert_eq!(
        refused,
        format!(
            "another restore is running in {}. Wait until it has ended, and try again.",
            root.path().display()
        )
    );
    let to = StateLocation::Files(root.path().to_owned());
    service().restore(first, &to, root.path(), Replace::KeepingOld, &|_| {}).expect("restored");
    service().open(&path, root.path()).expect("free again");
}

#[test]
fn a_backup_of_a_newer_hob_is_refused() {
    let (root, path) = backed_up();
    archive(&path, &[(MANIFEST, br#"{"format": 2, "hob": "9.0.0", "parts": []}"#)]);
    let refused = service().open(&path, root.path()).err().expect("refused").to_string();
    assert_eq!(
        refused,
        format!(
            "the backup {} was written by a newer Hob (9.0.0). Update Hob, and try again.",
            path.display()
        )
    );

    let newer = Database::open(&root.path().join("hob.db"), MIGRATIONS).expect("opened");
    let later = "UPDATE schema_version SET version = version + 1";
    newer.write(|transaction| transaction.execute(later, [])).expect("written");
    drop(newer);
    let path = root.path().join("newer.zip");
    service().back_up(&StateLocation::Files(root.path().to_owned()), &path, &|_| {}).expect("saved");
    assert!(matches!(service().open(&path, root.path()), Err(BackupError::Newer { .. })));
}

#[test]
fn a_wrong_checksum_is_noticed() {
    let (root, path) = backed_up();
    let opened = service().open(&path, root.path()).expect("good");
    let manifest = serde_json::to_vec(&opened.manifest).expect("JSON");
    let database = fs::read(opened.directory.path().join("hob.db")).expect("there");
    drop(opened);
    let mut other = database.clone();
    if let Some(byte) = other.last_mut() {
        *byte ^= 1;
    }
    archive(&path, &[(MANIFEST, &manifest), ("hob.db", &other)]);
    let refused = service().open(&path, root.path()).err().expect("refused").to_string();
    assert!(refused.contains("the checksum of hob.db is wrong"), "{refused}");
    archive(&path, &[(MANIFEST, &manifest), ("hob.db", &database)]);
    let refused = service().open(&path, root.path()).err().expect("refused").to_string();
    assert!(refused.contains("memory.db"), "{refused}");
}

/// A file whose disk fails with this error.
struct FailingFile(fn() -> io::Error);

impl Read for FailingFile {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err((self.0)())
    }
}

impl Seek for FailingFile {
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        Ok(1000)
    }
}

#[test]
fn a_file_that_cannot_be_read_is_not_called_something_else() {
    let (root, path) = backed_up();
    let refused = |error: fn() -> io::Error| {
        let error = ZipArchive::new(FailingFile(error)).err().expect("refused");
        not_opened(error, &path)
    };
    assert!(matches!(refused(|| io::Error::from_raw_os_error(5)), BackupError::Read { .. }));
    assert!(matches!(refused(|| io::Error::other("a wrong field")), BackupError::NotABackup { .. }));

    for content in ["", "no archive"] {
        fs::write(&path, content).expect("written");
        assert!(
            matches!(service().open(&path, root.path()), Err(BackupError::NotABackup { .. })),
            "{content}"
        );
    }
    archive(&path, &[("other.txt", b"text")]);
    assert!(matches!(service().open(&path, root.path()), Err(BackupError::NotABackup { .. })));
}

/// A disk without free space.
struct FullDisk;

impl Write for FullDisk {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_not_a_damaged_backup() {
    let (path, target) = (Path::new("backup.zip"), Path::new("scratch/hob.db"));
    let failed = |input: &mut dyn Read, output: &mut dyn Write| {
        copy_hashed(input, output).expect_err("failed").of_extraction(path, target)
    };
    let error = failed(&mut b"text".as_slice(), &mut FullDisk);
    assert!(matches!(&error, BackupError::Write { path, .. } if path == target), "{error}");
    let error = failed(&mut FailingFile(|| io::Error::from_raw_os_error(5)), &mut io::sink());
    assert!(matches!(&error, BackupError::Read { path, .. } if path == Path::new("backup.zip")), "{error}");
    let error = failed(&mut FailingFile(|| io::Error::other("Invalid checksum")), &mut io::sink());
    assert!(error.to_string().contains("is damaged: hob.db: Invalid checksum"), "{error}");

    let unread = |error: io::Error| unread_entry(error.into(), path, MANIFEST);
    assert!(matches!(unread(io::Error::from_raw_os_error(5)), BackupError::Read { .. }));
    assert!(matches!(unread(io::Error::other("Invalid checksum")), BackupError::Damaged { .. }));
}
