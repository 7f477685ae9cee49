//! What every database of the memory does.

use std::ops::Deref;
use std::sync::Arc;

use hob_db::Database;
use hob_db::postgres::PostgresDatabase;
use hob_testkit::{PostgresServer, TestDatabase};
use proptest::prelude::*;

use super::*;

/// A memory. The database of a server is dropped after it.
pub(crate) struct TestMemory {
    store: Arc<dyn MemoryStore>,
    place: Place,
}

enum Place {
    Directory(tempfile::TempDir),
    Server(TestDatabase),
}

impl Deref for TestMemory {
    type Target = dyn MemoryStore;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

impl TestMemory {
    /// Another store on the same database, as in another process.
    fn another(&self) -> Arc<dyn MemoryStore> {
        self.place.store()
    }
}

impl Place {
    fn store(&self) -> Arc<dyn MemoryStore> {
        match self {
            Place::Directory(directory) => {
                let database = Database::open(&directory.path().join("memory.db"), &[MIGRATIONS]).unwrap();
                Arc::new(SqliteMemoryStore::new(database).unwrap())
            }
            Place::Server(database) => Arc::new(PostgresMemoryStore::new(connect(&database.url()))),
        }
    }
}

pub(crate) fn connect(url: &str) -> PostgresDatabase {
    PostgresDatabase::new(url.parse().unwrap(), &[POSTGRES_MIGRATIONS]).unwrap()
}

/// An empty memory.
pub(crate) type NewMemory = fn() -> TestMemory;

pub(crate) fn sqlite() -> TestMemory {
    let place = Place::Directory(tempfile::tempdir().unwrap());
    TestMemory { store: place.store(), place }
}

pub(crate) fn postgres() -> TestMemory {
    let place = Place::Server(PostgresServer::shared().create_database());
    TestMemory { store: place.store(), place }
}

hob_testkit::on_both_databases!(
    sqlite, postgres:
    a_title_counts_more_than_the_text_and_word_forms_and_accents_do_not_matter,
    phrases_rare_words_and_short_chunks_rank_alike,
    a_chunk_with_few_of_the_words_does_not_cover_the_question,
    the_words_of_the_question_are_marked_in_the_passage,
    a_saved_file_replaces_itself_and_a_removed_one_is_deleted,
    any_text_can_be_saved,
    a_directory_does_not_include_paths_with_the_same_prefix,
    a_new_date_of_an_unchanged_file_is_saved,
    the_size_is_reported,
    the_nearest_vector_is_found_among_few_and_among_many,
    an_invalid_vector_does_no_harm,
    vectors_of_other_models_and_deleted_chunks_are_not_found,
    a_model_with_a_new_vector_length_starts_again,
    the_rest_of_a_topic_is_found_after_most_of_it_was_removed,
    a_note_that_is_saved_repeatedly_is_found,
    a_source_that_is_replaced_during_a_search_is_found_in_its_old_form_or_in_its_new_one,
    two_stores_that_write_the_same_sources_lose_and_double_none,
    common_and_rare_words_do_not_hide_each_other,
    any_question_is_text,
    operators_are_text_too,
    a_question_of_a_megabyte_is_answered,
);

pub(super) fn chunk(title: &str, text: &str) -> NewChunk {
    NewChunk { title: title.into(), text: text.into(), line: 1, end_line: 2, tokens: 3 }
}

fn stamp(of: u8) -> SourceStamp {
    SourceStamp { hash: [of; 32], modified: 7, size: 11, recipe: "512/64".into() }
}

pub(super) fn source(path: &str, chunks: Vec<NewChunk>) -> NewSource {
    NewSource {
        collection: CollectionName::default(),
        path: path.into(),
        title: "a title".into(),
        place: PositionUnit::Line,
        stamp: stamp(1),
        chunks,
    }
}

fn filled(new: NewMemory, sources: &[NewSource]) -> TestMemory {
    let memory = new();
    memory.replace(sources, SystemTime::now()).unwrap();
    memory
}

/// The texts that a question finds, best first.
fn found(memory: &dyn MemoryStore, question: &str) -> Vec<String> {
    let Some(query) = WordQuery::of(question) else { return Vec::new() };
    let hits = memory.find_words(&query, 10).unwrap();
    assert!(hits.is_sorted_by(|one, other| one.score >= other.score), "{hits:?}");
    let ids: Vec<i64> = hits.iter().map(|hit| hit.chunk).collect();
    memory.passages(&ids, Some(&query)).unwrap().into_iter().map(|passage| passage.text).collect()
}

fn a_title_counts_more_than_the_text_and_word_forms_and_accents_do_not_matter(new: NewMemory) {
    let memory = filled(
        new,
        &[source(
            "/a",
            vec![
                chunk("Garden", "The boiler is mentioned here in passing, between roses and a hedge."),
                chunk("Boilers", "Service it every autumn, before it is cold."),
                chunk("Caf\u{e9}", "Nothing to see."),
            ],
        )],
    );
    assert_eq!(found(&*memory, "boiler")[0], "Service it every autumn, before it is cold.");
    assert_eq!(found(&*memory, "boilers?").len(), 2);
    assert_eq!(found(&*memory, "CAFE"), ["Nothing to see."]);
}

/// The order of each question, best first.
fn phrases_rare_words_and_short_chunks_rank_alike(new: NewMemory) {
    let texts = [
        ("Heating", "The boiler of the house. The boiler needs water, and the boiler needs air."),
        (
            "Heating",
            "The boiler of the house needs water, air and a chimney sweep every single year in autumn.",
        ),
        ("", "the house of the sweep"),
        ("Config > Config file", "Settings are in config.toml and not in a file with another name."),
        ("", "a toml file, and a config"),
        ("", "water water water water"),
        ("Water", "house"),
        ("", "one two three four five six seven eight nine ten house"),
    ];
    let memory = filled(new, &[source("/a", texts.map(|(title, text)| chunk(title, text)).to_vec())]);
    let order = |question: &str| {
        let query = WordQuery::of(question).unwrap();
        let hits = memory.find_words(&query, 10).unwrap();
        let ids: Vec<i64> = hits.iter().map(|hit| hit.chunk).collect();
        let passages = memory.passages(&ids, None).unwrap();
        passages.iter().map(|passage| passage.position).collect::<Vec<_>>()
    };
    assert_eq!(order("boiler"), [0, 1]);
    assert_eq!(order("config.toml"), [3]);
    assert_eq!(order("config file"), [3, 4]);
    assert_eq!(order("water"), [6, 5, 0, 1]);
    assert_eq!(order("house"), [6, 2, 7, 0, 1]);
    assert_eq!(order("chimney sweep in the house"), [1, 2, 6, 7, 0]);
}

fn a_chunk_with_few_of_the_words_does_not_cover_the_question(new: NewMemory) {
    let memory = filled(
        new,
        &[source("/a", vec![chunk("Pump", "the boiler hums"), chunk("", "a boiler"), chunk("", "a garden")])],
    );
    let query = WordQuery::of("why does the boiler's pump hum at night?").unwrap();
    let hits = memory.find_words(&query, 9).unwrap();
    assert_eq!(hits.len(), 2);
    let covering = |query: &WordQuery| {
        let mut covering = Vec::new();
        let read = memory.snapshot(&mut |snapshot| {
            covering = snapshot.covering(query, &hits, 0.5)?;
            Ok(())
        });
        read.unwrap();
        covering
    };
    assert_eq!(covering(&query), [hits[0]]);
    let single = WordQuery::of("boiler").unwrap();
    assert_eq!(covering(&single), hits);
}

fn the_words_of_the_question_are_marked_in_the_passage(new: NewMemory) {
    let memory = filled(new, &[source("/a", vec![chunk("", "Zwölf boilers\u{2}, one valve.")])]);
    let query = WordQuery::of("Which boiler has a VALVE?").unwrap();
    let hits = memory.find_words(&query, 5).unwrap();
    let passages = memory.passages(&[hits[0].chunk, 4711], Some(&query)).unwrap();
    let [passage] = passages.as_slice() else { panic!("one: {passages:?}") };
    let marked: Vec<&str> = passage.marks.iter().map(|mark| &passage.text[mark.clone()]).collect();
    assert_eq!(marked, ["boilers", "valve"]);
    assert_eq!((passage.source.as_str(), passage.line, passage.end_line), ("/a", 1, 2));
}

fn a_saved_file_replaces_itself_and_a_removed_one_is_deleted(new: NewMemory) {
    let memory = filled(
        new,
        &[source("/a", vec![chunk("", "apple"), chunk("", "pear")]), source("/b", vec![chunk("", "plum")])],
    );
    memory.replace(&[source("/a", vec![chunk("", "cherry")])], SystemTime::now()).unwrap();
    assert_eq!(found(&*memory, "apple pear"), [""; 0]);
    assert_eq!(found(&*memory, "cherry"), ["cherry"]);
    assert_eq!(memory.remove(&["/b".into(), "/c".into()]).unwrap(), RemovedSources { sources: 1, chunks: 1 });
    assert_eq!(found(&*memory, "plum"), [""; 0]);
    let size = memory.size().unwrap();
    assert_eq!((size.sources, size.chunks, size.tokens, size.source_bytes), (1, 1, 3, 11));
}

fn any_text_can_be_saved(new: NewMemory) {
    let long = "x".repeat(100_000);
    let texts = ["a\0b apple", "\u{2}\u{3} apple", "", "🦙 apple \u{301}", &long, &"apple ".repeat(40_000)];
    let chunks = texts.map(|text| chunk(text, text)).to_vec();
    let memory = filled(new, &[source("/a", chunks)]);
    assert_eq!(found(&*memory, "apple").len(), 4);
    let kept = memory.without_vector("m", 0, 10).unwrap();
    let sizes = |texts: &[&str]| texts.iter().map(|text| text.len()).collect::<Vec<_>>();
    assert_eq!(sizes(&kept.iter().map(|chunk| chunk.text.as_str()).collect::<Vec<_>>()), sizes(&texts));
    memory.check().unwrap();
}

fn a_directory_does_not_include_paths_with_the_same_prefix(new: NewMemory) {
    let paths = ["/a", "/a/b", "/a/b/c", "/a/bc", "/a0", "note:1"];
    let memory = filled(new, &paths.map(|path| source(path, Vec::new())));
    let below = |path: &str| {
        let mut below = memory.paths_below(path, &CollectionSet::All, 100).unwrap();
        below.sort();
        let mut known: Vec<String> = memory.known_below(path).unwrap().into_keys().collect();
        known.sort();
        assert_eq!(below, known);
        below
    };
    assert_eq!(below("/a/b"), ["/a/b", "/a/b/c"]);
    assert_eq!(below("/a/"), ["/a", "/a/b", "/a/b/c", "/a/bc"]);
    assert_eq!(below("/").len(), 5);
    assert_eq!(below("note:1"), ["note:1"]);
}

fn a_new_date_of_an_unchanged_file_is_saved(new: NewMemory) {
    let memory = filled(new, &[source("/a", Vec::new())]);
    let touched = SourceStamp { modified: 99, ..stamp(1) };
    memory.restamp(&[("/a".into(), touched.clone())]).unwrap();
    assert_eq!(memory.known_below("/a").unwrap()["/a"], touched);
}

fn the_size_is_reported(new: NewMemory) {
    let memory =
        filled(new, &[source("/a", vec![chunk("", "apple"), chunk("", "pear")]), source("note:1", vec![])]);
    let missing = memory.without_vector("m", 0, 1).unwrap();
    memory.add_vectors("m", &[NewVector { chunk: missing[0].chunk, vector: towards(1) }]).unwrap();
    memory.sync().unwrap();
    let size = memory.size().unwrap();
    assert!(size.database_bytes > 8_192 && size.last_indexed.is_some(), "{size:?}");
    let expected = MemorySize {
        sources: 2,
        notes: 1,
        chunks: 2,
        tokens: 6,
        source_bytes: 22,
        database_bytes: size.database_bytes,
        vectors: 1,
        models: vec!["m".into()],
        collections: vec![CollectionSize { name: "default".into(), sources: 2, chunks: 2 }],
        last_indexed: size.last_indexed,
    };
    assert_eq!(size, expected);
}

/// A vector with its own direction.
fn towards(corner: usize) -> Vec<f32> {
    (0..128).map(|index| if index == corner { 1.0 } else { 0.01 }).collect()
}

fn with_vectors(new: NewMemory, count: usize) -> TestMemory {
    let chunks = (0..count).map(|number| chunk("", &format!("number {number}"))).collect();
    let memory = filled(new, &[source("/a", chunks)]);
    let missing = memory.without_vector("m", 0, count).unwrap();
    let vectors: Vec<NewVector> = missing
        .iter()
        .enumerate()
        .map(|(index, chunk)| NewVector { chunk: chunk.chunk, vector: towards(index % 128) })
        .collect();
    memory.add_vectors("m", &vectors).unwrap();
    memory
}

fn the_nearest_vector_is_found_among_few_and_among_many(new: NewMemory) {
    for count in [100, 6_000] {
        let memory = with_vectors(new, count);
        memory.sync().unwrap();
        let hits = memory.find_vectors("m", &towards(42), 3).unwrap().unwrap();
        let ids: Vec<i64> = hits.iter().map(|hit| hit.chunk).collect();
        let passages = memory.passages(&ids, None).unwrap();
        // All of this direction are as near.
        let directions = passages.iter().map(|passage| passage.text.trim_start_matches("number "));
        let directions: Vec<usize> =
            directions.map(|number| number.parse::<usize>().unwrap() % 128).collect();
        assert_eq!(directions[0], 42, "{passages:?}");
        assert!((hits[0].score - 1.0).abs() < 0.01, "{hits:?}");
        assert!(memory.without_vector("m", 0, 10).unwrap().is_empty());
    }
}

fn an_invalid_vector_does_no_harm(new: NewMemory) {
    let memory = filled(new, &[source("/a", vec![chunk("", "good"), chunk("", "bad"), chunk("", "none")])]);
    let missing = memory.without_vector("m", 0, 9).unwrap();
    let vectors: Vec<NewVector> = [vec![0.0, 2.0], vec![f32::NAN, 1.0], vec![0.0, 0.0]]
        .into_iter()
        .zip(&missing)
        .map(|(vector, missing)| NewVector { chunk: missing.chunk, vector })
        .collect();
    memory.add_vectors("m", &vectors).unwrap();
    let scores = |vector: &[f32]| {
        let hits = memory.find_vectors("m", vector, 9).unwrap().unwrap();
        hits.iter().map(|hit| (hit.score * 100.0).round()).collect::<Vec<_>>()
    };
    assert_eq!(scores(&[0.0, 1.0]), [100.0, 0.0, 0.0]);
    assert_eq!(scores(&[f32::INFINITY, 1.0]), [0.0, 0.0, 0.0]);
}

fn vectors_of_other_models_and_deleted_chunks_are_not_found(new: NewMemory) {
    let memory = with_vectors(new, 3);
    assert_eq!(memory.find_vectors("other", &towards(1), 3).unwrap(), None);
    assert_eq!(["m", "other"].map(|model| memory.count_without_vector(model).unwrap()), [0, 3]);
    assert_eq!(memory.without_vector("other", 0, 10).unwrap().len(), 3);
    assert_eq!(memory.find_vectors("m", &towards(1), 9).unwrap().unwrap().len(), 3);
    memory.replace(&[source("/a", vec![chunk("", "new")])], SystemTime::now()).unwrap();
    assert_eq!(memory.find_vectors("m", &towards(1), 9).unwrap(), Some(Vec::new()));
    let new = memory.without_vector("m", 0, 10).unwrap();
    memory.add_vectors("m", &[NewVector { chunk: new[0].chunk, vector: towards(1) }]).unwrap();
    assert_eq!(memory.find_vectors("m", &towards(1), 9).unwrap().unwrap().len(), 1);
}

fn a_model_with_a_new_vector_length_starts_again(new: NewMemory) {
    let memory = with_vectors(new, 2);
    let chunk = memory.find_vectors("m", &towards(0), 1).unwrap().unwrap()[0].chunk;
    memory.add_vectors("m", &[NewVector { chunk, vector: vec![1.0; 8] }]).unwrap();
    assert_eq!(memory.find_vectors("m", &[1.0; 8], 9).unwrap().unwrap().len(), 1);
    assert_eq!(memory.size().unwrap().vectors, 1);
    assert_eq!(memory.without_vector("m", 0, 9).unwrap().len(), 1);
}

/// Numbers from the same seed are the same, and otherwise far apart.
pub(super) fn scattered(seed: u64) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..128).map(|_| random.f32() - 0.5).collect()
}

/// Nearly the direction of `towards`, each a little different; the nearer the smaller `off`.
pub(super) fn near(towards: &[f32], off: f32, seed: u64) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(seed);
    towards.iter().map(|number| number + off * (random.f32() - 0.5)).collect()
}

/// Puts in a source whose chunks have these vectors.
pub(super) fn add(memory: &dyn MemoryStore, path: &str, vectors: &[Vec<f32>]) {
    add_to(memory, &CollectionName::default(), path, vectors);
}

pub(super) fn add_to(
    memory: &dyn MemoryStore,
    collection: &CollectionName,
    path: &str,
    vectors: &[Vec<f32>],
) {
    let chunks = vectors.iter().map(|_| chunk("", path)).collect();
    let source = NewSource { collection: collection.clone(), ..source(path, chunks) };
    memory.replace(&[source], SystemTime::now()).unwrap();
    let missing = memory.without_vector("m", 0, vectors.len()).unwrap();
    assert_eq!(missing.len(), vectors.len());
    let vectors = missing.into_iter().zip(vectors);
    let vectors: Vec<NewVector> =
        vectors.map(|(missing, vector)| NewVector { chunk: missing.chunk, vector: vector.clone() }).collect();
    memory.add_vectors("m", &vectors).unwrap();
}

pub(super) fn sources_near(memory: &dyn MemoryStore, vector: &[f32], count: usize) -> Vec<String> {
    let mut found = Vec::new();
    let read = memory.snapshot(&mut |snapshot| {
        let hits = snapshot.find_vectors("m", vector, count)?.unwrap_or_default();
        found = snapshot.passages(&hits.iter().map(|hit| hit.chunk).collect::<Vec<_>>(), None)?;
        Ok(())
    });
    read.unwrap();
    found.into_iter().map(|passage| passage.source).collect()
}

/// Many chunks about anything, so that not all vectors are compared.
fn many(new: NewMemory) -> TestMemory {
    let memory = new();
    add(&*memory, "/others", &(0..5_300).map(scattered).collect::<Vec<_>>());
    memory.sync().unwrap();
    memory
}

fn the_rest_of_a_topic_is_found_after_most_of_it_was_removed(new: NewMemory) {
    let memory = many(new);
    let topic = scattered(77_777);
    for by_another_process in [false, true] {
        add(&*memory, "/boiler", &(0..700).map(|seed| near(&topic, 0.01, seed)).collect::<Vec<_>>());
        add(&*memory, "/left", &(0..3).map(|seed| near(&topic, 0.3, seed)).collect::<Vec<_>>());
        assert_eq!(sources_near(&*memory, &topic, 3), ["/boiler"; 3]);
        let another = memory.another();
        let forgetting = if by_another_process { &*another } else { &*memory };
        forgetting.remove(&["/boiler".into()]).unwrap();
        assert_eq!(sources_near(&*memory, &topic, 3), ["/left"; 3], "{by_another_process}");
    }
}

fn a_note_that_is_saved_repeatedly_is_found(new: NewMemory) {
    let memory = many(new);
    let topic = scattered(77_777);
    add(&*memory, "/left", &[near(&topic, 0.3, 1)]);
    for round in 0..60 {
        add(&*memory, "note:1", &(0..5).map(|seed| near(&topic, 0.01, round * 5 + seed)).collect::<Vec<_>>());
        let found = sources_near(&*memory, &topic, 6);
        assert_eq!(found, ["note:1", "note:1", "note:1", "note:1", "note:1", "/left"], "round {round}");
    }
}

fn a_source_that_is_replaced_during_a_search_is_found_in_its_old_form_or_in_its_new_one(new: NewMemory) {
    let memory = many(new);
    let topic = scattered(77_777);
    add(&*memory, "note:1", &[near(&topic, 0.01, 1)]);
    let another = memory.another();
    let words = WordQuery::of("note").unwrap();
    let (mut by_words, mut by_meaning) = (Vec::new(), Vec::new());
    let read = memory.snapshot(&mut |snapshot| {
        let hits = snapshot.find_words(&words, 5)?;
        // The note is saved again, and another search comes in between.
        add(&*another, "note:1", &[near(&topic, 0.01, 2)]);
        assert_eq!(sources_near(&*another, &topic, 1), ["note:1"]);
        let near = snapshot.find_vectors("m", &topic, 1)?.unwrap_or_default();
        let read = |hits: &[ChunkHit]| {
            snapshot.passages(&hits.iter().map(|hit| hit.chunk).collect::<Vec<_>>(), Some(&words))
        };
        (by_words, by_meaning) = (read(&hits)?, read(&near)?);
        Ok(())
    });
    read.unwrap();
    assert_eq!((by_words.len(), by_words[0].source.as_str()), (1, "note:1"));
    assert_eq!(by_meaning, by_words, "both of the same moment");
    assert_eq!(sources_near(&*memory, &topic, 1), ["note:1"]);
}

fn two_stores_that_write_the_same_sources_lose_and_double_none(new: NewMemory) {
    let memory = new();
    let sources: Vec<NewSource> = (0..40)
        .map(|number| source(&format!("/{number}"), vec![chunk("", "one"), chunk("", "two")]))
        .collect();
    let write = |store: &dyn MemoryStore, sources: &[NewSource]| {
        for part in sources.chunks(7) {
            store.replace(part, SystemTime::now()).unwrap();
            let missing = store.without_vector("m", 0, 100).unwrap();
            let vectors: Vec<NewVector> = missing
                .iter()
                .map(|missing| NewVector {
                    chunk: missing.chunk,
                    vector: towards(missing.chunk as usize % 128),
                })
                .collect();
            store.add_vectors("m", &vectors).unwrap();
            store.restamp(&[(part[0].path.clone(), stamp(1))]).unwrap();
        }
    };
    let reversed: Vec<NewSource> = sources.iter().rev().cloned().collect();
    std::thread::scope(|scope| {
        for order in [&sources, &reversed, &sources] {
            let store = memory.another();
            scope.spawn(move || write(&*store, order));
        }
    });
    // Vectors of chunks that were replaced meanwhile are missing. The next run adds them.
    write(&*memory, &sources);
    let size = memory.size().unwrap();
    assert_eq!((size.sources, size.chunks, size.vectors), (40, 80, 80));
    assert_eq!(found(&*memory, "one").len(), 10);
    memory.check().unwrap();
}

/// Enough chunks that common words are not ranked in full.
fn large(new: NewMemory) -> TestMemory {
    let chunks = (0..20_000).map(|number| {
        let rare = if number % 5_000 == 17 { "zebra" } else { "horse" };
        chunk("", &format!("common house {rare} number{}", number % 100))
    });
    filled(new, &[source("/large", chunks.collect())])
}

fn common_and_rare_words_do_not_hide_each_other(new: NewMemory) {
    let memory = large(new);
    let zebras = found(&*memory, "the common house of the zebra");
    assert_eq!(zebras.iter().filter(|text| text.contains("zebra")).count(), 4);
    assert!(zebras[..4].iter().all(|text| text.contains("zebra")), "{zebras:?}");
    assert_eq!(zebras.len(), 10, "the rest is found by the common words");
    assert_eq!(found(&*memory, "unheardof house").len(), 10);
    assert_eq!(found(&*memory, "house").len(), 10);
    assert_eq!(found(&*memory, "common house").len(), 10);
    assert_eq!(found(&*memory, "unheardof"), [""; 0]);
}

fn any_question_is_text(new: NewMemory) {
    let memory = filled(new, &[source("/a", vec![chunk("title", "plain text")])]);
    proptest!(|(question in any::<String>())| {
        found(&*memory, &question);
    });
}

fn operators_are_text_too(new: NewMemory) {
    let memory = filled(new, &[source("/a", vec![chunk("title", "plain text")])]);
    let operators = [
        "NEAR", "NEAR(", "AND", "OR", "NOT", "\"", "'", "(", ")", "*", "^", "-", "+", ":", "title:", "{",
        "}", ",", "plain", "--", ";", "\\", "\0", "text*", "\"\"", "a\"b", "don't", "%", "_", "é", "\u{301}",
        "🦙", "\u{2}", "&", "|", "!", "<->", ":A",
    ];
    proptest!(|(words in prop::collection::vec(prop::sample::select(operators.to_vec()), 0..12), gap in "[ \t\n]?")| {
        let question = words.join(&gap);
        let hits = found(&*memory, &question);
        if words.contains(&"plain") && gap == " " {
            prop_assert_eq!(hits.len(), 1, "{}", question);
        }
    });
}

fn a_question_of_a_megabyte_is_answered(new: NewMemory) {
    let memory = filled(new, &[source("/a", vec![chunk("", "needle")])]);
    assert_eq!(found(&*memory, &("needle ".to_owned() + &"hay* ".repeat(200_000))), ["needle"]);
    assert_eq!(found(&*memory, &"\"(".repeat(500_000)), [""; 0]);
}
