//! Every entry of the list is complete and plausible.

use std::collections::BTreeSet;
use std::str::FromStr;

use super::*;
use crate::names;
use crate::pull::{HubSpec, PullSpec};

#[test]
fn the_data_file_is_read() {
    let read: Vec<FileEntry> = serde_json::from_str(FILE).unwrap();
    assert!(read.len() >= 30, "{}", read.len());
    assert_eq!(catalogue().count(), read.len() + 2);
}

#[test]
fn every_name_is_unique_safe_and_found() {
    let mut names = BTreeSet::new();
    for entry in catalogue() {
        assert!(names::is_safe(entry.name), "{}", entry.name);
        assert!(
            entry.short_name.split_once(':').is_some_and(|(model, tag)| !model.is_empty() && !tag.is_empty())
        );
        for name in [entry.name, entry.short_name].into_iter().chain(entry.also.iter().copied()) {
            assert!(names.insert(name.to_lowercase()), "{name} names two models");
            assert_eq!(find(&name.to_uppercase()), Some(entry));
        }
    }
    assert_eq!((STARTER.name, EMBEDDING.name), ("smollm2-135m-instruct", "all-minilm-l6-v2"));
    assert_eq!(find("qwen3:latest").map(|entry| entry.name), Some("qwen3-8b"));
    assert_eq!(find("qwen3:9b"), None);
}

#[test]
fn the_smallest_model_with_an_ability_is_found() {
    assert_eq!(smallest_with(ModelAbility::Vision).map(|entry| entry.short_name), Some("gemma3:4b"));
    assert_eq!(smallest_with(ModelAbility::Chat), Some(STARTER));
}

#[test]
fn the_starter_model_is_recognised_by_its_names() {
    for name in ["smollm2-135m-instruct", "SmolLM2:135m", "smollm2-135m-instruct:latest"] {
        assert!(is_starter(name), "{name}");
    }
    assert!(!is_starter("smollm2") && !is_starter("qwen3:8b") && !is_starter(""));
}

#[test]
fn every_repository_and_file_can_be_asked_for() {
    for entry in catalogue() {
        let ModelSource::Hub { repo, wanted } = entry.source else { continue };
        let spec = PullSpec::from_str(&format!("hf:{repo}:{wanted}")).unwrap();
        assert_eq!(spec, PullSpec::Hub(HubSpec { repo: repo.into(), wanted: Some(wanted.into()) }));
        for file in [Some(wanted), entry.projector.map(|projector| projector.file)].into_iter().flatten() {
            assert!(file.ends_with(".gguf") && file.split('/').all(names::is_safe), "{file}");
        }
    }
}

#[test]
fn sizes_fit_the_parameters() {
    for entry in catalogue() {
        let bits = entry.size as f64 * 8.0 / entry.parameters as f64;
        assert!((3.5..=9.5).contains(&bits), "{}: {bits:.1} bits for each weight", entry.name);
        if let Some(active) = entry.active_parameters {
            assert!(active < entry.parameters / 2, "{}", entry.name);
        }
    }
}

#[test]
fn every_entry_says_what_it_can_and_needs() {
    for entry in catalogue() {
        let name = entry.name;
        assert!(!entry.about.is_empty() && !entry.about.ends_with('.'), "{name}");
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
        assert!(!entry.license.is_empty() && entry.license.chars().all(plain), "{name}");
        assert!((512..=1 << 20).contains(&entry.context), "{name}");
        assert_ne!(entry.can(ModelAbility::Chat), entry.can(ModelAbility::Embedding), "{name}");
        assert_eq!(entry.can(ModelAbility::Vision), entry.projector.is_some(), "{name}");
        assert!(entry.kv.is_some() || entry.can(ModelAbility::Embedding), "{name}");
        // An offer must be of use to everybody.
        assert!(
            !entry.is_offered || (entry.can(ModelAbility::Tools) && entry.license == "apache-2.0"),
            "{name}"
        );
        if let Some(kv) = entry.kv {
            assert!((1_024..=1 << 20).contains(&kv.bytes_per_token()), "{name}");
        }
    }
}

#[test]
fn words_match_names_and_descriptions() {
    let found = |words: &str| {
        let names: Vec<&str> =
            catalogue().filter(|entry| entry.matches(words)).map(|entry| entry.short_name).collect();
        names
    };
    assert_eq!(found("qwen3 CODER"), ["qwen3-coder:30b"]);
    assert_eq!(found("vision 12b"), ["gemma3:12b"]);
    assert_eq!(found("no such thing"), [""; 0]);
}

#[test]
fn a_mixture_of_experts_reads_a_part_of_its_weights() {
    let dense = find("qwen3:8b").unwrap();
    let sparse = find("qwen3:30b").unwrap();
    assert_eq!(dense.bytes_per_token(), dense.size);
    assert!(sparse.bytes_per_token() < dense.bytes_per_token() && sparse.size > dense.size);
    assert_eq!(dense.kv.unwrap().bytes_per_token(), 147_456);
}
