//! Keeps the arrows between the crates: a crate may use only what lies below it, and some libraries and some knowledge belong
//! to one floor alone.

#![expect(clippy::unwrap_used, reason = "a file that cannot be read is a failed test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hob_testkit::repository::root;

/// Which floor each crate stands on. Arrows point down only.
const FLOORS: &[(&str, u8)] = &[
    ("core", 0),
    ("text", 0),
    ("child", 0),
    ("dial", 0),
    ("db", 0),
    ("config", 1),
    ("engines", 1),
    ("embedded", 1),
    ("agent", 1),
    ("store", 1),
    ("channel", 1),
    ("memory", 2),
    ("system", 3),
    ("server", 4),
    ("cli", 5),
];

/// Libraries that only these crates may use.
const RESERVED: &[(&str, &[&str])] = &[
    ("axum", &["server"]),
    // The engine crate only recognises one of its errors, which reqwest passes on.
    ("hyper", &["server", "engines"]),
    ("tower-http", &["server"]),
    ("reqwest", &["engines", "embedded", "agent", "channel"]),
    ("tokio-tungstenite", &["channel"]),
    ("llama-cpp-2", &["embedded"]),
    ("clap", &["cli"]),
    ("anyhow", &["cli"]),
    ("toml", &["config"]),
    ("rusqlite", &["db", "store"]),
    ("rustls", &["dial"]),
];

/// Words in product code that only these crates may contain.
const RESERVED_WORDS: &[(&str, &[&str])] =
    &[("std::env::var", &["config", "cli", "child"]), ("println!", &["cli"]), ("eprintln!", &["cli"])];

fn crates_dir() -> PathBuf {
    root().join("crates")
}

/// Direct dependencies of each crate, without those of its tests.
fn dependencies() -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(crates_dir()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let manifest: toml::Table =
            std::fs::read_to_string(path.join("Cargo.toml")).unwrap().parse().unwrap();
        let table = manifest["dependencies"].as_table().unwrap();
        found.insert(name, table.keys().cloned().collect());
    }
    found.remove("testkit");
    found
}

fn floor(name: &str) -> u8 {
    let found = FLOORS.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("crate '{name}' has no floor; give it one here and in ARCHITECTURE.md")).1
}

#[test]
fn arrows_point_down_only() {
    for (name, uses) in dependencies() {
        for used in uses.iter().filter_map(|used| used.strip_prefix("hob-")) {
            assert!(
                floor(used) < floor(&name),
                "{name} (floor {}) uses {used} (floor {})",
                floor(&name),
                floor(used)
            );
        }
    }
}

#[test]
fn each_heavy_library_belongs_to_its_floor() {
    for (name, uses) in dependencies() {
        for (library, owners) in RESERVED {
            let allowed = owners.contains(&name.as_str()) || !uses.iter().any(|used| used == library);
            assert!(allowed, "{name} uses {library}, which belongs to {owners:?}");
        }
    }
}

#[test]
fn only_the_outer_floors_read_the_environment_and_write_to_the_terminal() {
    for (name, _) in dependencies() {
        for file in product_files(&crates_dir().join(&name).join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            let product = text.split("#[cfg(test)]").next().unwrap_or_default();
            let code = product.lines().filter(|line| !line.trim_start().starts_with("//"));
            for line in code {
                for (word, owners) in RESERVED_WORDS {
                    let allowed = owners.contains(&name.as_str()) || !line.contains(word);
                    assert!(allowed, "{}: '{word}' belongs to {owners:?}:\n{line}", file.display());
                }
            }
        }
    }
}

#[test]
fn every_floor_is_in_the_picture() {
    let picture = std::fs::read_to_string(crates_dir().join("../ARCHITECTURE.md")).unwrap();
    for name in dependencies().keys() {
        assert!(
            picture.contains(&format!("crates/{name}")),
            "ARCHITECTURE.md does not speak of crates/{name}"
        );
        floor(name);
    }
}

fn product_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(product_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs")
            && !path.to_string_lossy().ends_with("_tests.rs")
        {
            files.push(path);
        }
    }
    files
}
