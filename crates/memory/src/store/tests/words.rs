//! Search by words.

use proptest::prelude::*;

use super::*;

hob_testkit::on_both_databases!(
    sqlite, postgres:
    a_title_counts_more_than_the_text_and_word_forms_and_accents_do_not_matter,
    phrases_rare_words_and_short_chunks_rank_alike,
    rare_words_count_more_for_the_share_of_a_question,
    the_words_of_the_question_are_marked_in_the_passage,
    common_and_rare_words_do_not_hide_each_other,
    any_question_is_text,
    operators_are_text_too,
    a_question_of_a_megabyte_is_answered,
);

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

fn rare_words_count_more_for_the_share_of_a_question(new: NewMemory) {
    let memory = filled(
        new,
        &[source("/a", vec![chunk("Pump", "the boiler hums"), chunk("", "a boiler"), chunk("", "a garden")])],
    );
    let shares = |question: &str| {
        let query = WordQuery::of(question).unwrap();
        let hits = memory.find_words(&query, 9).unwrap();
        let mut shares = Vec::new();
        let read = memory.snapshot(&mut |snapshot| {
            shares = snapshot.word_shares(&query, &hits)?;
            Ok(())
        });
        read.unwrap();
        shares
    };
    let found = shares("why does the boiler's pump hum at night?");
    assert!(found.len() == 2 && found[0] > 0.6 && found[1] < 0.3, "{found:?}");
    assert_eq!(shares("boiler"), [1.0, 1.0]);
    let found = shares("the boiler of Mongolia");
    assert!(found.len() == 2 && found.iter().all(|share| *share < 0.5), "{found:?}");
    assert_eq!(shares("Mongolia"), [0.0; 0]);
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
