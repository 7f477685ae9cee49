//! What every database of the memory does.

mod sources;
mod vectors;
mod words;

use std::ops::Deref;
use std::sync::Arc;

use hob_db::Database;
use hob_db::postgres::PostgresDatabase;
use hob_testkit::{PostgresServer, TestDatabase};

use super::*;
use sources::{
    a_directory_does_not_include_paths_with_the_same_prefix, a_new_date_of_an_unchanged_file_is_saved,
    a_saved_file_replaces_itself_and_a_removed_one_is_deleted, any_text_can_be_saved, the_size_is_reported,
    two_stores_that_write_the_same_sources_lose_and_double_none,
};
use vectors::{
    a_model_with_a_new_vector_length_starts_again, a_note_that_is_saved_repeatedly_is_found,
    a_source_that_is_replaced_during_a_search_is_found_in_its_old_form_or_in_its_new_one,
    an_invalid_vector_does_no_harm, the_nearest_vector_is_found_among_few_and_among_many,
    the_rest_of_a_topic_is_found_after_most_of_it_was_removed,
    vectors_of_other_models_and_deleted_chunks_are_not_found,
};
pub(super) use vectors::{add, near, scattered, sources_near};
use words::{
    a_chunk_with_few_of_the_words_does_not_cover_the_question, a_question_of_a_megabyte_is_answered,
    a_title_counts_more_than_the_text_and_word_forms_and_accents_do_not_matter, any_question_is_text,
    common_and_rare_words_do_not_hide_each_other, operators_are_text_too,
    phrases_rare_words_and_short_chunks_rank_alike, the_words_of_the_question_are_marked_in_the_passage,
};

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
