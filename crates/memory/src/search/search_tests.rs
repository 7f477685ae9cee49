//! What a search by words finds, for each purpose and on both databases.

use super::*;
use crate::embed::NoEmbedder;
use crate::store::tests::{NewMemory, TestMemory, chunk, filled, postgres, source, sqlite};

const BREAD: &str = "Knead the bread for ten minutes.";
const GAINS: &str = "The capital gains are taxed in May.";

hob_testkit::on_both_databases!(
    sqlite, postgres:
    a_word_that_no_document_has_hides_nothing_from_a_caller_that_searches,
    context_has_no_passage_for_a_question_about_something_else,
    passages_with_much_less_than_the_best_one_are_not_found,
    strange_questions_are_answered,
);

fn household(new: NewMemory) -> TestMemory {
    let chunks =
        vec![chunk("Loaf", BREAD), chunk("Taxes", GAINS), chunk("Heating", "The boiler hums at night.")];
    filled(new, &[source("/a", chunks)])
}

fn found(memory: &TestMemory, question: &str, purpose: SearchPurpose) -> Vec<String> {
    let request = SearchRequest {
        question,
        count: 5,
        backend: MemoryBackend::Sqlite,
        download: EmbedderDownload::Refused,
        purpose,
        floor: RelevanceFloor::default(),
        collections: CollectionSet::All,
    };
    let store = memory.store();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let found = runtime.block_on(search(&store, &NoEmbedder, request)).unwrap();
    found.into_iter().map(|passage| passage.text).collect()
}

fn asked(memory: &TestMemory, question: &str) -> Vec<String> {
    found(memory, question, SearchPurpose::UserRequest)
}

fn context(memory: &TestMemory, question: &str) -> Vec<String> {
    found(memory, question, SearchPurpose::Context)
}

fn a_word_that_no_document_has_hides_nothing_from_a_caller_that_searches(new: NewMemory) {
    let memory = household(new);
    assert_eq!(asked(&memory, "make bread"), [BREAD]);
    assert_eq!(asked(&memory, "how could somebody quickly make delicious bread"), [BREAD]);
    assert_eq!(asked(&memory, "What is the capital of Mongolia?"), [GAINS]);
    assert_eq!(asked(&memory, "xylophone"), [""; 0]);
}

fn context_has_no_passage_for_a_question_about_something_else(new: NewMemory) {
    let memory = household(new);
    assert_eq!(context(&memory, "What is the capital of Mongolia?"), [""; 0]);
    assert_eq!(context(&memory, "xylophone"), [""; 0]);
    assert_eq!(context(&memory, "When are capital gains taxed?"), [GAINS]);
    assert_eq!(context(&memory, "bread"), [BREAD]);
}

#[test]
fn a_sentence_without_spaces_is_not_a_short_question() {
    let similarity = |question: &str| {
        let query = WordQuery::of(question);
        floor_for(RelevanceFloor::default(), query.as_ref(), SearchPurpose::Context).similarity
    };
    assert_eq!(similarity("锅炉的压力是多少？"), similarity("What is the pressure of our old boiler?"));
    assert_eq!(similarity("锅炉"), similarity("boiler"));
    assert!(similarity("锅炉的压力是多少？") < similarity("锅炉"));
}

fn passages_with_much_less_than_the_best_one_are_not_found(new: NewMemory) {
    let heating = "The boiler was serviced, and the gauge shows the pressure.";
    let railway = "The gauge of the railway is broad.";
    let memory = filled(new, &[source("/a", vec![chunk("", heating), chunk("", railway)])]);
    let question = "boiler pressure gauge serviced";
    assert_eq!(asked(&memory, question), [heating]);
    assert_eq!(found(&memory, question, SearchPurpose::AllPassages), [heating, railway]);
    // Neither has enough for context.
    let question = "boiler gauge alpha beta gamma delta epsilon zeta omega";
    assert_eq!(context(&memory, question), [""; 0]);
    assert_eq!(asked(&memory, question), [heating]);
}

fn strange_questions_are_answered(new: NewMemory) {
    let memory = household(new);
    let many: String = (0..10_000).map(|number| format!(" w{number}")).collect();
    assert_eq!(asked(&memory, &format!("bread{many}")), [BREAD]);
    assert_eq!(context(&memory, &format!("bread{many}")), [""; 0]);
    assert_eq!(asked(&memory, &many), [""; 0]);
    assert_eq!(asked(&memory, &"x".repeat(1 << 20)), [""; 0]);

    assert_eq!(asked(&memory, "to be or not to be"), [""; 0]);
    assert_eq!(asked(&memory, "the").len(), 3, "a question of stop words is searched as it is");
    assert_eq!(context(&memory, "the"), [""; 0]);

    assert_eq!(asked(&memory, "🍞 🦙"), [""; 0]);
    assert_eq!(context(&memory, "🍞 🦙"), [""; 0]);
    assert_eq!(asked(&memory, "🍞 bread"), [BREAD]);
    assert_eq!(context(&memory, "bread🍞!"), [BREAD]);
}
