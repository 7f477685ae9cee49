//! The memory as the floors above see it.

use std::fs;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;

use super::*;
use crate::NoEmbedder;
use crate::testing::{Given, WordVectors};

struct House {
    root: tempfile::TempDir,
    memory: Arc<Documents>,
    vectors: Arc<WordVectors>,
    bus: EventBus,
}

impl House {
    fn new(backend: MemoryBackend) -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("notes")).unwrap();
        let (vectors, bus) = (Arc::new(WordVectors::default()), EventBus::new());
        let memory = Documents::new(DocumentParts {
            database: root.path().join("memory.db"),
            backend,
            options: IndexOptions::default(),
            context: None,
            embedders: Arc::new(Given(Arc::clone(&vectors))),
            bus: bus.clone(),
        });
        let house = House { root, memory: Arc::new(memory), vectors, bus };
        house.write("car.md", "# Garage\n\nThe car needs new tyres in spring.");
        house.write("doctor.md", "# Health\n\nThe doctor is called Ann Miller.");
        house
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.notes().join(name), text).unwrap();
    }

    fn notes(&self) -> PathBuf {
        self.root.path().join("notes")
    }

    async fn ask(&self, text: &str, backend: MemoryBackend) -> Result<Vec<String>, MemoryError> {
        let query = MemoryQuery { text: text.into(), top_k: 1, backend: Some(backend) };
        let found = self.memory.search(&query).await?;
        assert_eq!(found.backend, backend);
        Ok(found.passages.iter().map(|passage| passage.location().to_string()).collect())
    }

    fn file(&self, name: &str) -> String {
        self.notes().canonicalize().unwrap().join(name).display().to_string()
    }
}

#[tokio::test]
async fn a_synonym_is_found_by_meaning_and_a_name_by_words_and_both_by_both() {
    let house = House::new(MemoryBackend::Hybrid);
    let report = house.memory.index(&house.notes()).await.unwrap();
    assert_eq!((report.indexed, report.chunks, report.vectors), (2, 2, 2));
    let car = [house.file("car.md:1")];
    let doctor = [house.file("doctor.md:1")];
    assert_eq!(house.ask("automobile", MemoryBackend::Sqlite).await.unwrap(), [""; 0]);
    assert_eq!(house.ask("my automobile", MemoryBackend::Vector).await.unwrap(), car);
    assert_eq!(house.ask("automobile", MemoryBackend::Hybrid).await.unwrap(), car);
    assert_eq!(house.ask("Miller", MemoryBackend::Sqlite).await.unwrap(), doctor);
    assert_eq!(house.ask("Ann Miller, physician", MemoryBackend::Hybrid).await.unwrap(), doctor);
}

#[tokio::test]
async fn what_has_nothing_to_do_with_the_question_is_not_told() {
    let house = House::new(MemoryBackend::Hybrid);
    house.write("mail.md", "# Mail\n\nHi Ann, 2+2 makes 4. Thanks, and hello to you.");
    house.memory.index(&house.notes()).await.unwrap();
    let told = async |text: &str, backend| {
        let query = MemoryQuery { text: text.into(), top_k: 5, backend: Some(backend) };
        let found = house.memory.search_for(&query, Purpose::Unasked, &house.memory.events).await;
        found.unwrap().passages.len()
    };
    for backend in MemoryBackend::ALL {
        for text in ["hi", "Hello!", "what is 2+2", "thanks", "tell me a joke", "chromodynamics, volcanoes"] {
            assert_eq!(told(text, backend).await, 0, "{text} {backend:?}");
        }
        assert!(told("Which tyres does the car need?", backend).await > 0, "{backend:?}");
    }
    // Who asks for it gets what there is, but from both together nothing that neither would vouch for.
    assert_eq!(house.ask("hi", MemoryBackend::Sqlite).await.unwrap(), [house.file("mail.md:1")]);
    assert_eq!(house.ask("chromodynamics", MemoryBackend::Hybrid).await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn a_note_that_is_saved_again_during_a_search_is_found() {
    for backend in [MemoryBackend::Sqlite, MemoryBackend::Hybrid] {
        let house = House::new(backend);
        let note = Note { title: None, text: "The gate code is 4711.".into() };
        let name = house.memory.store(note.clone()).await.unwrap();
        let (memory, done) = (Arc::clone(&house.memory), CancellationToken::new());
        let saving = tokio::spawn({
            let done = done.clone();
            async move {
                while !done.is_cancelled() {
                    memory.store(note.clone()).await.unwrap();
                }
            }
        });
        for _ in 0..200 {
            assert_eq!(house.ask("gate code", backend).await.unwrap(), [format!("{name}:1")]);
        }
        done.cancel();
        saving.await.unwrap();
    }
}

#[tokio::test]
async fn vectors_are_made_once_and_only_where_they_lack() {
    let house = House::new(MemoryBackend::Sqlite);
    let report = house.memory.index(&house.notes()).await.unwrap();
    assert_eq!((report.vectors, house.vectors.embedded.load(Ordering::Relaxed)), (0, 0));
    let error = house.ask("car", MemoryBackend::Vector).await.unwrap_err().to_string();
    assert!(error.contains("hob memory index PATH -b vector"), "{error}");

    let listener: Listener = Arc::new(|_| {});
    let indexing = Indexing { backend: MemoryBackend::Vector, listener, stop: CancellationToken::new() };
    for (expected, changed) in [(2, false), (0, true), (1, false)] {
        let report = house.memory.index_with(&house.notes(), indexing.clone()).await.unwrap();
        assert_eq!(report.vectors, expected);
        if changed {
            house.write("car.md", "The car was sold.");
        }
    }
}

#[tokio::test]
async fn a_mere_look_creates_nothing() {
    let house = House::new(MemoryBackend::Sqlite);
    let error = house.ask("anything", MemoryBackend::Sqlite).await.unwrap_err();
    assert!(matches!(error, MemoryError::Empty), "{error}");
    assert_eq!(house.memory.stats().await.unwrap().chunks, 0);
    assert!(house.memory.index(&house.root.path().join("nowhere")).await.is_err());
    assert!(!house.root.path().join("memory.db").exists());
}

#[tokio::test]
async fn without_a_model_nothing_is_begun_that_needs_one() {
    let house = House::new(MemoryBackend::Sqlite);
    let parts = DocumentParts {
        database: house.root.path().join("memory.db"),
        backend: MemoryBackend::Vector,
        options: IndexOptions::default(),
        context: None,
        embedders: Arc::new(NoEmbedder),
        bus: EventBus::new(),
    };
    let error = Documents::new(parts).index(&house.notes()).await.unwrap_err();
    assert!(error.is_about_vectors(), "{error}");
    assert!(!house.root.path().join("memory.db").exists());
}

#[tokio::test]
async fn a_note_is_kept_once_found_by_its_words_and_forgotten_by_its_name() {
    let house = House::new(MemoryBackend::Sqlite);
    let note = Note { title: None, text: "The gate code is 4711.".into() };
    let name = house.memory.store(note.clone()).await.unwrap();
    assert_eq!(house.memory.store(note).await.unwrap(), name);
    assert_eq!(house.ask("gate code", MemoryBackend::Sqlite).await.unwrap(), [format!("{name}:1")]);
    let stats = house.memory.stats().await.unwrap();
    assert_eq!((stats.sources, stats.notes, stats.chunks), (1, 1, 1));
    // Indexing a folder does not take notes for files that are gone.
    house.memory.index(&house.notes()).await.unwrap();
    assert_eq!(house.memory.stats().await.unwrap().notes, 1);
    assert_eq!(house.memory.forget(&name).await.unwrap(), Forgotten { sources: 1, chunks: 1 });
    assert_eq!(house.ask("gate code", MemoryBackend::Sqlite).await.unwrap(), [""; 0]);
    let error = house.memory.store(Note { title: None, text: " \n".into() }).await.unwrap_err();
    assert!(matches!(error, MemoryError::EmptyNote), "{error}");
}

#[tokio::test]
async fn a_folder_is_forgotten_even_when_it_is_gone() {
    let house = House::new(MemoryBackend::Sqlite);
    house.memory.index(&house.notes()).await.unwrap();
    let notes = house.notes().canonicalize().unwrap();
    fs::remove_dir_all(&notes).unwrap();
    let forgotten = house.memory.forget(notes.to_str().unwrap()).await.unwrap();
    assert_eq!(forgotten, Forgotten { sources: 2, chunks: 2 });
}

#[tokio::test]
async fn whoever_listens_hears_of_storing_and_of_looking() {
    let house = House::new(MemoryBackend::Sqlite);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let writer = Arc::clone(&heard);
    let _subscription =
        house.bus.subscribe(move |happening| writer.lock().unwrap().push(happening.event.clone()));
    house.memory.index(&house.notes()).await.unwrap();
    house.ask("tyres", MemoryBackend::Sqlite).await.unwrap();
    let expected = [
        Event::MemoryStore { backend: "sqlite".into(), count: 2 },
        Event::MemoryRetrieve { backend: "sqlite".into(), query: "tyres".into(), results: 1 },
    ];
    assert_eq!(*heard.lock().unwrap(), expected);
}

#[tokio::test]
async fn what_changes_while_it_is_watched_is_found_and_what_goes_is_not() {
    let house = House::new(MemoryBackend::Sqlite);
    let (reports, mut rounds) = mpsc::unbounded_channel();
    let stop = CancellationToken::new();
    let indexing =
        Indexing { backend: MemoryBackend::Sqlite, listener: Arc::new(|_| {}), stop: stop.clone() };
    let (memory, notes) = (Arc::clone(&house.memory), house.notes());
    let watching = tokio::spawn(async move {
        memory.keep_up(&notes, indexing, |report| reports.send(report.clone()).unwrap()).await
    });
    let mut until = async |done: &dyn Fn(&IndexReport) -> bool| {
        let waiting = async {
            while let Some(report) = rounds.recv().await {
                if done(&report) {
                    return;
                }
            }
            panic!("it ended by itself");
        };
        tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("in time");
    };
    until(&|report| report.indexed == 2).await;
    house.write("plan.md", "Plant the roses in March.");
    until(&|report| report.indexed == 1).await;
    assert_eq!(house.ask("roses", MemoryBackend::Sqlite).await.unwrap(), [house.file("plan.md:1")]);
    fs::remove_file(house.notes().join("plan.md")).unwrap();
    until(&|report| report.removed == 1).await;
    assert_eq!(house.ask("roses", MemoryBackend::Sqlite).await.unwrap(), [""; 0]);
    stop.cancel();
    watching.await.unwrap().unwrap();
}
