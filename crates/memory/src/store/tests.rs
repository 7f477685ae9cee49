//! What every database of the memory does.

use proptest::prelude::*;

use super::*;

pub(super) fn chunk(title: &str, text: &str) -> NewChunk {
    NewChunk { title: title.into(), text: text.into(), line: 1, end_line: 2, tokens: 3 }
}

fn stamp(of: u8) -> SourceStamp {
    SourceStamp { hash: [of; 32], modified: 7, size: 11, recipe: "512/64".into() }
}

pub(super) fn source(path: &str, chunks: Vec<NewChunk>) -> NewSource {
    NewSource {
        path: path.into(),
        title: "a title".into(),
        place: PositionUnit::Line,
        stamp: stamp(1),
        chunks,
    }
}

/// An empty memory.
fn empty() -> Box<dyn MemoryStore> {
    Box::new(SqliteMemoryStore::in_memory().unwrap())
}

fn memory(sources: &[NewSource]) -> Box<dyn MemoryStore> {
    let memory = empty();
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

#[test]
fn a_title_counts_more_than_the_text_and_word_forms_and_accents_do_not_matter() {
    let memory = memory(&[source(
        "/a",
        vec![
            chunk("Garden", "The boiler is mentioned here in passing, between roses and a hedge."),
            chunk("Boilers", "Service it every autumn, before it is cold."),
            chunk("Caf\u{e9}", "Nothing to see."),
        ],
    )]);
    assert_eq!(found(&*memory, "boiler")[0], "Service it every autumn, before it is cold.");
    assert_eq!(found(&*memory, "boilers?").len(), 2);
    assert_eq!(found(&*memory, "CAFE"), ["Nothing to see."]);
}

#[test]
fn a_chunk_with_few_of_the_words_does_not_cover_the_question() {
    let memory = memory(&[source(
        "/a",
        vec![chunk("Pump", "the boiler hums"), chunk("", "a boiler"), chunk("", "a garden")],
    )]);
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

#[test]
fn the_words_of_the_question_are_marked_in_the_passage() {
    let memory = memory(&[source("/a", vec![chunk("", "Zwölf boilers\u{2}, one valve.")])]);
    let query = WordQuery::of("Which boiler has a VALVE?").unwrap();
    let hits = memory.find_words(&query, 5).unwrap();
    let passages = memory.passages(&[hits[0].chunk, 4711], Some(&query)).unwrap();
    let [passage] = passages.as_slice() else { panic!("one: {passages:?}") };
    let marked: Vec<&str> = passage.marks.iter().map(|mark| &passage.text[mark.clone()]).collect();
    assert_eq!(marked, ["boilers", "valve"]);
    assert_eq!((passage.source.as_str(), passage.line, passage.end_line), ("/a", 1, 2));
}

#[test]
fn a_saved_file_replaces_itself_and_a_removed_one_is_deleted() {
    let memory = memory(&[
        source("/a", vec![chunk("", "apple"), chunk("", "pear")]),
        source("/b", vec![chunk("", "plum")]),
    ]);
    memory.replace(&[source("/a", vec![chunk("", "cherry")])], SystemTime::now()).unwrap();
    assert_eq!(found(&*memory, "apple pear"), [""; 0]);
    assert_eq!(found(&*memory, "cherry"), ["cherry"]);
    assert_eq!(memory.remove(&["/b".into(), "/c".into()]).unwrap(), RemovedSources { sources: 1, chunks: 1 });
    assert_eq!(found(&*memory, "plum"), [""; 0]);
    let size = memory.size().unwrap();
    assert_eq!((size.sources, size.chunks, size.tokens, size.source_bytes), (1, 1, 3, 11));
}

#[test]
fn a_directory_does_not_include_paths_with_the_same_prefix() {
    let paths = ["/a", "/a/b", "/a/b/c", "/a/bc", "/a0", "note:1"];
    let memory = memory(&paths.map(|path| source(path, Vec::new())));
    let below = |path: &str| {
        let mut below = memory.paths_below(path, 100).unwrap();
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

#[test]
fn a_new_date_of_an_unchanged_file_is_saved() {
    let memory = memory(&[source("/a", Vec::new())]);
    let touched = SourceStamp { modified: 99, ..stamp(1) };
    memory.restamp(&[("/a".into(), touched.clone())]).unwrap();
    assert_eq!(memory.known_below("/a").unwrap()["/a"], touched);
}

/// A vector with its own direction.
fn towards(corner: usize) -> Vec<f32> {
    (0..128).map(|index| if index == corner { 1.0 } else { 0.01 }).collect()
}

fn with_vectors(count: usize) -> Box<dyn MemoryStore> {
    let chunks = (0..count).map(|number| chunk("", &format!("number {number}"))).collect();
    let memory = memory(&[source("/a", chunks)]);
    let missing = memory.without_vector("m", 0, count).unwrap();
    let vectors: Vec<NewVector> = missing
        .iter()
        .enumerate()
        .map(|(index, chunk)| NewVector { chunk: chunk.chunk, vector: towards(index % 128) })
        .collect();
    memory.add_vectors("m", &vectors).unwrap();
    memory
}

#[test]
fn the_nearest_vector_is_found_among_few_and_among_many() {
    for count in [100, 6_000] {
        let memory = with_vectors(count);
        let hits = memory.find_vectors("m", &towards(42), 3).unwrap().unwrap();
        let ids: Vec<i64> = hits.iter().map(|hit| hit.chunk).collect();
        let passages = memory.passages(&ids, None).unwrap();
        assert_eq!(passages[0].text, "number 42");
        assert!((hits[0].score - 1.0).abs() < 0.01, "{hits:?}");
        assert!(memory.without_vector("m", 0, 10).unwrap().is_empty());
    }
}

#[test]
fn vectors_of_other_models_and_deleted_chunks_are_not_found() {
    let memory = with_vectors(3);
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

#[test]
fn a_model_with_a_new_vector_length_starts_again() {
    let memory = with_vectors(2);
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
    let chunks = vectors.iter().map(|_| chunk("", path)).collect();
    memory.replace(&[source(path, chunks)], SystemTime::now()).unwrap();
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

/// Enough chunks that common words are not ranked in full.
fn large() -> Box<dyn MemoryStore> {
    let chunks = (0..20_000).map(|number| {
        let rare = if number % 5_000 == 17 { "zebra" } else { "horse" };
        chunk("", &format!("common house {rare} number{}", number % 100))
    });
    memory(&[source("/large", chunks.collect())])
}

#[test]
fn common_and_rare_words_do_not_hide_each_other() {
    let memory = large();
    let zebras = found(&*memory, "the common house of the zebra");
    assert_eq!(zebras.iter().filter(|text| text.contains("zebra")).count(), 4);
    assert!(zebras[..4].iter().all(|text| text.contains("zebra")), "{zebras:?}");
    assert_eq!(zebras.len(), 10, "the rest is found by the common words");
    assert_eq!(found(&*memory, "unheardof house").len(), 10);
    assert_eq!(found(&*memory, "house").len(), 10);
    assert_eq!(found(&*memory, "common house").len(), 10);
    assert_eq!(found(&*memory, "unheardof"), [""; 0]);
}

proptest! {
    #[test]
    fn any_question_is_text(question in any::<String>()) {
        let memory = memory(&[source("/a", vec![chunk("title", "plain text")])]);
        found(&*memory, &question);
    }

    #[test]
    fn operators_are_text_too(words in prop::collection::vec(
        prop::sample::select(vec![
            "NEAR", "NEAR(", "AND", "OR", "NOT", "\"", "'", "(", ")", "*", "^", "-", "+", ":", "title:", "{", "}", ",", "plain",
            "--", ";", "\\", "\0", "text*", "\"\"", "a\"b", "don't", "%", "_", "é", "\u{301}", "🦙", "\u{2}",
        ]), 0..12), gap in "[ \t\n]?")
    {
        let memory = memory(&[source("/a", vec![chunk("title", "plain text")])]);
        let question = words.join(&gap);
        let hits = found(&*memory, &question);
        if words.contains(&"plain") && gap == " " {
            prop_assert_eq!(hits.len(), 1, "{}", question);
        }
    }
}

#[test]
fn a_question_of_a_megabyte_is_answered() {
    let memory = memory(&[source("/a", vec![chunk("", "needle")])]);
    assert_eq!(found(&*memory, &("needle ".to_owned() + &"hay* ".repeat(200_000))), ["needle"]);
    assert_eq!(found(&*memory, &"\"(".repeat(500_000)), [""; 0]);
}
