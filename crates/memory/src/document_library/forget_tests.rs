//! Forgetting in the library: documents, directories and collections, with their jobs and uploaded files.

use std::fs;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use hob_testkit::CapturedLog;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::document_library::tests::{Fixture, found, library_in, name};
use crate::document_library::{JobEnd, JobKind, JobState};
use crate::embed::{Embedder, EmbedderDownload, EmbedderSource};
use crate::service::IndexRequest;
use crate::store::NewFolder;
use crate::testing::{Given, WordVectors};
use crate::types::{MemoryBackend, MemoryError};

/// A run into a collection that nothing stops.
fn indexing(collection: &str) -> IndexRequest {
    let stop = CancellationToken::new();
    IndexRequest { backend: None, collection: name(collection), listener: Arc::new(|_| {}), stop }
}

#[tokio::test]
async fn an_uploaded_document_is_found_and_forgotten_with_its_file() {
    let mut fixture = Fixture::new();
    let job = fixture.upload("team", "gate.md", b"# Gate\n\nThe code is 4711.").await.unwrap();
    assert_eq!((job.state, job.kind), (JobState::Waiting, JobKind::Upload));
    let job = fixture.finished(job.id).await;
    assert_eq!((job.state, job.indexed, job.fault), (JobState::Done, 1, None));
    assert_eq!(found(&fixture.library, "4711").await, 1);
    let document = fixture.documents().await.remove(0);
    let stored = fixture.library.uploads().join("team/gate.md");
    assert_eq!((Path::new(&document.path), document.chunks), (stored.as_path(), 1));
    assert!(stored.starts_with(fixture.home.path().canonicalize().unwrap()));

    assert!(matches!(
        fixture.upload("team", "gate.md", b"new").await,
        Err(DocumentLibraryError::Exists { .. })
    ));
    let gone = fixture.library.forget(&document.path, CollectionSet::All).await.unwrap();
    assert_eq!(gone, ForgetReport { sources: 1, chunks: 1, folders: 0, files: 1 });
    assert!(!stored.exists());
    assert_eq!(found(&fixture.library, "4711").await, 0);
    fixture.library.close().await;
}

#[tokio::test]
async fn a_collection_is_forgotten_with_its_uploads_and_folders() {
    let mut fixture = Fixture::new();
    fixture.write("a.md", "The boiler is old.");
    fixture.add_folder(true).await.unwrap();
    let team = fixture.upload("team", "gate.md", b"The code is 4711.").await.unwrap();
    let other = fixture.upload("other", "door.md", b"The code is 4712.").await.unwrap();
    for id in [team.id, other.id] {
        fixture.finished(id).await;
    }
    fixture.until(async |library| found(library, "boiler").await == 1).await;
    let gone = fixture.library.forget_collection(name("team")).await.unwrap();
    assert_eq!(gone, ForgetReport { sources: 2, chunks: 2, folders: 1, files: 1 });
    assert_eq!(
        fixture.documents().await.iter().map(|one| &one.collections[0]).collect::<Vec<_>>(),
        ["other"]
    );
    assert_eq!(fixture.library.folders().await.unwrap(), []);
    assert!(!fixture.library.uploads().join("team").exists());
    assert!(fixture.notes.path().join("a.md").exists(), "files of the user stay");
    fixture.library.close().await;
}

#[tokio::test]
async fn what_is_removed_does_not_come_back_from_a_job_that_waits() {
    let mut fixture = Fixture::new();
    fixture.write("a.md", "The boiler is old.");
    let library = fixture.library.clone();
    let turn = library.inner.turn.acquire().await.unwrap();
    let folder = fixture.add_folder(false).await.unwrap();
    library.remove_folder(folder.id).await.unwrap();
    assert_eq!(library.jobs(&CollectionSet::All), []);

    let gate = fixture.upload("team", "gate.md", b"The code is 4711.").await.unwrap();
    let roof = fixture.upload("team", "roof.md", b"The roof leaks.").await.unwrap();
    let door = fixture.upload("other", "door.md", b"The code is 4712.").await.unwrap();
    library.forget(gate.path.to_str().unwrap(), CollectionSet::All).await.unwrap();
    let waiting: Vec<u64> = library.jobs(&CollectionSet::All).iter().map(|job| job.id).collect();
    assert_eq!(waiting, [door.id, roof.id]);
    library.forget_collection(name("team")).await.unwrap();
    let waiting: Vec<u64> = library.jobs(&CollectionSet::All).iter().map(|job| job.id).collect();
    assert_eq!(waiting, [door.id]);
    assert_eq!((gate.path.exists(), roof.path.exists(), door.path.exists()), (false, false, true));

    drop(turn);
    assert_eq!(fixture.finished(door.id).await.state, JobState::Done);
    let paths: Vec<String> = fixture.documents().await.into_iter().map(|one| one.path).collect();
    assert_eq!(paths, [door.path.to_str().unwrap()]);
    library.close().await;
}

#[tokio::test]
async fn an_uploaded_file_is_deleted_only_with_its_own_collection() {
    let mut fixture = Fixture::new();
    let own = fixture.upload("private", "a.md", b"The code is 4711.").await.unwrap();
    let team = fixture.upload("Team", "b.md", b"The roof leaks.").await.unwrap();
    for id in [own.id, team.id] {
        assert_eq!(fixture.finished(id).await.state, JobState::Done);
    }
    let uploads = fixture.library.uploads().to_str().unwrap().to_owned();
    assert_eq!(team.path, Path::new(&uploads).join("+team/b.md"));
    for spelled in ["private/a.md", "private/./a.md", "+team/../private/a.md"] {
        let path = format!("{uploads}/{spelled}");
        let gone = fixture.library.forget(&path, CollectionSet::of(name("Team"))).await.unwrap();
        assert_eq!(gone, ForgetReport::default(), "{spelled}");
        assert!(own.path.exists(), "{spelled}");
    }
    assert_eq!(fixture.documents().await.len(), 2);
    let both = CollectionSet::Only(vec![name("Team"), name("private")]);
    let gone = fixture.library.forget(&format!("{uploads}/private/./a.md"), both).await.unwrap();
    assert_eq!(gone, ForgetReport { sources: 1, chunks: 1, folders: 0, files: 1 });
    assert_eq!((own.path.exists(), team.path.exists()), (false, true));
    fixture.library.close().await;
}

#[tokio::test]
async fn every_collection_that_forgetting_changes_is_announced() {
    let mut fixture = Fixture::new();
    for (collection, file, text) in [
        ("team", "gate.md", b"The code is 4711.".as_slice()),
        ("other", "door.md", b"The code is 4712.".as_slice()),
        ("pictures", "photo.bin", [0, 159, 146, 150, 0].as_slice()),
    ] {
        let job = fixture.upload(collection, file, text).await.unwrap();
        fixture.finished(job.id).await;
    }
    fixture.write("a.md", "The boiler is old.");
    let library = fixture.library.clone();
    library.memory().index_with(fixture.notes.path(), indexing("notes")).await.unwrap();
    fixture.announced();
    library.forget(library.uploads().to_str().unwrap(), CollectionSet::All).await.unwrap();
    assert_eq!(fixture.announced(), BTreeSet::from(["other", "pictures", "team"].map(name)));

    let place = fixture.notes.path().join("empty");
    fs::create_dir(&place).unwrap();
    let (_, job) = fixture.add_folder_at(&place, false).await.unwrap();
    fixture.finished(job.id).await;
    fixture.announced();
    library.forget(&fixture.folder(), CollectionSet::All).await.unwrap();
    assert_eq!(fixture.announced(), BTreeSet::from(["notes", "team"].map(name)));
    library.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_uploaded_while_documents_are_forgotten_stays() {
    for is_collection in [false, true] {
        let mut fixture = Fixture::new();
        let library = fixture.library.clone();
        let (inner, place) = (&library.inner, library.uploads().join("team"));
        // Forgetting waits for the end of this job.
        let last = place.join("last.md");
        let last = inner.jobs.lock().add(JobKind::Upload, name("team"), last, SystemTime::now()).unwrap();
        let stop = inner.jobs.lock().stop_of(last.id);
        let forget = async {
            match is_collection {
                false => library.forget(place.to_str().unwrap(), CollectionSet::All).await,
                true => library.forget_collection(name("team")).await,
            }
        };
        let upload = async {
            stop.cancelled().await;
            let mut upload = pin!(fixture.upload("team", "gate.md", b"The code is 4711."));
            // Time passes only when the upload waits or has ended.
            let ended = tokio::time::timeout(Duration::from_secs(1), &mut upload).await;
            inner.jobs.lock().finish(last.id, None, SystemTime::now());
            match ended {
                Ok(ended) => ended,
                Err(_) => upload.await,
            }
        };
        let (forgotten, uploaded) = tokio::join!(forget, upload);
        assert_eq!(forgotten.unwrap(), ForgetReport::default());
        let job = fixture.finished(uploaded.unwrap().id).await;
        assert_eq!((job.state, job.path.exists()), (JobState::Done, true));
        assert_eq!(found(&library, "4711").await, 1);
        library.close().await;
    }
}

#[tokio::test]
async fn uploads_below_a_watched_folder_are_forgotten_only_by_themselves() {
    let mut fixture = Fixture::new();
    let files = [("gate.md", b"The code is 4711.".as_slice()), ("photo.bin", &[0, 159, 146, 150, 0])];
    for (file, text) in files {
        let job = fixture.upload("team", file, text).await.unwrap();
        fixture.finished(job.id).await;
    }
    let place = fixture.home.path().to_owned();
    fs::write(place.join("roof.md"), "The roof leaks.").unwrap();
    let (folder, job) = fixture.add_folder_at(&place, true).await.unwrap();
    let job = fixture.finished(job.id).await;
    assert_eq!((job.indexed, job.removed), (1, 0));
    assert_eq!(found(&fixture.library, "4711").await, 1);

    fixture.library.remove_folder(folder.id).await.unwrap();
    let left: Vec<String> = fixture.documents().await.into_iter().map(|document| document.path).collect();
    let upload = fixture.library.uploads().join("team/gate.md");
    assert_eq!((left, fixture.skipped().await.len()), (vec![upload.to_str().unwrap().to_owned()], 1));

    let (_, job) = fixture.add_folder_at(&place, true).await.unwrap();
    fixture.finished(job.id).await;
    let forgotten = fixture.library.forget(upload.to_str().unwrap(), CollectionSet::All).await.unwrap();
    assert_eq!((forgotten.sources, upload.exists()), (1, false));
    let above = place.parent().unwrap().to_str().unwrap();
    let refused = fixture.library.forget(above, CollectionSet::All).await;
    assert!(matches!(refused, Err(DocumentLibraryError::Watched { .. })), "the folder would add them again");
    fixture.library.close().await;
}

#[tokio::test]
async fn what_a_job_over_a_folder_above_would_add_again_is_not_forgotten() {
    let mut fixture = Fixture::new();
    let upload = fixture.upload("team", "gate.md", b"The code is 4711.").await.unwrap();
    fixture.finished(upload.id).await;
    let place = fixture.home.path().canonicalize().unwrap();
    let roof = place.join("roof.md");
    fs::write(&roof, "The roof leaks.").unwrap();
    let (_, job) = fixture.add_folder_at(&place, false).await.unwrap();
    fixture.finished(job.id).await;

    let library = fixture.library.clone();
    let turn = library.inner.turn.acquire().await.unwrap();
    let (_, job) = fixture.add_folder_at(&place, false).await.unwrap();
    let roof = roof.to_str().unwrap();
    let refused = library.forget(roof, CollectionSet::All).await;
    assert!(
        matches!(&refused, Err(DocumentLibraryError::Indexing { folder }) if *folder == place),
        "{refused:?}"
    );
    assert_eq!((fixture.documents().await.len(), library.folders().await.unwrap().len()), (2, 1));
    let other = library.forget(roof, CollectionSet::of(name("other"))).await.unwrap();
    assert_eq!(other, ForgetReport::default());
    let gone = library.forget(upload.path.to_str().unwrap(), CollectionSet::All).await.unwrap();
    assert_eq!(gone, ForgetReport { sources: 1, chunks: 1, folders: 0, files: 1 });

    drop(turn);
    assert_eq!(fixture.finished(job.id).await.state, JobState::Done, "it was not stopped");
    assert_eq!(library.forget(roof, CollectionSet::All).await.unwrap().sources, 1);
    library.close().await;
}

#[tokio::test]
async fn the_documents_of_a_folder_whose_job_is_stopped_are_counted() {
    for is_collection in [false, true] {
        let mut fixture = Fixture::new();
        fixture.write("a.md", "The boiler is old.");
        let (folder, job) = fixture.add_folder_at(fixture.notes.path(), false).await.unwrap();
        fixture.finished(job.id).await;
        let library = fixture.library.clone();
        let turn = library.inner.turn.acquire().await.unwrap();
        fixture.add_folder(false).await.unwrap();
        let gone = match is_collection {
            false => library.forget(&folder.path, CollectionSet::All).await.unwrap(),
            true => library.forget_collection(name("team")).await.unwrap(),
        };
        assert_eq!(gone, ForgetReport { sources: 1, chunks: 1, folders: 1, files: 0 });
        drop(turn);
        library.close().await;
    }
}

#[tokio::test]
async fn a_watched_folder_that_lost_its_files_can_be_forgotten() {
    let mut fixture = Fixture::new();
    fixture.write("a.md", "The boiler is old.");
    let (folder, job) = fixture.add_folder_at(fixture.notes.path(), true).await.unwrap();
    fixture.finished(job.id).await;
    fs::remove_file(fixture.notes.path().join("a.md")).unwrap();
    let forgotten = fixture.library.forget(&folder.path, CollectionSet::All).await.unwrap();
    assert_eq!(forgotten.sources, 1);
    fixture.library.close().await;
}

#[tokio::test]
async fn forgetting_a_directory_deletes_what_was_uploaded_into_it() {
    let mut fixture = Fixture::new();
    for (collection, file, text) in [
        ("team", "gate.md", b"The code is 4711.".as_slice()),
        ("team", "photo.bin", [0, 159, 146, 150, 0].as_slice()),
        ("team", "shared.md", b"The roof leaks.".as_slice()),
        ("other", "door.md", b"The code is 4712.".as_slice()),
    ] {
        let job = fixture.upload(collection, file, text).await.unwrap();
        assert_eq!(fixture.finished(job.id).await.state, JobState::Done, "{file}");
    }
    let (library, uploads) = (fixture.library.clone(), fixture.library.uploads().to_owned());
    let there = || {
        ["team/gate.md", "team/photo.bin", "team/shared.md", "other/door.md"]
            .map(|file| uploads.join(file).exists())
    };
    library.memory().index_with(&uploads.join("team/shared.md"), indexing("other")).await.unwrap();
    let above = fixture.home.path().to_str().unwrap();
    let gone = library.forget(above, CollectionSet::of(name("team"))).await.unwrap();
    assert_eq!(gone, ForgetReport { sources: 2, chunks: 2, folders: 0, files: 2 });
    assert_eq!(there(), [false, false, true, true], "one is in another collection, too");
    assert_eq!(fixture.skipped().await, []);

    let gone = library.forget(above, CollectionSet::of(name("other"))).await.unwrap();
    assert_eq!(gone, ForgetReport { sources: 2, chunks: 2, folders: 0, files: 2 });
    assert_eq!(fs::read_dir(&uploads).unwrap().count(), 0, "its last collection and the notes are gone, too");
    assert_eq!(library.forget(above, CollectionSet::All).await.unwrap(), ForgetReport::default());
    library.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_folder_that_another_process_removes_or_forgets_is_not_indexed_further_and_leaves_nothing() {
    for watched in [true, false] {
        let fixture = Fixture::new();
        fixture.write("a.md", "The boiler is old.");
        let (inner, path) = (Arc::clone(&fixture.library.inner), fixture.folder());
        let new = NewFolder { path: path.clone(), collection: name("team"), watched };
        let saved = inner.memory.write(move |store| store.save_folder(&new, SystemTime::now())).await;
        let folder = saved.unwrap();
        let job = inner.jobs.lock().add(JobKind::Folder, name("team"), path.into(), SystemTime::now());
        let job = job.unwrap();
        let stop = inner.jobs.lock().stop_of(job.id);
        let other = library_in(&fixture.home.path().join(".hob"));
        let work = async {
            match watched {
                true => drop(other.remove_folder(folder.id).await.unwrap()),
                false => {
                    let gone = other.forget(&folder.path, CollectionSet::All).await.unwrap();
                    assert_eq!(gone, ForgetReport { folders: 1, ..ForgetReport::default() });
                }
            }
            let stopped = tokio::time::timeout(Duration::from_secs(600), stop.cancelled()).await;
            stopped.expect("the job is stopped");
            // What it still writes.
            let indexed = inner.memory.index_with(&job.path, indexing("team")).await.unwrap().indexed;
            assert_eq!(indexed, 1);
            JobEnd { fault: None, took: Duration::ZERO }
        };
        inner.holding(&job, &folder, Box::pin(work)).await;
        assert_eq!((fixture.documents().await, other.folders().await.unwrap()), (vec![], vec![]));
    }
}

#[tokio::test]
async fn forgetting_does_not_wait_for_ever_for_a_job_that_panics() {
    struct Panics;

    #[async_trait]
    impl EmbedderSource for Panics {
        async fn embedder(&self, _: EmbedderDownload) -> Result<Embedder, MemoryError> {
            panic!("no vectors today")
        }
    }

    let mut fixture = Fixture::with(|options| {
        options.backend = Some(MemoryBackend::Hybrid);
        options.embedders = Arc::new(Panics);
    });
    let job = fixture.upload("team", "gate.md", b"The code is 4711.").await.unwrap();
    let job = fixture.finished(job.id).await;
    assert_eq!(job.state, JobState::Failed);
    assert!(job.fault.as_deref().is_some_and(|fault| fault.contains("an error in Hob")), "{job:?}");
    fixture.library.forget(job.path.to_str().unwrap(), CollectionSet::All).await.unwrap();
    fixture.library.close().await;
}

#[tokio::test]
async fn only_an_upload_that_can_be_indexed_again_is_logged() {
    let (log, _guard) = CapturedLog::of_thread();
    let vectors = Arc::new(WordVectors::default());
    vectors.is_down.store(true, Ordering::Relaxed);
    let embedders = Arc::new(Given(vectors));
    let mut fixture = Fixture::with(|options| {
        options.backend = Some(MemoryBackend::Hybrid);
        options.embedders = embedders;
    });
    let library = fixture.library.clone();
    let turn = library.inner.turn.acquire().await.unwrap();
    let job = fixture.upload("team", "gate.md", b"The code is 4711.").await.unwrap();
    let other = library_in(&fixture.home.path().join(".hob"));
    other.forget(job.path.to_str().unwrap(), CollectionSet::All).await.unwrap();
    drop(turn);
    fixture.until(async |library| library.jobs(&CollectionSet::All).is_empty()).await;
    assert_eq!(log.lines("is not indexed"), [""; 0]);

    let job = fixture.upload("team", "door.md", b"The code is 4712.").await.unwrap();
    assert_eq!(fixture.finished(job.id).await.state, JobState::Failed);
    let lines = log.lines("is not indexed");
    assert!(lines.len() == 1 && lines[0].contains("door.md"), "{lines:?}");
    library.close().await;
}

#[cfg(unix)]
#[tokio::test]
async fn an_upload_that_another_process_forgets_while_it_is_read_leaves_nothing() {
    use std::os::unix::fs::PermissionsExt;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    // A program that says when it begins to read, and waits.
    let programs = tempfile::tempdir().unwrap();
    let [program, begun, go] = ["tesseract", "begun", "go"].map(|name| programs.path().join(name));
    for fifo in [&begun, &go] {
        mknodat(CWD, fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 'tesseract 5' && exit\ncat > /dev/null\n\
         echo > '{}'\ncat '{}'\necho The code is 4711.\n",
        begun.display(),
        go.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();

    let mut fixture =
        Fixture::with(|options| options.index.limits.ocr = Some(crate::read::OcrProgram::at(program, None)));
    let picture = include_bytes!("../../tests/files/scanned_text.png");
    let job = fixture.upload("team", "scan.png", picture).await.unwrap();
    blocking(move || fs::read(begun)).await.unwrap().unwrap();
    let other = library_in(&fixture.home.path().join(".hob"));
    let gone = other.forget(job.path.to_str().unwrap(), CollectionSet::All).await.unwrap();
    assert_eq!(gone, ForgetReport { files: 1, ..ForgetReport::default() });
    blocking(move || fs::write(go, "")).await.unwrap().unwrap();
    let is_idle = |library: &DocumentLibrary| {
        library.jobs(&CollectionSet::All).iter().all(|job| job.finished.is_some())
    };
    fixture.until(async |library| is_idle(library)).await;
    assert_eq!((found(&fixture.library, "4711").await, fixture.documents().await), (0, vec![]));
    assert_eq!(fixture.library.jobs(&CollectionSet::All), []);
    fixture.library.close().await;
}
