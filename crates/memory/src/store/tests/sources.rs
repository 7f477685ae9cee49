//! Sources: saved, replaced, removed and counted, also by several processes at once.

use super::vectors::towards;
use super::*;

hob_testkit::on_both_databases!(
    sqlite, postgres:
    a_saved_file_replaces_itself_and_a_removed_one_is_deleted,
    any_text_can_be_saved,
    a_directory_does_not_include_paths_with_the_same_prefix,
    a_new_date_of_an_unchanged_file_is_saved,
    the_size_is_reported,
    two_stores_that_write_the_same_sources_lose_and_double_none,
);

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
    let kept = memory.without_vector(&SourceScope::ALL, "m", 0, 10).unwrap();
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
    let missing = memory.without_vector(&SourceScope::ALL, "m", 0, 1).unwrap();
    memory.add_vectors("m", &[NewVector { chunk: missing[0].chunk, vector: towards(1) }]).unwrap();
    memory.sync().unwrap();
    let size = memory.size().unwrap();
    assert!(size.database_bytes > 8_192 && size.last_indexed.is_some(), "{size:?}");
    let expected = MemorySize {
        sources: 1,
        notes: 1,
        chunks: 2,
        tokens: 6,
        source_bytes: 11,
        database_bytes: size.database_bytes,
        vectors: 1,
        models: vec!["m".into()],
        collections: vec![CollectionSize { name: "default".into(), sources: 1, chunks: 2 }],
        last_indexed: size.last_indexed,
    };
    assert_eq!(size, expected);
}

fn two_stores_that_write_the_same_sources_lose_and_double_none(new: NewMemory) {
    let memory = new();
    let sources: Vec<NewSource> = (0..40)
        .map(|number| source(&format!("/{number}"), vec![chunk("", "one"), chunk("", "two")]))
        .collect();
    let write = |store: &dyn MemoryStore, sources: &[NewSource]| {
        for part in sources.chunks(7) {
            store.replace(part, SystemTime::now()).unwrap();
            let missing = store.without_vector(&SourceScope::ALL, "m", 0, 100).unwrap();
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
