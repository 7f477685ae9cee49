//! Search by meaning.

use super::*;

hob_testkit::on_both_databases!(
    sqlite, postgres:
    the_nearest_vector_is_found_among_few_and_among_many,
    an_invalid_vector_does_no_harm,
    vectors_of_other_models_and_deleted_chunks_are_not_found,
    a_model_with_a_new_vector_length_starts_again,
    the_rest_of_a_topic_is_found_after_most_of_it_was_removed,
    a_note_that_is_saved_repeatedly_is_found,
    a_source_that_is_replaced_during_a_search_is_found_in_its_old_form_or_in_its_new_one,
);

/// A vector with its own direction.
pub(super) fn towards(corner: usize) -> Vec<f32> {
    (0..128).map(|index| if index == corner { 1.0 } else { 0.01 }).collect()
}

fn with_vectors(new: NewMemory, count: usize) -> TestMemory {
    let chunks = (0..count).map(|number| chunk("", &format!("number {number}"))).collect();
    let memory = filled(new, &[source("/a", chunks)]);
    let missing = memory.without_vector(&SourceScope::ALL, "m", 0, count).unwrap();
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
        assert!(memory.without_vector(&SourceScope::ALL, "m", 0, 10).unwrap().is_empty());
    }
}

fn an_invalid_vector_does_no_harm(new: NewMemory) {
    let memory = filled(new, &[source("/a", vec![chunk("", "good"), chunk("", "bad"), chunk("", "none")])]);
    let missing = memory.without_vector(&SourceScope::ALL, "m", 0, 9).unwrap();
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
    let missing = |model| memory.count_without_vector(&SourceScope::ALL, model).unwrap();
    assert_eq!(["m", "other"].map(missing), [0, 3]);
    assert_eq!(memory.without_vector(&SourceScope::ALL, "other", 0, 10).unwrap().len(), 3);
    assert_eq!(memory.find_vectors("m", &towards(1), 9).unwrap().unwrap().len(), 3);
    memory.replace(&[source("/a", vec![chunk("", "new")])], SystemTime::now()).unwrap();
    assert_eq!(memory.find_vectors("m", &towards(1), 9).unwrap(), Some(Vec::new()));
    let new = memory.without_vector(&SourceScope::ALL, "m", 0, 10).unwrap();
    memory.add_vectors("m", &[NewVector { chunk: new[0].chunk, vector: towards(1) }]).unwrap();
    assert_eq!(memory.find_vectors("m", &towards(1), 9).unwrap().unwrap().len(), 1);
}

fn a_model_with_a_new_vector_length_starts_again(new: NewMemory) {
    let memory = with_vectors(new, 2);
    let chunk = memory.find_vectors("m", &towards(0), 1).unwrap().unwrap()[0].chunk;
    memory.add_vectors("m", &[NewVector { chunk, vector: vec![1.0; 8] }]).unwrap();
    assert_eq!(memory.find_vectors("m", &[1.0; 8], 9).unwrap().unwrap().len(), 1);
    assert_eq!(memory.size().unwrap().vectors, 1);
    assert_eq!(memory.without_vector(&SourceScope::ALL, "m", 0, 9).unwrap().len(), 1);
}

/// Numbers from the same seed are the same, and otherwise far apart.
pub(in crate::store) fn scattered(seed: u64) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..128).map(|_| random.f32() - 0.5).collect()
}

/// Nearly the direction of `towards`, each a little different; the nearer the smaller `off`.
pub(in crate::store) fn near(towards: &[f32], off: f32, seed: u64) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(seed);
    towards.iter().map(|number| number + off * (random.f32() - 0.5)).collect()
}

/// Puts in a source whose chunks have these vectors.
pub(in crate::store) fn add(memory: &dyn MemoryStore, path: &str, vectors: &[Vec<f32>]) {
    add_to(memory, &CollectionName::default(), path, vectors);
}

pub(in crate::store) fn add_to(
    memory: &dyn MemoryStore,
    collection: &CollectionName,
    path: &str,
    vectors: &[Vec<f32>],
) {
    let chunks = vectors.iter().map(|_| chunk("", path)).collect();
    let source = NewSource { collection: collection.clone(), ..source(path, chunks) };
    memory.replace(&[source], SystemTime::now()).unwrap();
    let missing = memory.without_vector(&SourceScope::ALL, "m", 0, vectors.len()).unwrap();
    assert_eq!(missing.len(), vectors.len());
    let vectors = missing.into_iter().zip(vectors);
    let vectors: Vec<NewVector> =
        vectors.map(|(missing, vector)| NewVector { chunk: missing.chunk, vector: vector.clone() }).collect();
    memory.add_vectors("m", &vectors).unwrap();
}

pub(in crate::store) fn sources_near(memory: &dyn MemoryStore, vector: &[f32], count: usize) -> Vec<String> {
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
