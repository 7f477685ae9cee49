//! Stores uploaded files: a safe name, a place of its own for each collection, and limits.

use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use hob_core::CollectionName;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::error::DocumentLibraryError;

/// Bytes of a stored name.
const MAX_NAME: usize = 200;

/// Bytes of the part after the last dot that is kept if a name is cut.
const MAX_EXTENSION: usize = 20;

/// Uploaded files of a collection, and their bytes.
const MAX_FILES: usize = 10_000;
const MAX_BYTES: u64 = 16 << 30;

/// What the name of the note of a file begins with that is not indexed yet. Hidden files are not indexed, and no uploaded file is hidden.
const PENDING_PREFIX: &str = ".pending-";

/// Whether a file of the same name is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SameName {
    Replace,
    Refuse,
}

/// The key on whose account a file is indexed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadPayer {
    pub key: String,
    /// The rule of an identity from outside.
    pub rule: Option<String>,
}

/// A stored file that is not indexed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PendingUpload {
    pub(super) collection: CollectionName,
    pub(super) path: PathBuf,
    /// `None` for the owner.
    pub(super) payer: Option<UploadPayer>,
}

/// The last part of a name, without characters that mean something in paths or terminals. It does not begin with a dot, because hidden
/// files are not indexed.
pub(super) fn safe_name(given: &str) -> Result<String, DocumentLibraryError> {
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_unsafe = |letter: char| {
        letter.is_control()
            || is_bidirectional_control(letter)
            || matches!(letter, '<' | '>' | ':' | '"' | '|' | '?' | '*')
    };
    let plain: String = last.chars().map(|letter| if is_unsafe(letter) { '_' } else { letter }).collect();
    // Together, because a dot may be behind a space.
    let trimmed = plain.trim_matches(|letter: char| letter == '.' || letter.is_whitespace());
    if trimmed.is_empty() {
        return Err(DocumentLibraryError::Name(
            "the name of the file is empty; send one such as notes.md".to_owned(),
        ));
    }
    let name = shortened(trimmed);
    if hob_core::is_secret(Path::new(&name)) || hob_core::is_secret(Path::new(last)) {
        let reason =
            "a file with the name of a key or password file is not stored; rename it if it is a document";
        return Err(DocumentLibraryError::Name(reason.to_owned()));
    }
    Ok(name)
}

/// Whether a character changes the direction of the text after it, so that a name looks like another one.
fn is_bidirectional_control(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The directory of a collection. An upper-case letter is written as `+` and its lower-case form, because some file systems do not
/// distinguish the case. No name of a collection has a `+`.
pub(super) fn directory_of(uploads: &Path, collection: &CollectionName) -> PathBuf {
    let mut name = String::new();
    for letter in collection.as_str().chars() {
        if letter.is_ascii_uppercase() {
            name.push('+');
        }
        name.push(letter.to_ascii_lowercase());
    }
    uploads.join(name)
}

/// The collection of a directory.
fn collection_of(directory: &str) -> Option<CollectionName> {
    let mut name = String::new();
    let mut letters = directory.chars();
    while let Some(letter) = letters.next() {
        name.push(if letter == '+' { letters.next()?.to_ascii_uppercase() } else { letter });
    }
    CollectionName::parse(&name).ok()
}

/// At most `MAX_NAME` bytes, with the extension, which decides how a file is read.
fn shortened(name: &str) -> String {
    if name.len() <= MAX_NAME {
        return name.to_owned();
    }
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) if extension.len() <= MAX_EXTENSION => (stem, format!(".{extension}")),
        _ => (name, String::new()),
    };
    let stem = &stem[..stem.floor_char_boundary(MAX_NAME - extension.len())];
    format!("{}{extension}", stem.trim_end_matches(['.', ' ']))
}

/// A file to write.
#[derive(Clone, Copy)]
pub(super) struct StoredUpload<'a> {
    pub(super) collection: &'a CollectionName,
    pub(super) name: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) same_name: SameName,
    pub(super) payer: Option<&'a UploadPayer>,
}

/// Writes a file, whole or not at all, with a note that it is not indexed yet and who pays for that. Blocks.
pub(super) fn store(
    uploads: &Path,
    StoredUpload { collection, name, bytes, same_name, payer }: StoredUpload<'_>,
) -> Result<PathBuf, DocumentLibraryError> {
    let directory = directory_of(uploads, collection);
    let failed = |source: io::Error| DocumentLibraryError::Write { path: directory.clone(), source };
    fs::create_dir_all(&directory).map_err(failed)?;
    let path = directory.join(name);
    if same_name == SameName::Refuse && path.exists() {
        return Err(DocumentLibraryError::Exists { name: name.to_owned() });
    }
    let (mut files, mut total) = (0, bytes.len() as u64);
    for entry in fs::read_dir(&directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let other = entry.file_name();
        if other != name && !other.to_string_lossy().starts_with(PENDING_PREFIX) {
            files += 1;
            total = total.saturating_add(entry.metadata().map_or(0, |metadata| metadata.len()));
        }
    }
    if files >= MAX_FILES || total > MAX_BYTES {
        return Err(DocumentLibraryError::Full { collection: collection.clone() });
    }
    // Hidden until it is whole, and readable by its owner only.
    let mut file = NamedTempFile::new_in(&directory).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    if let Some(note) = pending_note(&path) {
        // Names can always be written.
        let payer = payer.and_then(|payer| serde_json::to_string(payer).ok()).unwrap_or_default();
        let mut note = fs::File::create(note).map_err(failed)?;
        note.write_all(payer.as_bytes()).map_err(failed)?;
        // Before the file has its name: without the payer, the owner would pay.
        note.sync_all().map_err(failed)?;
    }
    match same_name {
        SameName::Replace => file.persist(&path),
        SameName::Refuse => file.persist_noclobber(&path),
    }
    .map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => DocumentLibraryError::Exists { name: name.to_owned() },
        _ => failed(error.error),
    })?;
    sync_names(uploads, &directory).map_err(failed)?;
    Ok(path)
}

/// A name survives a power cut after its directory is synced, and so do the directories that were created for it.
fn sync_names(uploads: &Path, directory: &Path) -> io::Result<()> {
    #[cfg(unix)]
    for one in [Some(directory), Some(uploads), uploads.parent()].into_iter().flatten() {
        fs::File::open(one)?.sync_all()?;
    }
    Ok(())
}

fn pending_note(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    Some(path.with_file_name(format!("{PENDING_PREFIX}{name}")))
}

/// Notes that a file is indexed. Blocks.
pub(super) fn remove_pending(path: &Path) {
    if let Some(note) = pending_note(path) {
        // A note that stays costs a look at the file after the next start.
        let _ = fs::remove_file(note);
    }
}

/// The uploaded files that are not indexed yet. Blocks.
pub(super) fn pending(uploads: &Path) -> Vec<PendingUpload> {
    let mut found = Vec::new();
    for directory in fs::read_dir(uploads).into_iter().flatten().flatten() {
        let Some(collection) = directory.file_name().to_str().and_then(collection_of) else { continue };
        for note in fs::read_dir(directory.path()).into_iter().flatten().flatten() {
            let name = note.file_name();
            let Some(name) = name.to_str().and_then(|name| name.strip_prefix(PENDING_PREFIX)) else {
                continue;
            };
            let path = directory.path().join(name);
            match path.is_file() {
                true => {
                    let Ok(payer) = payer_in(&note.path()) else { continue };
                    found.push(PendingUpload { collection: collection.clone(), path, payer });
                }
                // The file was not stored, or is deleted.
                false => remove_pending(&path),
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// Who pays for an upload, by its note; `None` is the owner.
fn payer_in(note: &Path) -> io::Result<Option<UploadPayer>> {
    let read = fs::read_to_string(note).and_then(|text| match text.is_empty() {
        true => Ok(None),
        false => Ok(Some(serde_json::from_str(&text)?)),
    });
    read.inspect_err(|error| {
        tracing::warn!(
            %error,
            note = %note.display(),
            "an uploaded document is not indexed, because the note on who pays for it cannot be read; Hob looks again at \
             the next start. Upload the document again, or delete the note"
        );
    })
}

/// The directory of uploads without links, and the part of it that is at a path or below it; all of it without a path. Blocks.
pub(super) fn part_of(uploads: &Path, path: Option<&Path>) -> Option<(PathBuf, PathBuf)> {
    let uploads = uploads.canonicalize().ok()?;
    let part = match path {
        Some(path) if path.starts_with(&uploads) => path.to_owned(),
        Some(path) if !uploads.starts_with(path) => return None,
        _ => uploads.clone(),
    };
    Some((uploads, part))
}

/// Deletes unwanted files in a part of the uploads, with their notes, and returns their number. `is_unwanted` gets the collection that
/// a file was uploaded to, and its path. Blocks.
pub(super) fn delete(
    uploads: &Path,
    part: &Path,
    is_unwanted: impl Fn(&CollectionName, &str) -> bool,
) -> Result<u64, DocumentLibraryError> {
    let mut deleted = 0;
    for directory in entries(uploads).map_err(failed(uploads))? {
        let name = directory.file_name().and_then(|name| name.to_str());
        let Some(collection) = name.and_then(collection_of) else { continue };
        let has_part = directory.starts_with(part) || part.starts_with(&directory);
        // The user may have put files, links and directories here.
        if !has_part || !is_real(&directory, Metadata::is_dir) {
            continue;
        }
        let mut has_deleted = false;
        for file in entries(&directory).map_err(failed(&directory))? {
            let document = document_of(&file);
            let is_meant = document.to_str().is_some_and(|document| is_unwanted(&collection, document));
            if !document.starts_with(part) || !is_meant || !is_real(&file, Metadata::is_file) {
                continue;
            }
            match fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&file)(error)),
                removed => deleted += u64::from(removed.is_ok() && file == document),
            }
            has_deleted = true;
        }
        if has_deleted && directory.starts_with(part) {
            // It stays if it is not empty.
            let _ = fs::remove_dir(&directory);
        }
    }
    Ok(deleted)
}

/// Whether this holds for a path itself, and not for what it links to.
fn is_real(path: &Path, is_kind: impl FnOnce(&Metadata) -> bool) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| is_kind(&metadata))
}

fn failed(path: &Path) -> impl Fn(io::Error) -> DocumentLibraryError {
    let path = path.to_owned();
    move |source| DocumentLibraryError::Write { path: path.clone(), source }
}

/// The uploaded file that a file beside it belongs to: itself, or the one of a note.
pub(super) fn document_of(file: &Path) -> PathBuf {
    let name = file.file_name().and_then(|name| name.to_str());
    let noted = name.and_then(|name| name.strip_prefix(PENDING_PREFIX));
    noted.map_or_else(|| file.to_owned(), |name| file.with_file_name(name))
}

/// The paths in a directory; none if it does not exist. Blocks.
pub(super) fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(directory) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upload<'a>(collection: &'a CollectionName, name: &'a str, text: &'a str) -> StoredUpload<'a> {
        let (bytes, same_name) = (text.as_bytes(), SameName::Refuse);
        StoredUpload { collection, name, bytes, same_name, payer: None }
    }

    #[test]
    fn a_name_cannot_leave_its_directory() {
        for (given, safe) in [
            ("notes.md", "notes.md"),
            ("../../etc/passwd", "passwd"),
            ("C:\\Users\\ana\\report.docx", "report.docx"),
            (".hidden.md", "hidden.md"),
            (". .notes.md", "notes.md"),
            (".\u{a0}. notes.md. .", "notes.md"),
            ("gpj\u{202e}fdp.exe", "gpj_fdp.exe"),
            ("a\u{200f}b\u{2066}c.md", "a_b_c.md"),
            ("a\nb\u{1b}[31m.txt", "a_b_[31m.txt"),
            ("who? what: a \"test\".md", "who_ what_ a _test_.md"),
            ("Grüße 👋.md", "Grüße 👋.md"),
            ("  spaced .md  ", "spaced .md"),
        ] {
            assert_eq!(safe_name(given).unwrap(), safe);
        }
        for wrong in ["", "/", "..", " . ", "a/..", "notes/"] {
            assert!(matches!(safe_name(wrong), Err(DocumentLibraryError::Name(_))), "{wrong}");
        }
        for secret in [".env", "server.pem", "id_rsa", "dir/.netrc"] {
            assert!(matches!(safe_name(secret), Err(DocumentLibraryError::Name(_))), "{secret}");
        }
    }

    #[test]
    fn a_long_name_keeps_its_extension() {
        let name = safe_name(&format!("{}.pdf", "ü".repeat(300))).unwrap();
        assert!(name.len() <= MAX_NAME && name.ends_with("ü.pdf"), "{name}");
        assert!(safe_name(&"a".repeat(999)).unwrap().len() == MAX_NAME);
    }

    #[test]
    fn a_file_is_replaced_only_if_that_is_allowed() {
        let root = tempfile::tempdir().unwrap();
        let team = CollectionName::parse("team").unwrap();
        let write = |text: &str, same_name| {
            store(root.path(), StoredUpload { same_name, ..upload(&team, "a.md", text) })
        };
        let path = write("one", SameName::Refuse).unwrap();
        assert_eq!(path, root.path().join("team/a.md"));
        assert!(matches!(write("two", SameName::Refuse), Err(DocumentLibraryError::Exists { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        write("two", SameName::Replace).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        let names = fs::read_dir(root.path().join("team")).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        assert_eq!(names, [".pending-a.md", "a.md"], "nothing else is left");
    }

    #[test]
    fn a_file_is_pending_until_it_is_indexed() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(pending(root.path()), []);
        let team = CollectionName::parse("Team").unwrap();
        let payer = UploadPayer { key: "ci".into(), rule: Some("groups=dev".into()) };
        let path = store(root.path(), StoredUpload { payer: Some(&payer), ..upload(&team, "a.md", "text") })
            .unwrap();
        let other = store(root.path(), upload(&team, "c.md", "text")).unwrap();
        let gone = store(root.path(), upload(&team, "b.md", "text")).unwrap();
        fs::remove_file(&gone).unwrap();
        fs::write(root.path().join("+team/.pending-"), "").unwrap();
        fs::create_dir(root.path().join("no name!")).unwrap();
        let found = |path: &Path, payer| PendingUpload { collection: team.clone(), path: path.into(), payer };
        assert_eq!(pending(root.path()), [found(&path, Some(payer)), found(&other, None)]);
        fs::write(pending_note(&path).unwrap(), "{").unwrap();
        assert_eq!(
            pending(root.path()),
            [found(&other, None)],
            "a file whose payer cannot be read is skipped"
        );
        remove_pending(&path);
        remove_pending(&other);
        remove_pending(&path);
        assert_eq!(pending(root.path()), []);
    }

    #[test]
    fn collections_that_differ_in_case_have_different_directories() {
        for (collection, directory) in
            [("team", "team"), ("Team", "+team"), ("TEAM-2.x_Y", "+t+e+a+m-2.x_+y"), ("0", "0")]
        {
            let name = CollectionName::parse(collection).unwrap();
            assert_eq!(directory_of(Path::new("documents"), &name), Path::new("documents").join(directory));
        }
    }

    #[test]
    fn only_uploaded_files_of_the_collections_are_deleted() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (uploads, team) = (root.join("documents"), CollectionName::parse("team").unwrap());
        let [own, kept] = ["own.md", "kept.md"]
            .map(|name| store(&uploads, upload(&CollectionName::default(), name, "text")).unwrap());
        let other = store(&uploads, upload(&team, "other.md", "text")).unwrap();
        let beside = root.join("beside.md");
        fs::write(&beside, "text").unwrap();
        fs::create_dir(uploads.join("default/directory")).unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&beside, uploads.join("default/link.md")).unwrap();
            std::os::unix::fs::symlink(&root, uploads.join("linked")).unwrap();
        }
        let delete = |path: &Path, collections: &[&CollectionName]| match part_of(&uploads, Some(path)) {
            Some((uploads, part)) => {
                let is_unwanted = |collection: &CollectionName, path: &str| {
                    collections.contains(&collection) && Path::new(path) != kept
                };
                delete(&uploads, &part, is_unwanted).unwrap()
            }
            None => 0,
        };
        let own_one = CollectionName::default();
        for spared in [&beside, &uploads.join("default/../../beside.md"), &root.join("documents2")] {
            assert_eq!(delete(spared, &[&own_one, &team]), 0, "{}", spared.display());
        }
        assert_eq!(delete(&own, &[&team]), 0);
        assert!([&own, &kept, &other, &beside].iter().all(|path| path.exists()));

        assert_eq!(delete(&own, &[&own_one]), 1);
        assert_eq!((own.exists(), pending_note(&own).unwrap().exists()), (false, false));
        assert_eq!(delete(&root, &[&own_one]), 0, "the other one is kept");
        assert!(kept.exists() && pending_note(&kept).unwrap().exists() && other.exists());
        assert_eq!(delete(Path::new("/"), &[&own_one, &team]), 1);
        assert_eq!((kept.exists(), beside.exists(), uploads.join("team").exists()), (true, true, false));
        assert!(uploads.join("default/directory").exists());
    }
}
