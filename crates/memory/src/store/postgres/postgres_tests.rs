//! The memory in PostgreSQL: pgvector and its index, and damage that a check finds.

use hob_db::DatabaseError;
use hob_db::postgres::PostgresDatabase;
use hob_testkit::{PostgresServer, TestDatabase};

use super::*;
use crate::store::tests::{add, add_to, chunk, connect, near, scattered, source, sources_near};

struct Fixture {
    memory: PostgresMemoryStore,
    database: PostgresDatabase,
    _test_database: TestDatabase,
}

fn fixture() -> Fixture {
    let test_database = PostgresServer::shared().create_database();
    let database = connect(&test_database.url());
    let memory = PostgresMemoryStore::new(database.clone());
    Fixture { memory, database, _test_database: test_database }
}

impl Fixture {
    fn run(&self, sql: &str) {
        self.database.write(|transaction| transaction.run_script(sql)).unwrap();
    }

    fn vector_indexes(&self) -> Vec<String> {
        let read = self.database.read(|transaction| {
            let rows = transaction.query(
                "SELECT indexname::text FROM pg_indexes WHERE indexname LIKE 'memory_vector_of_%' ORDER BY 1",
                &[],
            )?;
            rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
        });
        read.unwrap()
    }
}

#[test]
fn an_index_is_built_with_the_memory_of_the_server_if_that_is_more() {
    let fixture = fixture();
    for (of_server, used) in [("64MB", "512MB"), ("2GB", "2GB")] {
        let limit = fixture.database.write(|transaction| {
            transaction.run_script(&format!("SET LOCAL maintenance_work_mem = '{of_server}'"))?;
            vectors::allow_build_memory(transaction)?;
            Ok(transaction.query_one("SELECT current_setting('maintenance_work_mem')", &[])?.try_get(0)?)
        });
        let limit: String = limit.unwrap();
        assert_eq!(limit, used, "{of_server}");
    }
}

#[test]
fn many_vectors_of_a_model_get_an_index_that_finds_nearly_all_of_the_nearest() {
    let fixture = fixture();
    let memory = &fixture.memory;
    add(memory, "/few", &(0..10).map(scattered).collect::<Vec<_>>());
    memory.sync().unwrap();
    assert_eq!(fixture.vector_indexes(), [""; 0], "few vectors are compared in full");

    // Groups of a hundred, as texts about the same have.
    let vectors: Vec<Vec<f32>> = (0..6_000).map(|seed| near(&scattered(seed / 100), 0.8, seed)).collect();
    add(memory, "/many", &vectors);
    memory.sync().unwrap();
    memory.sync().unwrap();
    assert_eq!(fixture.vector_indexes(), ["memory_vector_of_1"]);

    let find = |seed: u64, exact: bool| {
        let question = near(&scattered(seed), 0.8, seed + 100_000);
        let mut found = Vec::new();
        fixture
            .database
            .read(|transaction| {
                let ways = if exact { "enable_indexscan" } else { "enable_seqscan" };
                transaction.run_script(&format!("SET LOCAL {ways} = off"))?;
                found = vectors::nearest(transaction, &Scope(None), "m", &question, 10)?.unwrap_or_default();
                Ok(())
            })
            .unwrap();
        found.iter().map(|hit| hit.chunk).collect::<Vec<_>>()
    };
    let mut right = 0;
    for seed in 0..50 {
        let (exact, by_index) = (find(seed, true), find(seed, false));
        right += by_index.iter().filter(|chunk| exact.contains(chunk)).count();
    }
    assert!(right >= 475, "{right} of 500");
    // A model that starts again has no index of its old vectors.
    let some = memory.without_vector(&SourceScope::ALL, "other", 0, 1).unwrap();
    memory.add_vectors("m", &[NewVector { chunk: some[0].chunk, vector: vec![1.0; 8] }]).unwrap();
    assert_eq!(fixture.vector_indexes(), [""; 0]);
    assert_eq!(memory.find_vectors("m", &[1.0; 8], 9).unwrap().unwrap().len(), 1);
}

#[test]
fn a_large_collection_among_others_finds_nearly_all_of_its_nearest() {
    let fixture = fixture();
    let memory = &fixture.memory;
    let small = |seed: u64| scattered(seed)[..8].to_vec();
    let team = CollectionName::parse("team").unwrap();
    // More than are compared in full.
    let own: Vec<Vec<f32>> = (0..10_100).map(small).collect();
    add_to(memory, &team, "/team", &own);
    add(memory, "/others", &(20_000..24_000).map(small).collect::<Vec<_>>());
    memory.sync().unwrap();
    fixture.run("ANALYZE");
    let scope = CollectionSet::of(team);
    let mut right = 0;
    for seed in 20_000..20_020 {
        let mut found = Vec::new();
        let read = memory.snapshot_of(&scope, &mut |snapshot| {
            let hits = snapshot.find_vectors("m", &small(seed), 10)?.unwrap_or_default();
            assert_eq!(hits.len(), 10);
            found = snapshot.passages(&hits.iter().map(|hit| hit.chunk).collect::<Vec<_>>(), None)?;
            Ok(())
        });
        read.unwrap();
        assert!(found.iter().all(|passage| passage.source == "/team"), "{seed}: {found:?}");
        let question = small(seed);
        let mut nearest: Vec<(f32, usize)> =
            own.iter().enumerate().map(|(position, vector)| (cosine(&question, vector), position)).collect();
        nearest.sort_by(|one, other| other.0.total_cmp(&one.0));
        let is_right = |position: u32| nearest[..10].iter().any(|(_, own)| *own == position as usize);
        right += found.iter().filter(|found| is_right(found.position)).count();
    }
    assert!(right >= 180, "{right} of 200");
}

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    let product =
        |one: &[f32], other: &[f32]| one.iter().zip(other).map(|(one, other)| one * other).sum::<f32>();
    product(one, other) / (product(one, one) * product(other, other)).sqrt()
}

#[test]
fn without_pgvector_words_work_and_vectors_say_what_to_do() {
    let fixture = fixture();
    let memory = &fixture.memory;
    memory.replace(&[source("/a", vec![chunk("", "apple")])], SystemTime::now()).unwrap();
    // A role that may not create extensions.
    let owner = format!("plain_{}", std::process::id());
    fixture.run(&format!(
        "CREATE ROLE {owner} LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO {owner}; \
         GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {owner}"
    ));
    let url = fixture._test_database.url().replace("postgres://hob@", &format!("postgres://{owner}@"));
    let plain = PostgresMemoryStore::new(connect(&url));
    let query = WordQuery::of("apple").unwrap();
    assert_eq!(plain.find_words(&query, 5).unwrap().len(), 1);
    assert_eq!(plain.find_vectors("m", &[1.0], 5).unwrap(), None);
    let missing = plain.without_vector(&SourceScope::ALL, "m", 0, 5).unwrap();
    let count = plain.count_without_vector(&SourceScope::ALL, "m").unwrap();
    assert_eq!((count, plain.size().unwrap().vectors), (1, 0));
    let new = NewVector { chunk: missing[0].chunk, vector: vec![1.0] };
    let error = plain.add_vectors("m", std::slice::from_ref(&new)).unwrap_err();
    assert!(matches!(error, DatabaseError::NeedsExtension { .. }), "{error:?}");
    let said = error.to_string();
    assert!(said.contains("CREATE EXTENSION vector") && said.contains("pgvector"), "{said}");
    drop(plain);
    // An administrator follows the advice.
    fixture.run("CREATE EXTENSION vector");
    memory.add_vectors("m", &[new]).unwrap();
    assert_eq!(sources_near(memory, &[1.0], 1), ["/a"]);
    fixture.run(&format!("DROP OWNED BY {owner}; DROP ROLE {owner}"));
}

#[test]
fn a_check_finds_words_that_are_not_those_of_the_text() {
    for damage in ["UPDATE memory_words SET words = 'pear:1'", "DELETE FROM memory_words"] {
        let fixture = fixture();
        fixture.memory.replace(&[source("/a", vec![chunk("", "apple")])], SystemTime::now()).unwrap();
        fixture.memory.check().unwrap();
        fixture.run(damage);
        assert!(fixture.memory.check().is_err(), "{damage}");
    }
}
