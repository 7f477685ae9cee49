//! Indexing as its users see it: real files, a real database.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime};

use hob_core::CollectionName;

use super::watch::DirectoryWatch;
use super::*;
use crate::chunk::ChunkOptions;
use crate::store::{CatalogPage, DocumentCatalog, NewFolder, SqliteMemoryStore};
use crate::types::IndexWarning;
use crate::word_query::WordQuery;

struct Folder {
    directory: tempfile::TempDir,
    store: SqliteMemoryStore,
}

impl Folder {
    fn with(files: &[(&str, &str)]) -> Self {
        let folder = Folder {
            directory: tempfile::tempdir().unwrap(),
            store: SqliteMemoryStore::in_memory().unwrap(),
        };
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn index(&self) -> IndexReport {
        self.try_index(&CancellationToken::new()).unwrap()
    }

    fn try_index(&self, stop: &CancellationToken) -> Result<IndexReport, MemoryError> {
        index(&self.store, self.path(), &IndexOptions::default(), &|_| {}, stop)
    }

    /// Indexes a directory in it.
    fn index_below(&self, place: &str, options: &IndexOptions) -> IndexReport {
        let (root, stop) = (self.path().join(place), CancellationToken::new());
        index(&self.store, &root, options, &|_| {}, &stop).unwrap()
    }

    /// Adds a directory in it to the folders of the library.
    fn add_folder(&self, place: &str) {
        let path = self.path().canonicalize().unwrap().join(place).to_str().unwrap().to_owned();
        let folder = NewFolder { path, collection: CollectionName::default(), watched: false };
        self.store.save_folder(&folder, SystemTime::now()).unwrap();
    }

    /// The saved list of skipped files.
    fn skipped(&self) -> Vec<String> {
        let root = self.path().canonicalize().unwrap();
        let page = CatalogPage { limit: 9, ..CatalogPage::default() };
        let listed = self.store.skipped(&CollectionSet::All, &page).unwrap().into_iter();
        let below = |path: &str| Path::new(path).strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        listed.map(|file| below(&file.path)).collect()
    }

    fn found(&self, question: &str) -> Vec<String> {
        let query = WordQuery::of(question).unwrap();
        let hits: Vec<i64> = self.store.find_words(&query, 9).unwrap().iter().map(|hit| hit.chunk).collect();
        let passages = self.store.passages(&hits, None).unwrap();
        let name = |source: &str| Path::new(source).file_name().unwrap().to_string_lossy().into_owned();
        passages.iter().map(|passage| name(&passage.source)).collect()
    }
}

/// The numbers alone.
fn numbers(report: &IndexReport) -> [u64; 6] {
    [report.files, report.indexed, report.unchanged, report.skipped, report.removed, report.failed]
}

#[test]
fn only_changed_files_are_read_again_and_deleted_ones_removed() {
    let folder = Folder::with(&[("a.md", "# Apples\n\nred"), ("sub/b.txt", "pears"), ("c.txt", "plums")]);
    assert_eq!(numbers(&folder.index()), [3, 3, 0, 0, 0, 0]);
    assert_eq!(numbers(&folder.index()), [3, 0, 3, 0, 0, 0]);

    folder.write("a.md", "# Cherries\n\nblack and sour");
    fs::remove_file(folder.path().join("c.txt")).unwrap();
    assert_eq!(numbers(&folder.index()), [2, 1, 1, 0, 1, 0]);
    assert_eq!(folder.found("apples plums"), [""; 0]);
    assert_eq!(folder.found("cherry"), ["a.md"]);
    assert_eq!(folder.found("pear"), ["b.txt"]);
}

#[test]
fn uploads_and_hidden_folders_below_a_directory_stay_when_it_is_indexed() {
    let folder = Folder::with(&[
        ("a.md", "apples"),
        (".hob/documents/default/b.md", "pears"),
        (".notes/c.md", "plums"),
        (".old/d.md", "cherries"),
    ]);
    let mut options = IndexOptions::default();
    options.limits.uploads = Some(folder.path().canonicalize().unwrap().join(".hob/documents"));
    for place in [".hob/documents/default", ".notes", ".old"] {
        assert_eq!(folder.index_below(place, &options).indexed, 1, "{place}");
    }
    folder.add_folder(".notes");
    let report = folder.index_below("", &options);
    assert_eq!(numbers(&report), [1, 1, 0, 0, 1, 0], "only the directory that is no folder is forgotten");
    assert_eq!((folder.found("pears"), folder.found("plums")), (vec!["b.md".into()], vec!["c.md".into()]));
    assert_eq!(folder.found("cherries"), [""; 0]);

    // Their own runs remove what is gone.
    for (place, gone) in [(".hob/documents/default", "b.md"), (".notes", "c.md")] {
        folder.write(&format!("{place}/new.md"), "quinces");
        fs::remove_file(folder.path().join(place).join(gone)).unwrap();
        assert_eq!(numbers(&folder.index_below(place, &options)), [1, 1, 0, 0, 1, 0], "{place}");
    }
}

#[test]
fn skipped_files_of_hidden_folders_stay_listed_when_a_directory_above_is_indexed() {
    let binary = "\0\u{1}\u{2}\0";
    let folder = Folder::with(&[
        ("a.md", "apples"),
        ("b.bin", binary),
        (".notes/c.bin", binary),
        (".old/d.bin", binary),
        ("work/e.md", "pears"),
        ("work/f.bin", binary),
    ]);
    for place in [".notes", ".old", "work"] {
        assert_eq!(folder.index_below(place, &IndexOptions::default()).skipped, 1, "{place}");
    }
    for place in [".notes", "work"] {
        folder.add_folder(place);
    }
    fs::remove_file(folder.path().join("work/f.bin")).unwrap();
    assert_eq!(folder.index().skipped, 1);
    assert_eq!(folder.skipped(), [".notes/c.bin", "b.bin"], "the walk does not enter .notes");
    fs::remove_file(folder.path().join(".notes/c.bin")).unwrap();
    folder.index_below(".notes", &IndexOptions::default());
    assert_eq!(folder.skipped(), ["b.bin"]);
}

#[test]
fn a_folder_in_another_one_loses_deleted_files_but_not_all_of_them() {
    let folder = Folder::with(&[("a.md", "apples"), ("work/b.md", "pears"), ("work/c.md", "plums")]);
    folder.add_folder("work");
    assert_eq!(folder.index().indexed, 3);
    fs::remove_file(folder.path().join("work/b.md")).unwrap();
    assert_eq!(numbers(&folder.index()), [2, 0, 2, 0, 1, 0]);
    // As if its drive is missing.
    fs::remove_file(folder.path().join("work/c.md")).unwrap();
    assert_eq!(numbers(&folder.index()), [1, 0, 1, 0, 0, 0]);
    assert_eq!(folder.found("plums"), ["c.md"]);
    // It is deleted, and is not watched.
    fs::remove_dir(folder.path().join("work")).unwrap();
    assert_eq!(numbers(&folder.index()), [1, 0, 1, 0, 1, 0]);
    assert_eq!(folder.found("plums"), [""; 0]);
}

#[test]
fn a_directory_without_files_is_an_error_and_its_documents_stay() {
    let folder = Folder::with(&[]);
    assert_eq!(numbers(&folder.index()), [0; 6], "nothing of it is known");
    folder.write("notes/a.md", "apples");
    folder.index();
    fs::remove_dir_all(folder.path().join("notes")).unwrap();
    folder.write(".hidden", "pears");
    let error = folder.try_index(&CancellationToken::new()).unwrap_err();
    assert!(matches!(error, MemoryError::NoFiles { .. }), "{error}");
    assert_eq!(folder.found("apples"), ["a.md"]);
    folder.write("b.md", "plums");
    assert_eq!(numbers(&folder.index()), [1, 1, 0, 0, 1, 0]);
}

#[test]
fn a_new_date_alone_is_not_a_change() {
    let folder = Folder::with(&[("a.md", "apples")]);
    folder.index();
    let file = fs::File::options().append(true).open(folder.path().join("a.md")).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(60)).unwrap();
    assert_eq!(numbers(&folder.index()), [1, 0, 1, 0, 0, 0]);
}

#[test]
fn another_chunk_size_reads_files_again() {
    let folder = Folder::with(&[("a.md", "apples")]);
    folder.index();
    let options = IndexOptions { chunks: ChunkOptions::new(100, 10).unwrap(), ..IndexOptions::default() };
    let report = index(&folder.store, folder.path(), &options, &|_| {}, &CancellationToken::new()).unwrap();
    assert_eq!(numbers(&report), [1, 1, 0, 0, 0, 0]);
}

#[test]
fn an_unreadable_file_is_a_warning_and_does_not_affect_others() {
    let folder = Folder::with(&[("good.md", "apples"), ("image.bin", "\0\u{1}\u{2}\0"), (".env", "KEY=1")]);
    folder.write("broken.docx", b"PK\x03\x04 this is no archive");
    folder.write("server.pem", "-----BEGIN");
    let heard = Mutex::new(Vec::new());
    let listener = |progress: IndexProgress<'_>| {
        if let IndexProgress::Warning(warning) = progress {
            heard.lock().unwrap().push(warning.clone());
        }
    };
    let options = IndexOptions::default();
    let report = index(&folder.store, folder.path(), &options, &listener, &CancellationToken::new()).unwrap();
    assert_eq!(numbers(&report), [4, 1, 0, 2, 0, 1], "{report:?}");
    assert!(report.warnings[0].path.ends_with("broken.docx"), "{report:?}");
    assert_eq!(*heard.lock().unwrap(), report.warnings);
    assert_eq!(folder.found("apples"), ["good.md"]);
}

/// The skipped and failed files of a run.
fn told(folder: &Folder) -> (IndexReport, Vec<(String, String)>) {
    let skipped = Mutex::new(Vec::new());
    let listener = |progress: IndexProgress<'_>| {
        if let IndexProgress::Skipped(IndexWarning { path, reason }) = progress {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            skipped.lock().unwrap().push((name, reason.clone()));
        }
    };
    let options = IndexOptions::default();
    let report = index(&folder.store, folder.path(), &options, &listener, &CancellationToken::new()).unwrap();
    let mut skipped = skipped.into_inner().unwrap();
    skipped.sort();
    (report, skipped)
}

#[test]
fn skipped_files_are_named_with_the_reason() {
    let folder =
        Folder::with(&[("good.md", "apples"), ("image.bin", "\0\u{1}\u{2}\0"), ("empty.txt", " \n")]);
    folder.write("server.pem", "-----BEGIN");
    folder.write("scan.pdf", crate::read::samples::pdf(&[&[]]));
    let expected = [
        ("empty.txt", "the file has no text"),
        ("image.bin", "the file is binary, not text"),
        ("scan.pdf", "the file has no text"),
        (
            "server.pem",
            "the file has the name of a key or password file, or is in a directory of them; such files are never read",
        ),
    ]
    .map(|(name, reason)| (name.to_owned(), reason.to_owned()));
    for unchanged in [0, 1] {
        let (report, skipped) = told(&folder);
        assert_eq!(skipped, expected);
        assert_eq!(numbers(&report), [5, 1 - unchanged, unchanged, 4, 0, 0], "{report:?}");
    }
    assert!(
        folder.store.known_below("/").unwrap().keys().any(|path| path.ends_with("scan.pdf")),
        "not read again"
    );
    // When it gets a text, it is a file like any other.
    folder.write("scan.pdf", crate::read::samples::pdf(&[&["Pears at last"]]));
    assert_eq!(numbers(&told(&folder).0), [5, 1, 1, 3, 0, 0]);
    assert_eq!(folder.found("pears"), ["scan.pdf"]);
}

#[test]
fn a_file_in_hobs_own_directory_is_skipped_for_that_reason() {
    let folder = Folder::with(&[(".hob/a.md", "apples")]);
    let private = vec![folder.path().canonicalize().unwrap().join(".hob")];
    let report = folder.index_below(".hob", &IndexOptions { private, ..IndexOptions::default() });
    assert_eq!((report.indexed, report.skipped), (0, 1));
    let page = CatalogPage { limit: 9, ..CatalogPage::default() };
    let skipped = folder.store.skipped(&CollectionSet::All, &page).unwrap();
    assert_eq!(skipped[0].reason, "the file is in Hob's own directory, which is never read");
}

#[cfg(unix)]
#[test]
fn scanned_pages_are_named_until_a_program_can_read_them() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::with(&[]);
    folder.write("scan.pdf", crate::read::samples::scanned_pdf(250, 200, &[0x77; 50_000]));
    let reason = "1 page has no text: scanned. Tesseract reads such pages if it is installed".to_owned();
    for unchanged in [0, 1] {
        let (report, skipped) = told(&folder);
        assert_eq!(skipped, [("scan.pdf".to_owned(), reason.clone())]);
        assert_eq!((report.indexed, report.unchanged, report.partial), (1 - unchanged, unchanged, 1));
    }
    assert_eq!(folder.found("page"), ["scan.pdf"], "the other page has text");
    let programs = tempfile::tempdir().unwrap();
    let program = programs.path().join("tesseract");
    fs::write(&program, "#!/bin/sh\ncat > /dev/null\necho Pears at last\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut options = IndexOptions::default();
    options.limits.ocr = Some(crate::read::OcrProgram::at(program, None));
    for changed in [1, 0] {
        let report =
            index(&folder.store, folder.path(), &options, &|_| {}, &CancellationToken::new()).unwrap();
        assert_eq!((report.indexed, report.partial), (changed, 0));
    }
    assert_eq!(folder.found("pears"), ["scan.pdf"]);
}

#[test]
fn a_reader_that_panics_loses_its_file_only() {
    let files: Vec<(String, String)> =
        (0..40).map(|number| (format!("{number}.md"), format!("apples {number}"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let folder = Folder::with(&files);
    // Each takes so much of what may be in memory that none is left when two of them keep it.
    let huge = fs::File::create(folder.path().join("hostile.pdf")).unwrap();
    huge.set_len(MAX_BYTES).unwrap();
    fs::File::create(folder.path().join("hostile2.pdf")).unwrap().set_len(MAX_BYTES).unwrap();
    let options = IndexOptions::default();
    let looking = |path: &Path, metadata: &Metadata, known: &HashMap<String, SourceStamp>| {
        assert!(path.extension().is_some_and(|extension| extension == "md"), "a fault of the reader");
        look(path, metadata, known, &options)
    };
    let report =
        index_by(&looking, &folder.store, &options, folder.path(), &|_| {}, &CancellationToken::new())
            .unwrap();
    assert_eq!(numbers(&report), [42, 40, 0, 0, 0, 2], "{report:?}");
    for warning in &report.warnings {
        assert!(warning.path.to_string_lossy().contains("hostile"), "{warning:?}");
        assert_eq!(warning.reason, "its reader crashed; please report this");
    }
}

#[test]
fn a_file_whose_readers_are_busy_is_read_when_they_are_free() {
    let folder = Folder::with(&[("a.md", "apples"), ("b.md", "pears")]);
    let (options, busy, stop) = (IndexOptions::default(), Mutex::new(3_usize), CancellationToken::new());
    let is_busy = || {
        let mut left = busy.lock().unwrap();
        let was_busy = *left > 0;
        *left = left.saturating_sub(1);
        was_busy
    };
    let looking = |path: &Path, metadata: &Metadata, known: &HashMap<String, SourceStamp>| match is_busy() {
        true => Seen::Busy("too many wait".to_owned()),
        false => look(path, metadata, known, &options),
    };
    let index =
        |stop: &CancellationToken| index_by(&looking, &folder.store, &options, folder.path(), &|_| {}, stop);
    assert_eq!(numbers(&index(&stop).unwrap()), [2, 2, 0, 0, 0, 0]);
    assert_eq!(folder.found("apples"), ["a.md"]);
    // A stop ends the wait.
    *busy.lock().unwrap() = usize::MAX;
    folder.write("c.md", "plums");
    let stopping = thread::scope(|scope| {
        let stopping = scope.spawn(|| index(&stop));
        while *busy.lock().unwrap() == usize::MAX {
            thread::yield_now();
        }
        stop.cancel();
        stopping.join().unwrap()
    });
    assert!(matches!(stopping, Err(MemoryError::Stopped)), "{stopping:?}");
}

#[test]
fn a_file_that_breaks_later_keeps_its_indexed_content() {
    let folder = Folder::with(&[("a.json", "{\"fruit\": \"apples\"}")]);
    folder.index();
    // Too large a file would go; one that changes while it is read, or is half written, stays as it was.
    folder.write("b.docx", "not yet a document");
    assert_eq!(folder.index().failed, 1);
    assert_eq!(folder.found("apples"), ["a.json"]);
}

#[cfg(unix)]
#[test]
fn links_fifos_and_loops_do_not_block() {
    let folder = Folder::with(&[("a.md", "apples")]);
    std::os::unix::fs::symlink(folder.path(), folder.path().join("loop")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("dangling.md")).unwrap();
    let fifo = folder.path().join("fifo.md");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    assert_eq!(numbers(&folder.index()), [1, 1, 0, 0, 0, 0]);
}

#[test]
fn a_stopped_run_keeps_its_work_and_the_next_one_continues() {
    let files: Vec<(String, String)> =
        (0..2_000).map(|number| (format!("{number}.md"), format!("text {number}"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let folder = Folder::with(&files);
    let stop = CancellationToken::new();
    let listener = |progress: IndexProgress<'_>| {
        if matches!(progress, IndexProgress::Files(report) if report.files == 1_500) {
            stop.cancel();
        }
    };
    let stopped = index(&folder.store, folder.path(), &IndexOptions::default(), &listener, &stop);
    assert!(matches!(stopped, Err(MemoryError::Stopped)), "{stopped:?}");
    let rest = folder.index();
    assert!(rest.unchanged >= 1_500, "what was read is kept: {rest:?}");
    assert_eq!((rest.files, rest.indexed + rest.unchanged), (2_000, 2_000));
}

#[test]
fn a_missing_path_is_an_error_with_its_name() {
    let folder = Folder::with(&[]);
    let gone = folder.path().join("gone");
    let error = index(&folder.store, &gone, &IndexOptions::default(), &|_| {}, &CancellationToken::new());
    let text = error.unwrap_err().to_string();
    assert_eq!(text, format!("cannot index {}: there is no such file or directory", gone.display()));
}

#[test]
fn changes_and_stops_are_noticed() {
    let folder = Folder::with(&[("a.md", "apples")]);
    let watch = DirectoryWatch::start(folder.path(), Some(&folder.path().join("memory.db"))).unwrap();
    let stop = CancellationToken::new();
    let (noticed, heard) = channel();
    thread::scope(|scope| {
        let waiting = stop.clone();
        scope.spawn(move || {
            while watch.changed(&waiting) {
                noticed.send(()).unwrap();
            }
        });
        folder.write("new.md", "pears");
        heard.recv_timeout(Duration::from_secs(60)).expect("a change is noticed");
        stop.cancel();
        assert!(heard.recv().is_err(), "and then it ends");
    });
}
