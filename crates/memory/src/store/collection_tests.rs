//! Collections in every database of the memory.

use super::tests::{NewMemory, add, add_to, chunk, near, postgres, scattered, source, sqlite};
use super::*;

hob_testkit::on_both_databases!(
    sqlite, postgres:
    a_source_is_found_in_its_collections_only,
    a_source_stays_until_it_is_removed_from_its_last_collection,
    missing_vectors_are_those_of_the_collections_and_paths,
    sources_without_text_are_not_counted,
    a_small_collection_in_a_large_memory_is_searched_in_full,
    a_large_collection_is_searched_as_if_it_were_alone,
);

fn name(text: &str) -> CollectionName {
    CollectionName::parse(text).unwrap()
}

fn set(names: &[&str]) -> CollectionSet {
    CollectionSet::Only(names.iter().map(|text| name(text)).collect())
}

fn in_collection(collection: &str, path: &str, texts: &[&str]) -> NewSource {
    let chunks = texts.iter().map(|text| chunk("", text)).collect();
    NewSource { collection: name(collection), ..source(path, chunks) }
}

/// The sources that a search by words finds, best first.
fn by_words(memory: &dyn MemoryStore, collections: &CollectionSet, question: &str) -> Vec<String> {
    let query = WordQuery::of(question).unwrap();
    found(memory, collections, &mut |snapshot| snapshot.find_words(&query, 10))
}

/// The sources that a search by meaning finds, best first.
fn by_meaning(
    memory: &dyn MemoryStore,
    collections: &CollectionSet,
    vector: &[f32],
    count: usize,
) -> Vec<String> {
    found(memory, collections, &mut |snapshot| {
        Ok(snapshot.find_vectors("m", vector, count)?.unwrap_or_default())
    })
}

type Find<'a> = &'a mut dyn FnMut(&dyn MemorySnapshot) -> DbResult<Vec<ChunkHit>>;

fn found(memory: &dyn MemoryStore, collections: &CollectionSet, find: Find<'_>) -> Vec<String> {
    let mut passages = Vec::new();
    let read = memory.snapshot_of(collections, &mut |snapshot| {
        let chunks: Vec<i64> = find(snapshot)?.iter().map(|hit| hit.chunk).collect();
        passages = snapshot.passages(&chunks, None)?;
        Ok(())
    });
    read.unwrap();
    passages.into_iter().map(|passage| passage.source).collect()
}

/// Paths in an order that does not depend on the database.
fn sorted(mut paths: Vec<String>) -> Vec<String> {
    paths.sort();
    paths
}

fn a_source_is_found_in_its_collections_only(new: NewMemory) {
    let memory = new();
    let sources = [
        in_collection("default", "/own", &["apple pie"]),
        in_collection("team", "/team", &["apple tart"]),
        in_collection("handbook", "/handbook", &["apple cake", "plum cake"]),
    ];
    memory.replace(&sources, SystemTime::now()).unwrap();
    memory.add_to_collection(&name("team"), &["/handbook".into(), "/nowhere".into()]).unwrap();
    memory.add_to_collection(&name("team"), &["/handbook".into()]).unwrap();
    let vectors: Vec<NewVector> = memory
        .without_vector(&SourceScope::ALL, "m", 0, 9)
        .unwrap()
        .iter()
        .map(|missing| NewVector { chunk: missing.chunk, vector: near(&scattered(7), 0.1, 7) })
        .collect();
    memory.add_vectors("m", &vectors).unwrap();

    let expected: [(CollectionSet, &[&str]); 6] = [
        (CollectionSet::All, &["/handbook", "/own", "/team"]),
        (set(&["default"]), &["/own"]),
        (set(&["team"]), &["/handbook", "/team"]),
        (set(&["default", "handbook"]), &["/handbook", "/own"]),
        (set(&["unknown"]), &[]),
        (CollectionSet::none(), &[]),
    ];
    for (collections, paths) in expected {
        assert_eq!(sorted(by_words(&*memory, &collections, "apple")), paths, "{collections:?}");
        let mut meant = sorted(by_meaning(&*memory, &collections, &scattered(7), 9));
        meant.dedup();
        assert_eq!(meant, paths, "{collections:?}");
        assert_eq!(sorted(memory.paths_below("/", &collections, 9).unwrap()), paths, "{collections:?}");
        let size = memory.size_of(&collections).unwrap();
        assert_eq!(size.sources, paths.len() as u64, "{collections:?}");
        assert_eq!(size.vectors, size.chunks, "{collections:?}");
        assert_eq!(size.models.is_empty(), paths.is_empty(), "{collections:?}");
    }
    let collections = |collections: &CollectionSet| memory.size_of(collections).unwrap().collections;
    let sized = |text: &str, sources, chunks| CollectionSize { name: text.into(), sources, chunks };
    let all = [sized("default", 1, 1), sized("handbook", 1, 2), sized("team", 2, 3)];
    assert_eq!(collections(&CollectionSet::All), all);
    assert_eq!(collections(&set(&["team"])), [sized("team", 2, 3)]);
}

fn missing_vectors_are_those_of_the_collections_and_paths(new: NewMemory) {
    let memory = new();
    let sources = [
        in_collection("default", "/own", &["apple pie"]),
        in_collection("team", "/team/a", &["apple tart", "plum tart"]),
        in_collection("team", "/team/ab", &["cherry tart"]),
    ];
    memory.replace(&sources, SystemTime::now()).unwrap();
    let missing = |sources: &SourceScope| {
        let found = memory.without_vector(sources, "m", 0, 9).unwrap();
        assert_eq!(memory.count_without_vector(sources, "m").unwrap(), found.len() as u64);
        found.into_iter().map(|chunk| chunk.text).collect::<Vec<_>>()
    };
    let [default, team, none] =
        [set(&["default"]), set(&["team"]), CollectionSet::none()].map(SourceScope::Collections);
    let at = |path: &str| SourceScope::Path(path.to_owned());
    assert_eq!(missing(&team), ["apple tart", "plum tart", "cherry tart"]);
    assert_eq!(missing(&default), ["apple pie"]);
    assert_eq!(missing(&none), [""; 0]);
    let first = memory.without_vector(&team, "m", 0, 1).unwrap()[0].chunk;
    memory.add_vectors("m", &[NewVector { chunk: first, vector: scattered(7) }]).unwrap();
    assert_eq!(missing(&team), ["plum tart", "cherry tart"]);
    assert_eq!(missing(&SourceScope::ALL), ["apple pie", "plum tart", "cherry tart"]);
    assert_eq!(missing(&at("/team/a")), ["plum tart"]);
    assert_eq!(missing(&at("/team")), [""; 0]);
}

fn sources_without_text_are_not_counted(new: NewMemory) {
    let memory = new();
    let sources = [
        in_collection("team", "/team", &["apple tart"]),
        in_collection("team", "/empty", &[]),
        in_collection("default", "/blank", &[]),
    ];
    memory.replace(&sources, SystemTime::now()).unwrap();
    let size = memory.size().unwrap();
    let team = CollectionSize { name: "team".into(), sources: 1, chunks: 1 };
    assert_eq!((size.sources, size.collections), (1, vec![team]));
    assert_eq!(memory.size_of(&set(&["default"])).unwrap().sources, 0);
}

fn a_source_stays_until_it_is_removed_from_its_last_collection(new: NewMemory) {
    let memory = new();
    memory.replace(&[in_collection("default", "/a", &["apple", "pear"])], SystemTime::now()).unwrap();
    memory.add_to_collection(&name("team"), &["/a".into()]).unwrap();
    // A new text is the text in all its collections.
    memory.replace(&[in_collection("default", "/a", &["cherry"])], SystemTime::now()).unwrap();
    assert_eq!(by_words(&*memory, &set(&["team"]), "cherry"), ["/a"]);
    assert_eq!(by_words(&*memory, &set(&["team"]), "apple"), [""; 0]);

    let paths = ["/a".to_owned(), "/b".to_owned()];
    let removed = RemovedSources { sources: 1, chunks: 1 };
    assert_eq!(memory.remove_from_collection(&name("other"), &paths).unwrap(), RemovedSources::default());
    assert_eq!(memory.remove_from_collection(&name("default"), &paths).unwrap(), removed);
    assert_eq!(memory.remove_from_collection(&name("default"), &paths).unwrap(), RemovedSources::default());
    assert_eq!(by_words(&*memory, &set(&["default"]), "cherry"), [""; 0]);
    assert_eq!(by_words(&*memory, &set(&["team"]), "cherry"), ["/a"]);
    assert_eq!(memory.remove_from_collection(&name("team"), &paths).unwrap(), removed);
    assert_eq!(memory.size().unwrap().sources, 0);
    memory.check().unwrap();
    // `remove` removes from all.
    memory.replace(&[in_collection("team", "/a", &["apple"])], SystemTime::now()).unwrap();
    memory.add_to_collection(&name("default"), &["/a".into()]).unwrap();
    assert_eq!(memory.remove(&paths).unwrap(), removed);
    assert_eq!(memory.size().unwrap().collections, []);
}

fn a_small_collection_in_a_large_memory_is_searched_in_full(new: NewMemory) {
    let memory = new();
    let topic = scattered(77_777);
    // The oldest, so that a look at the newest chunks alone would miss them.
    let few: Vec<Vec<f32>> = (0..3).map(|seed| near(&topic, 0.9, seed)).collect();
    add_to(&*memory, &name("team"), "/team", &few);
    // All of them are nearer, and have the same words.
    let many: Vec<Vec<f32>> = (0..6_000).map(|seed| near(&topic, 0.01, seed)).collect();
    add(&*memory, "/team/others", &many);
    memory.sync().unwrap();
    assert_eq!(by_meaning(&*memory, &set(&["team"]), &topic, 3), ["/team"; 3]);
    assert_eq!(by_meaning(&*memory, &set(&["team"]), &topic, 9), ["/team"; 3]);
    assert_eq!(by_meaning(&*memory, &CollectionSet::All, &topic, 3), ["/team/others"; 3]);
    assert_eq!(by_words(&*memory, &set(&["team"]), "a team of people"), ["/team"; 3]);
}

fn a_large_collection_is_searched_as_if_it_were_alone(new: NewMemory) {
    let memory = new();
    let texts = |count: usize| (0..count).map(|number| format!("common house number{}", number % 100));
    let own: Vec<String> = texts(7_000).chain(["zebra".to_owned(), "common zebra".to_owned()]).collect();
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let others: Vec<String> = texts(7_000).chain((0..50).map(|_| "zebra house".to_owned())).collect();
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    memory.replace(&[in_collection("team", "/team", &own)], SystemTime::now()).unwrap();
    memory.replace(&[in_collection("default", "/others", &others)], SystemTime::now()).unwrap();
    memory.sync().unwrap();
    let team = set(&["team"]);
    assert_eq!(by_words(&*memory, &team, "zebra"), ["/team"; 2]);
    assert_eq!(by_words(&*memory, &team, "house"), ["/team"; 10]);
    assert_eq!(by_words(&*memory, &team, "common house"), ["/team"; 10]);
    assert_eq!(by_words(&*memory, &team, "the common house of the zebra"), ["/team"; 10]);
    assert_eq!(by_words(&*memory, &set(&["default"]), "zebra"), ["/others"; 10]);
}
