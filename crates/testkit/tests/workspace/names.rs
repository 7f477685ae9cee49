//! A public type has a name of its own in the whole workspace, so that a search for it finds one thing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use hob_testkit::repository::{product_files, root};

const KEYWORDS: [&str; 4] = ["struct", "enum", "trait", "type"];

#[test]
fn a_public_type_has_a_name_of_its_own() {
    let mut places: BTreeMap<String, BTreeSet<PathBuf>> = BTreeMap::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        for file in product_files(&entry.unwrap().path().join("src")) {
            for name in public_types(&std::fs::read_to_string(&file).unwrap()) {
                places.entry(name).or_default().insert(file.clone());
            }
        }
    }
    places.retain(|_, files| files.len() > 1);
    assert!(places.is_empty(), "public types that share a name; rename all but one: {places:#?}");
}

/// The types that a file declares as `pub`, without those of its tests.
fn public_types(text: &str) -> Vec<String> {
    let product = text.split("\nmod tests {").next().unwrap_or_default();
    product.lines().filter_map(public_type).collect()
}

fn public_type(line: &str) -> Option<String> {
    let (keyword, rest) = line.trim_start().strip_prefix("pub ")?.split_once(' ')?;
    let name: String = rest.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
    KEYWORDS.contains(&keyword).then_some(name)
}

#[test]
fn only_public_types_of_the_product_count() {
    let text = "pub struct Alpha;\n    pub enum Beta<T> {\npub(crate) struct Gamma;\npub fn delta() {}\n\
                #[cfg(test)]\nmod tests {\n    pub struct Epsilon;\n}\n";
    assert_eq!(public_types(text), ["Alpha", "Beta"]);
}
