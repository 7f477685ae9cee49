//! The library over a memory in a temporary directory.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::Ordering;

use hob_core::EventBus;
use hob_db::{LazyDatabase, Storage};
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::*;
use crate::context::ContextBudget;
use crate::index::IndexOptions;
use crate::read::ReadLimits;
use crate::relevance::RelevanceFloor;
use crate::service::MemoryOptions;
use crate::store::{CatalogPage, SkippedFile, StoredDocument};
use crate::testing::{Given, WordVectors};
use crate::types::{MemoryBackend, MemoryQuery};
use crate::{MIGRATIONS, NoEmbedder};

pub(super) struct Fixture {
    pub(super) home: TempDir,
    pub(super) notes: TempDir,
    pub(super) library: DocumentLibrary,
    changes: mpsc::UnboundedReceiver<CollectionName>,
}

pub(super) fn name(text: &str) -> CollectionName {
    CollectionName::parse(text).unwrap()
}

fn no_payer(payer: UploadPayer) -> PayerScope {
    panic!("no upload of these tests has a payer, but {payer:?} was found")
}

fn stored<'a>(
    collection: &'a CollectionName,
    name: &'a str,
    bytes: &'a [u8],
    payer: Option<&'a UploadPayer>,
) -> StoredUpload<'a> {
    StoredUpload { collection, name, bytes, same_name: SameName::Refuse, payer }
}

/// A library whose folders are always due.
pub(super) fn library_in(home: &Path) -> DocumentLibrary {
    library_with(home, |_| {})
}

/// The same with other options of its memory.
fn library_with(home: &Path, change: impl FnOnce(&mut MemoryOptions)) -> DocumentLibrary {
    let home = home.canonicalize().unwrap();
    let uploads = home.join("documents");
    let database: Storage = LazyDatabase::at(&home.join("memory.db"), &[MIGRATIONS]).into();
    let limits = ReadLimits { uploads: Some(uploads.clone()), ..ReadLimits::default() };
    let mut options = MemoryOptions {
        database,
        backend: Some(MemoryBackend::Sqlite),
        relevance: RelevanceFloor::default(),
        index: IndexOptions { limits, private: vec![home], ..IndexOptions::default() },
        context: ContextBudget { passages: 5, tokens: 1_500 },
        adds_context: false,
        embedders: Arc::new(NoEmbedder),
        bus: EventBus::new(),
    };
    change(&mut options);
    let watch = WatchOptions { poll: Duration::from_millis(10), interval: Duration::ZERO };
    DocumentLibrary::new(Arc::new(MemoryService::new(options)), DocumentLibraryOptions { uploads, watch })
}

impl Fixture {
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(change: impl FnOnce(&mut MemoryOptions)) -> Self {
        // Hob's usual home has a name that makes everything in it secret.
        let home = tempfile::Builder::new().prefix(".hob").tempdir().unwrap();
        let hob = home.path().join(".hob");
        fs::create_dir(&hob).unwrap();
        let library = library_with(&hob, change);
        let (sender, changes) = mpsc::unbounded_channel();
        library.on_change(move |collection| drop(sender.send(collection.clone())));
        Fixture { home, notes: tempfile::tempdir().unwrap(), library, changes }
    }

    pub(super) fn write(&self, file: &str, text: impl AsRef<[u8]>) {
        fs::write(self.notes.path().join(file), text).unwrap();
    }

    pub(super) fn folder(&self) -> String {
        self.notes.path().canonicalize().unwrap().to_str().unwrap().to_owned()
    }

    pub(super) async fn upload(
        &self,
        collection: &str,
        file: &str,
        text: &'static [u8],
    ) -> Result<IndexJob, DocumentLibraryError> {
        self.upload_of(None, name(collection), file, text).await
    }

    async fn upload_of(
        &self,
        payer: Option<UploadPayer>,
        collection: CollectionName,
        file: &str,
        bytes: &'static [u8],
    ) -> Result<IndexJob, DocumentLibraryError> {
        let upload = DocumentUpload { collection, name: file.to_owned(), bytes, may_replace: false, payer };
        self.library.upload(upload, Box::new(|work| work)).await
    }

    pub(super) async fn add_folder(&self, watched: bool) -> Result<DocumentFolder, DocumentLibraryError> {
        Ok(self.add_folder_at(self.notes.path(), watched).await?.0)
    }

    pub(super) async fn add_folder_at(
        &self,
        path: &Path,
        watched: bool,
    ) -> Result<(DocumentFolder, IndexJob), DocumentLibraryError> {
        let path = path.canonicalize().unwrap().to_str().unwrap().to_owned();
        let request = FolderRequest { path, collection: name("team"), watched };
        self.library.add_folder(request, Box::new(|work| work)).await
    }

    /// Waits for changes until the condition holds.
    pub(super) async fn until(&mut self, mut is_true: impl AsyncFnMut(&DocumentLibrary) -> bool) {
        while !is_true(&self.library).await {
            self.changes.recv().await.unwrap();
        }
    }

    /// The collections whose changes were announced since the last call.
    pub(super) fn announced(&mut self) -> BTreeSet<CollectionName> {
        std::iter::from_fn(|| self.changes.try_recv().ok()).collect()
    }

    pub(super) async fn finished(&mut self, id: u64) -> IndexJob {
        let find = |library: &DocumentLibrary| {
            library.jobs(&CollectionSet::All).into_iter().find(|job| job.id == id).unwrap()
        };
        self.until(async |library| find(library).finished.is_some()).await;
        find(&self.library)
    }

    pub(super) async fn documents(&self) -> Vec<StoredDocument> {
        documents(&self.library).await
    }

    pub(super) async fn skipped(&self) -> Vec<SkippedFile> {
        let page = CatalogPage { limit: 10, ..CatalogPage::default() };
        let read = self.library.memory().read(move |store| store.skipped(&CollectionSet::All, &page));
        read.await.unwrap().unwrap_or_default()
    }
}

async fn documents(library: &DocumentLibrary) -> Vec<StoredDocument> {
    let page = CatalogPage { limit: 10, ..CatalogPage::default() };
    let read = library.memory().read(move |store| store.documents(&CollectionSet::All, &page));
    read.await.unwrap().unwrap_or_default()
}

pub(super) async fn found(library: &DocumentLibrary, text: &str) -> usize {
    let query =
        MemoryQuery { text: text.to_owned(), top_k: 9, backend: None, collections: CollectionSet::All };
    library.memory().search(&query).await.map_or(0, |results| results.passages.len())
}

#[tokio::test]
async fn a_file_that_was_not_indexed_before_the_server_ended_is_indexed_after_the_next_start() {
    let mut fixture = Fixture::new();
    let text = b"# Gate\n\nThe code is 4711.";
    upload::store(fixture.library.uploads(), stored(&name("team"), "gate.md", text, None)).unwrap();
    fixture.library.start(no_payer);
    fixture.until(async |library| found(library, "4711").await == 1).await;
    let is_idle = |library: &DocumentLibrary| {
        library.jobs(&CollectionSet::All).iter().all(|job| job.finished.is_some())
    };
    fixture.until(async |library| is_idle(library)).await;
    assert_eq!(upload::pending(fixture.library.uploads()), []);
    fixture.library.close().await;
}

#[tokio::test]
async fn a_file_that_a_key_uploaded_is_indexed_on_its_account_after_the_next_start() {
    let mut fixture = Fixture::new();
    let uploads = fixture.library.uploads().to_owned();
    let [known, gone] = ["known", "gone"].map(|key| UploadPayer { key: key.into(), rule: None });
    let team = name("team");
    upload::store(&uploads, stored(&team, "gate.md", b"The code is 4711.", Some(&known))).unwrap();
    upload::store(&uploads, stored(&team, "key.md", b"The key is in the shed.", Some(&gone))).unwrap();
    let (sender, mut charged) = mpsc::unbounded_channel();
    fixture.library.start(move |payer| {
        let sender = sender.clone();
        Box::pin(async move {
            let scope: JobScope = Box::new(move |work| {
                Box::pin(async move {
                    work.await;
                    sender.send("charged").unwrap();
                })
            });
            (payer.key == "known").then_some(scope)
        })
    });
    let faults = |library: &DocumentLibrary| -> Vec<Option<String>> {
        let jobs = library.jobs(&CollectionSet::All);
        jobs.into_iter().filter(|job| job.finished.is_some()).map(|job| job.fault).collect()
    };
    fixture.until(async |library| faults(library).len() == 2).await;
    let reason = "the key that uploaded it is no longer valid. The owner can upload it again";
    assert_eq!(faults(&fixture.library), [Some(reason.to_owned()), None]);
    assert_eq!((found(&fixture.library, "4711").await, found(&fixture.library, "shed").await), (1, 0));
    assert_eq!(charged.recv().await, Some("charged"));
    assert_eq!(upload::pending(&uploads), []);
    fixture.library.close().await;
}

#[tokio::test]
async fn a_key_pays_for_the_vectors_of_its_own_document_only() {
    let vectors = Arc::new(WordVectors::default());
    let embedders = Arc::new(Given(Arc::clone(&vectors)));
    let mut fixture = Fixture::with(|options| {
        options.backend = Some(MemoryBackend::Hybrid);
        options.embedders = embedders;
    });
    vectors.is_down.store(true, Ordering::Relaxed);
    let without = fixture.upload("team", "gate.md", b"The code is 4711.").await.unwrap();
    assert_eq!(fixture.finished(without.id).await.state, JobState::Failed);
    vectors.is_down.store(false, Ordering::Relaxed);

    let ana = UploadPayer { key: "ana".into(), rule: None };
    let job = fixture.upload_of(Some(ana), name("team"), "door.md", b"The door is old.").await.unwrap();
    let job = fixture.finished(job.id).await;
    assert_eq!((job.state, job.vectors, job.vectors_total), (JobState::Done, 1, 1));
    assert_eq!(vectors.embedded.load(Ordering::Relaxed), 1);

    let job = fixture.upload("team", "roof.md", b"The roof leaks.").await.unwrap();
    let job = fixture.finished(job.id).await;
    assert_eq!(
        (job.state, job.vectors),
        (JobState::Done, 2),
        "the owner's upload makes up for the first one"
    );
    fixture.library.close().await;
}

#[tokio::test]
async fn a_library_that_waits_for_the_keys_of_uploads_can_be_closed() {
    let fixture = Fixture::new();
    let uploads = fixture.library.uploads().to_owned();
    let payer = UploadPayer { key: "ana".into(), rule: None };
    upload::store(&uploads, stored(&name("team"), "gate.md", b"The code is 4711.", Some(&payer))).unwrap();
    let (sender, mut asked) = mpsc::unbounded_channel();
    fixture.library.start(move |_| {
        sender.send(()).unwrap();
        Box::pin(std::future::pending())
    });
    asked.recv().await.unwrap();
    fixture.library.close().await;
    assert_eq!(upload::pending(&uploads).len(), 1, "the next start asks again");
}

#[tokio::test]
async fn a_file_that_is_not_text_is_listed_with_the_reason() {
    let mut fixture = Fixture::new();
    let job = fixture.upload("team", "photo.bin", &[0, 159, 146, 150, 0, 1, 2]).await.unwrap();
    let job = fixture.finished(job.id).await;
    let reason = "the file is binary, not text";
    assert_eq!((job.state, job.skipped, job.fault.as_deref()), (JobState::Done, 1, Some(reason)));
    let skipped = fixture.skipped().await;
    assert_eq!(skipped.len(), 1);
    assert_eq!((skipped[0].collection.as_str(), skipped[0].reason.as_str()), ("team", reason));
    fixture.library.forget(&skipped[0].path, CollectionSet::All).await.unwrap();
    assert_eq!(fixture.skipped().await, []);
    assert!(!Path::new(&skipped[0].path).exists());
    fixture.library.close().await;
}

#[tokio::test]
async fn a_watched_folder_is_kept_up_to_date_also_after_a_restart() {
    let mut fixture = Fixture::new();
    fixture.write("a.md", "The boiler is old.");
    let folder = fixture.add_folder(true).await.unwrap();
    fixture.until(async |library| found(library, "boiler").await == 1).await;
    fixture.library.start(no_payer);
    fixture.write("b.md", "The roof leaks.");
    fixture.until(async |library| found(library, "roof").await == 1).await;
    let path = fixture.documents().await[0].path.clone();
    for spelled in [path.clone(), path.replace("/a.md", "/./a.md")] {
        let refused = fixture.library.forget(&spelled, CollectionSet::All).await;
        assert!(matches!(refused, Err(DocumentLibraryError::Watched { .. })), "{spelled}");
    }
    fixture.library.close().await;

    // The next server.
    fixture.library = library_in(&fixture.home.path().join(".hob"));
    let (sender, changes) = mpsc::unbounded_channel();
    fixture.library.on_change(move |collection| drop(sender.send(collection.clone())));
    fixture.changes = changes;
    fixture.library.start(no_payer);
    fs::remove_file(fixture.notes.path().join("a.md")).unwrap();
    fixture.until(async |library| documents(library).await.len() == 1).await;
    let folders = fixture.library.folders().await.unwrap();
    assert_eq!((folders.len(), folders[0].id, &folders[0].fault), (1, folder.id, &None));
    fixture.library.remove_folder(folder.id).await.unwrap();
    assert_eq!((fixture.documents().await, fixture.library.folders().await.unwrap()), (vec![], vec![]));
    assert!(fixture.notes.path().join("b.md").exists(), "files of the user stay");
    fixture.library.close().await;
}

#[tokio::test]
async fn a_folder_that_is_not_watched_is_indexed_once() {
    let mut fixture = Fixture::new();
    fixture.library.start(no_payer);
    fixture.write("a.md", "The boiler is old.");
    let folder = fixture.add_folder(false).await.unwrap();
    fixture.until(async |library| found(library, "boiler").await == 1).await;
    fixture.write("b.md", "The roof leaks.");
    // Watching it finds the change, so it was not found before only because nothing looked.
    assert_eq!(found(&fixture.library, "roof").await, 0);
    let watched = fixture.library.set_watched(folder.id, true).await.unwrap();
    assert!(watched.watched);
    fixture.until(async |library| found(library, "roof").await == 1).await;
    assert!(matches!(fixture.library.set_watched(99, true).await, Err(DocumentLibraryError::NoFolder)));
    fixture.library.close().await;
}

#[tokio::test]
async fn hobs_own_files_and_what_is_no_folder_are_refused() {
    let fixture = Fixture::new();
    fixture.write("a.md", "text");
    let hob = fixture.home.path().join(".hob").to_str().unwrap().to_owned();
    let file = fixture.notes.path().join("a.md").to_str().unwrap().to_owned();
    for wrong in ["notes", "", "/nowhere/at/all", &hob, &file] {
        let request = FolderRequest { path: wrong.to_owned(), collection: name("team"), watched: false };
        let refused = fixture.library.add_folder(request, Box::new(|work| work)).await;
        assert!(matches!(refused, Err(DocumentLibraryError::Folder(_))), "{wrong}");
    }
    assert_eq!(fixture.library.jobs(&CollectionSet::All), []);
}

#[tokio::test]
async fn a_folder_that_is_removed_while_it_is_indexed_leaves_nothing() {
    let mut fixture = Fixture::new();
    for number in 0..200 {
        fixture.write(&format!("{number}.md"), format!("The boiler {number} is old."));
    }
    let folder = fixture.add_folder(false).await.unwrap();
    let has_begun = |job: &IndexJob| job.state != JobState::Waiting;
    fixture.until(async |library| library.jobs(&CollectionSet::All).iter().all(has_begun)).await;
    fixture.library.remove_folder(folder.id).await.unwrap();
    assert_eq!((fixture.documents().await, fixture.library.folders().await.unwrap()), (vec![], vec![]));
    fixture.library.close().await;
    assert_eq!(fixture.documents().await, []);
}

#[tokio::test]
async fn an_upload_that_is_refused_leaves_no_file_and_no_job() {
    let mut fixture = Fixture::new();
    let library = fixture.library.clone();
    let add =
        || library.inner.jobs.lock().add(JobKind::Folder, name("other"), "/notes".into(), SystemTime::now());
    let first = add().unwrap();
    while add().is_ok() {}
    let refused = fixture.upload("team", "gate.md", b"The code is 4711.").await;
    assert!(matches!(refused, Err(DocumentLibraryError::Busy)));
    assert!(!library.uploads().exists(), "nothing is stored");

    library.inner.jobs.lock().finish(first.id, None, SystemTime::now());
    let job = fixture.upload("team", "gate.md", b"The code is 4711.").await.unwrap();
    assert_eq!(fixture.finished(job.id).await.state, JobState::Done);
    let again = fixture.upload("team", "gate.md", b"new").await;
    assert!(matches!(again, Err(DocumentLibraryError::Exists { .. })));
    let team = library.jobs(&CollectionSet::of(name("team")));
    assert_eq!(team.iter().map(|job| job.id).collect::<Vec<_>>(), [job.id], "its place is free again");
    library.close().await;
}

#[tokio::test]
async fn removing_a_folder_keeps_the_documents_of_folders_inside_it() {
    let mut fixture = Fixture::new();
    let work = fixture.notes.path().join("work");
    fs::create_dir(&work).unwrap();
    fixture.write("a.md", "The boiler is old.");
    fixture.write("work/b.md", "The roof leaks.");
    let (outer, first) = fixture.add_folder_at(fixture.notes.path(), false).await.unwrap();
    let (inner, second) = fixture.add_folder_at(&work, false).await.unwrap();
    for job in [first, second] {
        fixture.finished(job.id).await;
    }
    fixture.library.remove_folder(outer.id).await.unwrap();
    let left: Vec<String> = fixture.documents().await.into_iter().map(|document| document.path).collect();
    assert_eq!(left, [format!("{}/b.md", inner.path)]);
    fixture.library.remove_folder(inner.id).await.unwrap();
    assert_eq!(fixture.documents().await, []);
    fixture.library.close().await;
}

#[tokio::test]
async fn the_wait_for_another_job_does_not_count_as_the_run_of_a_folder() {
    let mut fixture = Fixture::new();
    fixture.write("a.md", "The boiler is old.");
    let library = fixture.library.clone();
    let turn = library.inner.turn.acquire().await.unwrap();
    let (_, job) = fixture.add_folder_at(fixture.notes.path(), true).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let began = Instant::now();
    drop(turn);
    fixture.finished(job.id).await;
    let longest = began.elapsed() * 20;
    let folder = library.folders().await.unwrap().remove(0);
    let rest = folder.due.time().duration_since(folder.checked.unwrap().time()).unwrap();
    assert!(rest <= longest, "it rests for {rest:?} after a run of less than {:?}", longest / 20);
    let rest_after = |hours: u64| library.inner.rest_after(Duration::from_secs(hours * 3600)).as_secs();
    assert_eq!((rest_after(0), rest_after(1)), (0, 3600), "and no longer than an hour");
    library.close().await;
}
