//! The memory as its callers see it.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hob_db::LazyDatabase;
use tokio::sync::mpsc;

use super::*;
use crate::store::RemovedSources;
use crate::store::tests::connect;
use crate::testing::{Given, WordVectors};
use crate::{MIGRATIONS, NoEmbedder};

struct Fixture {
    root: tempfile::TempDir,
    memory: Arc<MemoryService>,
    vectors: Arc<WordVectors>,
    bus: EventBus,
}

impl Fixture {
    fn new(backend: impl Into<Option<MemoryBackend>>) -> Self {
        let root = tempfile::tempdir().unwrap();
        let database = LazyDatabase::at(&root.path().join("memory.db"), &[MIGRATIONS]);
        Fixture::on(database.into(), root, backend.into())
    }

    fn on(database: Storage, root: tempfile::TempDir, backend: Option<MemoryBackend>) -> Self {
        fs::create_dir(root.path().join("notes")).unwrap();
        let (vectors, bus) = (Arc::new(WordVectors::default()), EventBus::new());
        let memory = MemoryService::new(MemoryOptions {
            database,
            backend,
            relevance: RelevanceFloor::default(),
            index: IndexOptions::default(),
            context: ContextBudget { passages: 5, tokens: 1_500 },
            adds_context: false,
            embedders: Arc::new(Given(Arc::clone(&vectors))),
            bus: bus.clone(),
        });
        let fixture = Fixture { root, memory: Arc::new(memory), vectors, bus };
        fixture.write("car.md", "# Car\n\nThe car needs new tyres in spring.");
        fixture.write("doctor.md", "# Health\n\nThe doctor is called Ann Miller.");
        fixture
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.notes().join(name), text).unwrap();
    }

    fn notes(&self) -> PathBuf {
        self.root.path().join("notes")
    }

    async fn ask(&self, text: &str, backend: MemoryBackend) -> Result<Vec<String>, MemoryError> {
        let query = MemoryQuery {
            text: text.into(),
            top_k: 1,
            backend: Some(backend),
            collections: CollectionSet::All,
        };
        let found = self.memory.search(&query).await?;
        assert_eq!(found.backend, backend);
        Ok(found.passages.iter().map(|passage| passage.location().to_string()).collect())
    }

    async fn forget(&self, path: &str, from: CollectionSet) -> RemovedSources {
        self.memory.forget(known_as(path).unwrap(), from, Vec::new()).await.unwrap()
    }

    fn file(&self, name: &str) -> String {
        self.notes().canonicalize().unwrap().join(name).display().to_string()
    }
}

fn indexing(backend: MemoryBackend, stop: CancellationToken) -> IndexRequest {
    let backend = Some(backend);
    IndexRequest { backend, collection: CollectionName::default(), listener: Arc::new(|_| {}), stop }
}

fn team() -> CollectionName {
    CollectionName::parse("team").unwrap()
}

#[tokio::test]
async fn a_synonym_is_found_by_meaning_and_a_name_by_words_and_both_by_both() {
    let fixture = Fixture::new(MemoryBackend::Hybrid);
    let report = fixture.memory.index(&fixture.notes()).await.unwrap();
    assert_eq!((report.indexed, report.chunks, report.vectors), (2, 2, 2));
    let car = [fixture.file("car.md:1")];
    let doctor = [fixture.file("doctor.md:1")];
    assert_eq!(fixture.ask("automobile", MemoryBackend::Sqlite).await.unwrap(), [""; 0]);
    assert_eq!(fixture.ask("my automobile", MemoryBackend::Vector).await.unwrap(), car);
    assert_eq!(fixture.ask("automobile", MemoryBackend::Hybrid).await.unwrap(), car);
    assert_eq!(fixture.ask("Miller", MemoryBackend::Sqlite).await.unwrap(), doctor);
    assert_eq!(fixture.ask("Ann Miller, physician", MemoryBackend::Hybrid).await.unwrap(), doctor);
}

#[tokio::test]
async fn irrelevant_passages_are_not_returned() {
    let fixture = Fixture::new(MemoryBackend::Hybrid);
    fixture.write("mail.md", "# Mail\n\nHi Ann, 2+2 makes 4. Thanks, and hello to you.");
    fixture.memory.index(&fixture.notes()).await.unwrap();
    let told = async |text: &str, backend| {
        let query = MemoryQuery {
            text: text.into(),
            top_k: 5,
            backend: Some(backend),
            collections: CollectionSet::All,
        };
        let found = fixture.memory.search_for(&query, SearchPurpose::Context, &fixture.memory.events).await;
        found.unwrap().passages.len()
    };
    for backend in MemoryBackend::ALL {
        for text in ["hi", "Hello!", "what is 2+2", "thanks", "tell me a joke", "chromodynamics, volcanoes"] {
            assert_eq!(told(text, backend).await, 0, "{text} {backend:?}");
        }
        assert!(told("Which tyres does the car need?", backend).await > 0, "{backend:?}");
    }
    // A caller that searches for a greeting finds it.
    assert_eq!(fixture.ask("hi", MemoryBackend::Sqlite).await.unwrap(), [fixture.file("mail.md:1")]);
    assert_eq!(fixture.ask("chromodynamics", MemoryBackend::Hybrid).await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn a_question_that_the_documents_do_not_answer_gets_no_context() {
    let fixture = Fixture::new(MemoryBackend::Hybrid);
    fixture.write("tax.md", "# Taxes\n\nThe capital gains of last year are taxed in May.");
    fixture.memory.index(&fixture.notes()).await.unwrap();
    let query = |text: &str, backend| MemoryQuery {
        text: text.into(),
        top_k: 5,
        backend: Some(backend),
        collections: CollectionSet::All,
    };
    for backend in MemoryBackend::ALL {
        // The vectors of these tests are words, and such a question has some in common with everything.
        let text = match backend {
            MemoryBackend::Sqlite => "What is the capital of Mongolia?",
            MemoryBackend::Vector | MemoryBackend::Hybrid => "Ulaanbaatar, Mongolia",
        };
        let unanswered = query(text, backend);
        let context = SearchPurpose::Context;
        let found = fixture.memory.search_for(&unanswered, context, &fixture.memory.events).await.unwrap();
        assert!(found.passages.is_empty(), "{backend:?} {found:?}");
        let all = fixture.memory.search_all(&unanswered).await.unwrap().passages;
        assert!(all.iter().any(|passage| passage.text.contains("capital gains")), "{backend:?} {all:?}");
        let answered = query("When are the capital gains taxed?", backend);
        let found = fixture.memory.search(&answered).await.unwrap().passages;
        assert!(found[0].text.contains("taxed in May"), "{backend:?} {found:?}");
    }
    // Relevant passages come first.
    let all = fixture.memory.search_all(&query("the capital gains", MemoryBackend::Hybrid)).await.unwrap();
    assert!(all.passages.len() == 3 && all.passages[0].text.contains("gains"), "{all:?}");
}

#[tokio::test]
async fn a_short_question_finds_only_what_is_about_it_with_the_similarity_as_its_score() {
    let fixture = Fixture::new(MemoryBackend::Hybrid);
    fixture.write("lake.md", "# Lake\n\nWe went there by car, and took the old tent, two maps and a lamp.");
    fixture.memory.index(&fixture.notes()).await.unwrap();
    let query =
        MemoryQuery { text: "automobile".into(), top_k: 5, backend: None, collections: CollectionSet::All };
    let scores = |found: SearchResults| {
        let score = |passage: &Passage| (passage.source.clone(), (passage.score * 10.0).round());
        found.passages.iter().map(score).collect::<Vec<_>>()
    };
    let car = (fixture.file("car.md"), 8.0);
    assert_eq!(scores(fixture.memory.search(&query).await.unwrap()), std::slice::from_ref(&car));
    let context = SearchPurpose::Context;
    let added = fixture.memory.search_for(&query, context, &fixture.memory.events).await.unwrap();
    assert_eq!(scores(added), std::slice::from_ref(&car));
    let all = fixture.memory.search_all(&query).await.unwrap();
    let expected = [car, (fixture.file("lake.md"), 2.0), (fixture.file("doctor.md"), 0.0)];
    assert_eq!(scores(all), expected);
}

#[tokio::test]
async fn a_search_that_finds_nothing_by_meaning_finds_the_words_that_are_there() {
    let fixture = Fixture::new(MemoryBackend::Hybrid);
    fixture.write(
        "bread.md",
        "# Loaf\n\nKnead flour, water, salt, yeast and a spoon of oil for ten minutes, cover the bowl, wait two hours, heat the \
         oven, shape it, cut the top and bake until the bread sounds hollow.",
    );
    fixture.memory.index(&fixture.notes()).await.unwrap();
    let query =
        MemoryQuery { text: "make bread".into(), top_k: 5, backend: None, collections: CollectionSet::All };
    let found = fixture.memory.search(&query).await.unwrap();
    let files: Vec<&str> = found.passages.iter().map(|passage| passage.source.as_str()).collect();
    assert_eq!((found.backend, files), (MemoryBackend::Hybrid, vec![fixture.file("bread.md").as_str()]));
    let context = SearchPurpose::Context;
    let found = fixture.memory.search_for(&query, context, &fixture.memory.events).await.unwrap();
    assert!(found.passages.is_empty(), "{found:?}");
    assert_eq!(fixture.ask("make bread", MemoryBackend::Vector).await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn without_a_setting_vectors_are_used_once_there_are_some() {
    let fixture = Fixture::new(None::<MemoryBackend>);
    let search = async |text: &str| {
        let collections = CollectionSet::All;
        let query = MemoryQuery { text: text.into(), top_k: 5, backend: None, collections };
        let found = fixture.memory.search(&query).await.unwrap();
        (found.backend, found.passages.len())
    };
    assert_eq!(fixture.memory.index(&fixture.notes()).await.unwrap().vectors, 0);
    assert_eq!(search("automobile").await, (MemoryBackend::Sqlite, 0));
    let stats = fixture.memory.stats(CollectionSet::All).await.unwrap();
    assert_eq!((stats.backend, stats.automatic), (MemoryBackend::Sqlite, true));

    let with_vectors = indexing(MemoryBackend::Hybrid, CancellationToken::new());
    fixture.memory.index_with(&fixture.notes(), with_vectors).await.unwrap();
    assert_eq!(search("automobile").await, (MemoryBackend::Hybrid, 1));
    let stats = fixture.memory.stats(CollectionSet::All).await.unwrap();
    assert_eq!((stats.backend, stats.automatic), (MemoryBackend::Hybrid, true));
    // From now on new files get vectors, too.
    fixture.write("boat.md", "The boat is in the harbour.");
    assert_eq!(fixture.memory.index(&fixture.notes()).await.unwrap().vectors, 1);
}

#[tokio::test]
async fn without_a_setting_a_missing_model_leaves_the_search_by_words() {
    let fixture = Fixture::new(MemoryBackend::Hybrid);
    fixture.memory.index(&fixture.notes()).await.unwrap();
    let memory = MemoryService::new(MemoryOptions {
        database: LazyDatabase::at(&fixture.root.path().join("memory.db"), &[MIGRATIONS]).into(),
        backend: None,
        relevance: RelevanceFloor::default(),
        index: IndexOptions::default(),
        context: ContextBudget { passages: 5, tokens: 1_500 },
        adds_context: false,
        embedders: Arc::new(NoEmbedder),
        bus: EventBus::new(),
    });
    let query =
        MemoryQuery { text: "tyres".into(), top_k: 5, backend: None, collections: CollectionSet::All };
    let found = memory.search(&query).await.unwrap();
    assert_eq!((found.backend, found.passages.len()), (MemoryBackend::Sqlite, 1));
    fixture.write("boat.md", "The boat is in the harbour.");
    let report = memory.index(&fixture.notes()).await.unwrap();
    assert_eq!((report.indexed, report.vectors), (1, 0));
    let explicit = MemoryQuery { backend: Some(MemoryBackend::Hybrid), ..query };
    assert!(memory.search(&explicit).await.unwrap_err().is_about_vectors());
}

#[tokio::test]
async fn a_note_that_is_saved_again_during_a_search_is_found() {
    for backend in [MemoryBackend::Sqlite, MemoryBackend::Hybrid] {
        let fixture = Fixture::new(backend);
        let note = Note { title: None, text: "The gate code is 4711.".into() };
        let name = fixture.memory.store(note.clone()).await.unwrap();
        let (memory, done) = (Arc::clone(&fixture.memory), CancellationToken::new());
        let saving = tokio::spawn({
            let done = done.clone();
            async move {
                while !done.is_cancelled() {
                    memory.store(note.clone()).await.unwrap();
                }
            }
        });
        for _ in 0..200 {
            assert_eq!(fixture.ask("gate code", backend).await.unwrap(), [format!("{name}:1")]);
        }
        done.cancel();
        saving.await.unwrap();
    }
}

#[tokio::test]
async fn only_missing_vectors_are_created() {
    let fixture = Fixture::new(MemoryBackend::Sqlite);
    let report = fixture.memory.index(&fixture.notes()).await.unwrap();
    assert_eq!((report.vectors, fixture.vectors.embedded.load(Ordering::Relaxed)), (0, 0));
    let error = fixture.ask("car", MemoryBackend::Vector).await.unwrap_err().to_string();
    assert!(error.contains("hob memory index PATH -b vector"), "{error}");
    let asked = fixture.vectors.embedded.load(Ordering::Relaxed);
    assert_eq!(asked, 0, "the model, which may have to be downloaded, is not used");

    let indexing = indexing(MemoryBackend::Vector, CancellationToken::new());
    for (expected, changed) in [(2, false), (0, true), (1, false)] {
        let report = fixture.memory.index_with(&fixture.notes(), indexing.clone()).await.unwrap();
        assert_eq!(report.vectors, expected);
        if changed {
            fixture.write("car.md", "The car was sold.");
        }
    }
}

#[tokio::test]
async fn a_run_makes_no_vectors_of_other_collections() {
    let fixture = Fixture::new(MemoryBackend::Sqlite);
    // A member whose key may not use the model.
    let without = indexing(MemoryBackend::Sqlite, CancellationToken::new());
    let members = IndexRequest { collection: team(), ..without };
    fixture.memory.index_with(&fixture.notes().join("car.md"), members.clone()).await.unwrap();
    let own = indexing(MemoryBackend::Vector, CancellationToken::new());
    let report = fixture.memory.index_with(&fixture.notes().join("doctor.md"), own).await.unwrap();
    assert_eq!((report.vectors, fixture.vectors.embedded.load(Ordering::Relaxed)), (1, 1));
    let allowed = IndexRequest { backend: Some(MemoryBackend::Vector), ..members };
    let report = fixture.memory.index_with(&fixture.notes().join("car.md"), allowed).await.unwrap();
    assert_eq!((report.indexed, report.vectors), (0, 1));
}

#[tokio::test]
async fn reading_creates_nothing() {
    let fixture = Fixture::new(MemoryBackend::Sqlite);
    let error = fixture.ask("anything", MemoryBackend::Sqlite).await.unwrap_err();
    assert!(matches!(error, MemoryError::Empty), "{error}");
    assert_eq!(fixture.memory.stats(CollectionSet::All).await.unwrap().chunks, 0);
    assert!(fixture.memory.index(&fixture.root.path().join("nowhere")).await.is_err());
    assert!(!fixture.root.path().join("memory.db").exists());
}

#[tokio::test]
async fn without_a_model_nothing_is_started_that_needs_one() {
    let fixture = Fixture::new(MemoryBackend::Sqlite);
    let options = MemoryOptions {
        database: LazyDatabase::at(&fixture.root.path().join("memory.db"), &[MIGRATIONS]).into(),
        backend: Some(MemoryBackend::Vector),
        relevance: RelevanceFloor::default(),
        index: IndexOptions::default(),
        context: ContextBudget { passages: 5, tokens: 1_500 },
        adds_context: false,
        embedders: Arc::new(NoEmbedder),
        bus: EventBus::new(),
    };
    let error = MemoryService::new(options).index(&fixture.notes()).await.unwrap_err();
    assert!(error.is_about_vectors(), "{error}");
    assert!(!fixture.root.path().join("memory.db").exists());
}

#[tokio::test]
async fn a_note_is_saved_once_found_by_its_words_and_removed_by_its_name() {
    let fixture = Fixture::new(MemoryBackend::Sqlite);
    let note = Note { title: None, text: "The gate code is 4711.".into() };
    let name = fixture.memory.store(note.clone()).await.unwrap();
    assert_eq!(fixture.memory.store(note).await.unwrap(), name);
    assert_eq!(fixture.ask("gate code", MemoryBackend::Sqlite).await.unwrap(), [format!("{name}:1")]);
    let stats = fixture.memory.stats(CollectionSet::All).await.unwrap();
    assert_eq!((stats.sources, stats.notes, stats.chunks), (1, 1, 1));
    // Indexing a folder does not take notes for files that are gone.
    fixture.memory.index(&fixture.notes()).await.unwrap();
    assert_eq!(fixture.memory.stats(CollectionSet::All).await.unwrap().notes, 1);
    assert_eq!(fixture.forget(&name, CollectionSet::All).await, RemovedSources { sources: 1, chunks: 1 });
    assert_eq!(fixture.ask("gate code", MemoryBackend::Sqlite).await.unwrap(), [""; 0]);
    let error = fixture.memory.store(Note { title: None, text: " \n".into() }).await.unwrap_err();
    assert!(matches!(error, MemoryError::EmptyNote), "{error}");
}

#[tokio::test]
async fn a_note_is_saved_also_if_the_engine_makes_no_vector() {
    let fixture = Fixture::new(MemoryBackend::Hybrid);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let writer = Arc::clone(&heard);
    let _subscription = fixture.bus.subscribe(move |happening| writer.lock().push(happening.event.clone()));
    fixture.vectors.is_down.store(true, Ordering::Relaxed);
    let note = Note { title: None, text: "The gate code is 4711.".into() };
    let name = fixture.memory.store(note).await.unwrap();
    assert_eq!(*heard.lock(), [Event::MemoryStore { backend: "hybrid".into(), count: 1 }]);
    assert_eq!(fixture.ask("gate code", MemoryBackend::Sqlite).await.unwrap(), [format!("{name}:1")]);
    fixture.vectors.is_down.store(false, Ordering::Relaxed);
    fixture.memory.store(Note { title: None, text: "The shed is locked.".into() }).await.unwrap();
    assert_eq!(fixture.vectors.embedded.load(Ordering::Relaxed), 1, "another note is no reason to make it");
    assert_eq!(
        fixture.memory.index(&fixture.notes()).await.unwrap().vectors,
        3,
        "it gets one with the next run"
    );
}

#[tokio::test]
async fn a_deleted_folder_can_be_removed() {
    let fixture = Fixture::new(MemoryBackend::Sqlite);
    fixture.memory.index(&fixture.notes()).await.unwrap();
    let notes = fixture.notes().canonicalize().unwrap();
    fs::remove_dir_all(&notes).unwrap();
    let forgotten = fixture.forget(notes.to_str().unwrap(), CollectionSet::All).await;
    assert_eq!(forgotten, RemovedSources { sources: 2, chunks: 2 });
}

#[tokio::test]
async fn storing_and_searching_are_published() {
    let fixture = Fixture::new(MemoryBackend::Sqlite);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let writer = Arc::clone(&heard);
    let _subscription = fixture.bus.subscribe(move |happening| writer.lock().push(happening.event.clone()));
    fixture.memory.index(&fixture.notes()).await.unwrap();
    fixture.ask("tyres", MemoryBackend::Sqlite).await.unwrap();
    let expected = [
        Event::MemoryStore { backend: "sqlite".into(), count: 2 },
        Event::MemoryRetrieve { backend: "sqlite".into(), query: "tyres".into(), results: 1 },
    ];
    assert_eq!(*heard.lock(), expected);
}

#[tokio::test]
async fn watched_changes_are_found_and_deleted_files_are_not() {
    let fixture = Fixture::new(MemoryBackend::Sqlite);
    let (reports, mut rounds) = mpsc::unbounded_channel();
    let stop = CancellationToken::new();
    let indexing = indexing(MemoryBackend::Sqlite, stop.clone());
    let (memory, notes) = (Arc::clone(&fixture.memory), fixture.notes());
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
    fixture.write("plan.md", "Plant the roses in March.");
    until(&|report| report.indexed == 1).await;
    assert_eq!(fixture.ask("roses", MemoryBackend::Sqlite).await.unwrap(), [fixture.file("plan.md:1")]);
    fs::remove_file(fixture.notes().join("plan.md")).unwrap();
    until(&|report| report.removed == 1).await;
    assert_eq!(fixture.ask("roses", MemoryBackend::Sqlite).await.unwrap(), [""; 0]);
    fs::remove_file(fixture.notes().join("doctor.md")).unwrap();
    until(&|report| report.removed == 1).await;
    // A directory without files keeps its documents until it has files again.
    fs::remove_file(fixture.notes().join("car.md")).unwrap();
    // Longer than the quiet time after a change.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(fixture.ask("tyres", MemoryBackend::Sqlite).await.unwrap(), [fixture.file("car.md:1")]);
    fixture.write("plan.md", "Plant the roses in March.");
    until(&|report| (report.indexed, report.removed) == (1, 1)).await;
    stop.cancel();
    watching.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_in_postgresql_is_empty_until_something_is_saved_and_then_searched_in_every_way() {
    let database = hob_testkit::PostgresServer::shared().create_database();
    let storage = connect(&database.url()).into();
    let fixture = Fixture::on(storage, tempfile::tempdir().unwrap(), Some(MemoryBackend::Hybrid));
    assert!(matches!(fixture.ask("car", MemoryBackend::Sqlite).await, Err(MemoryError::Empty)));
    assert_eq!(fixture.memory.stats(CollectionSet::All).await.unwrap().sources, 0);

    let report = fixture.memory.index(&fixture.notes()).await.unwrap();
    assert_eq!((report.indexed, report.vectors), (2, 2));
    let car = format!("{}:1", fixture.file("car.md"));
    assert_eq!(fixture.ask("automobile", MemoryBackend::Vector).await.unwrap(), [car.as_str()]);
    assert_eq!(fixture.ask("tyre", MemoryBackend::Sqlite).await.unwrap(), [car.as_str()]);
    assert_eq!(
        fixture.ask("new tyres for the automobile", MemoryBackend::Hybrid).await.unwrap(),
        [car.as_str()]
    );
    let forgotten = fixture.forget(fixture.notes().to_str().unwrap(), CollectionSet::All).await;
    assert_eq!(forgotten.sources, 2);
    assert_eq!(fixture.ask("tyre", MemoryBackend::Sqlite).await.unwrap(), [""; 0]);
}

/// What a search of these collections finds, by name.
async fn found_in(fixture: &Fixture, text: &str, collections: &CollectionSet) -> Vec<String> {
    let query = MemoryQuery { text: text.into(), top_k: 5, backend: None, collections: collections.clone() };
    let found = fixture.memory.search(&query).await.unwrap();
    let name = |source: &str| Path::new(source).file_name().unwrap().to_string_lossy().into_owned();
    found.passages.iter().map(|passage| name(&passage.source)).collect()
}

#[tokio::test]
async fn a_file_in_two_collections_is_indexed_once_and_leaves_them_one_by_one() {
    let fixture = Fixture::new(MemoryBackend::Hybrid);
    let (notes, car) = (fixture.notes(), fixture.notes().join("car.md"));
    fixture.memory.index(&notes).await.unwrap();
    let into_team =
        IndexRequest { collection: team(), ..indexing(MemoryBackend::Hybrid, CancellationToken::new()) };
    let report = fixture.memory.index_with(&car, into_team.clone()).await.unwrap();
    assert_eq!((report.indexed, report.added, report.unchanged, report.vectors), (0, 1, 0, 0));
    let report = fixture.memory.index_with(&car, into_team.clone()).await.unwrap();
    assert_eq!((report.added, report.unchanged), (0, 1));

    let in_team = CollectionSet::of(team());
    assert_eq!(found_in(&fixture, "car tyres", &CollectionSet::All).await, ["car.md"], "not twice");
    assert_eq!(found_in(&fixture, "car tyres", &in_team).await, ["car.md"]);
    assert_eq!(found_in(&fixture, "Ann Miller, physician", &in_team).await, [""; 0]);
    assert_eq!(found_in(&fixture, "Ann Miller, physician", &CollectionSet::All).await, ["doctor.md"]);
    assert_eq!(found_in(&fixture, "car tyres", &CollectionSet::none()).await, [""; 0]);

    let stats = fixture.memory.stats(in_team.clone()).await.unwrap();
    assert_eq!((stats.sources, stats.chunks, stats.vectors, stats.database_bytes), (1, 1, 1, None));
    let names = |stats: &MemoryStats| {
        stats.collections.iter().map(|size| (size.name.clone(), size.sources)).collect::<Vec<_>>()
    };
    assert_eq!(names(&stats), [("team".to_owned(), 1)]);
    let all = fixture.memory.stats(CollectionSet::All).await.unwrap();
    assert_eq!(names(&all), [("default".to_owned(), 2), ("team".to_owned(), 1)]);
    assert_eq!((all.sources, all.vectors), (2, 2));

    // Indexing into one collection does not remove what only others have, and a changed file changes in all.
    fixture.write("car.md", "# Garage\n\nThe car was sold in autumn.");
    fixture.memory.index(&notes).await.unwrap();
    assert_eq!(found_in(&fixture, "sold in autumn", &in_team).await, ["car.md"]);

    let path = notes.to_str().unwrap();
    let removed = fixture.forget(path, CollectionSet::of(CollectionName::default())).await;
    assert_eq!(removed, RemovedSources { sources: 2, chunks: 2 });
    assert_eq!(found_in(&fixture, "sold in autumn", &in_team).await, ["car.md"]);
    assert_eq!(fixture.memory.stats(CollectionSet::All).await.unwrap().sources, 1);
    fs::remove_file(&car).unwrap();
    assert_eq!(fixture.memory.index(&notes).await.unwrap().removed, 0, "it is not in this collection");
    assert_eq!(fixture.memory.index_with(&notes, into_team).await.unwrap().removed, 1);
}

#[tokio::test]
async fn context_has_passages_of_the_collections_only() {
    let root = tempfile::tempdir().unwrap();
    let memory = MemoryService::new(MemoryOptions {
        database: LazyDatabase::at(&root.path().join("memory.db"), &[MIGRATIONS]).into(),
        backend: Some(MemoryBackend::Sqlite),
        relevance: RelevanceFloor::default(),
        index: IndexOptions::default(),
        context: ContextBudget { passages: 5, tokens: 1_500 },
        adds_context: true,
        embedders: Arc::new(NoEmbedder),
        bus: EventBus::new(),
    });
    memory.store(Note { title: None, text: "The code of the gate is 4711.".into() }).await.unwrap();
    let ask = async |collections: CollectionSet| {
        let mut request = GenerateRequest {
            messages: vec![Message::new(Role::User, "What is the code of the gate?")],
            ..GenerateRequest::default()
        };
        memory.add_context(&mut request, collections, &RunEvents::without_subscribers()).await.len()
    };
    assert_eq!(ask(CollectionSet::All).await, 1);
    assert_eq!(ask(CollectionSet::of(CollectionName::default())).await, 1);
    assert_eq!(ask(CollectionSet::of(team())).await, 0);
    assert_eq!(ask(CollectionSet::none()).await, 0);
}
