//! Every fuzz target has inputs to begin with, and its dictionary; no folder of inputs is without a target.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use hob_testkit::repository::root;

/// The longest input that libFuzzer reads; see `tests/fuzz/run.py`.
const LONGEST_INPUT: u64 = 8192;

fn fuzz() -> PathBuf {
    root().join("fuzz")
}

/// The targets of the table in `fuzz/src/targets.rs`, with their dictionaries.
fn targets() -> BTreeMap<String, String> {
    let table = std::fs::read_to_string(fuzz().join("src/targets.rs")).unwrap();
    table
        .split("target(\"")
        .skip(1)
        .map(|call| {
            let (name, rest) = call.split_once('"').unwrap();
            (name.to_owned(), rest.split('"').nth(1).unwrap().to_owned())
        })
        .collect()
}

#[test]
fn every_target_has_a_corpus_and_every_corpus_a_target() {
    let folders: BTreeSet<String> = std::fs::read_dir(fuzz().join("corpus"))
        .unwrap()
        .map(|folder| folder.unwrap().file_name().into_string().unwrap())
        .collect();
    let targets: BTreeSet<String> = targets().into_keys().collect();
    assert!(targets.len() > 30, "{targets:?}");
    assert_eq!(folders, targets);
}

#[test]
fn an_input_is_never_cut() {
    for target in targets().keys() {
        for input in std::fs::read_dir(fuzz().join("corpus").join(target)).unwrap() {
            let input = input.unwrap();
            let length = input.metadata().unwrap().len();
            assert!((1..=LONGEST_INPUT).contains(&length), "{} has {length} bytes", input.path().display());
        }
    }
}

#[test]
fn every_dictionary_is_there_and_has_words() {
    for (target, dictionary) in targets().into_iter().filter(|(_, dictionary)| dictionary != "-") {
        let file = fuzz().join("dictionaries").join(&dictionary).with_extension("dict");
        let text = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{target} names the dictionary {dictionary}: {error}"));
        let words: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(words.len() > 5, "{dictionary} has {} words", words.len());
        let is_word =
            |word: &str| word.len() > 2 && word.is_ascii() && word.starts_with('"') && word.ends_with('"');
        assert!(words.iter().all(|word| is_word(word)), "a line of {dictionary} is not a word in quotes");
    }
}
