//! Every library that the workspace uses has a reason in `docs/dependencies.md`, and every reason has a library.

use std::collections::{BTreeMap, BTreeSet};

use hob_testkit::repository::root;
use toml::Table;

const TABLE_BEGINS: &str = "<!-- dependencies: made by crates/testkit/tests/workspace/dependencies.rs, except for the reasons, which are written here. To renew it: HOB_WRITE_DOCS=1 cargo nextest run -p hob-testkit every_library_has_a_reason -->\n";
const TABLE_ENDS: &str = "<!-- /dependencies -->";
const HEAD: &str = "| Library | Used by | Reason |\n| --- | --- | --- |\n";

/// More users than this are counted and not listed.
const MOST_LISTED: usize = 4;

/// The parts of a manifest that name libraries, and whether only tests use them.
const KINDS: [(&str, bool); 3] =
    [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)];

fn manifest(path: &str) -> Table {
    std::fs::read_to_string(root().join(path)).unwrap().parse().unwrap()
}

/// The libraries of all crates, each with the crates that use it outside of tests.
fn libraries() -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let manifest = manifest(&format!("crates/{name}/Cargo.toml"));
        let targets = manifest.get("target").and_then(|targets| targets.as_table());
        let of_targets =
            targets.into_iter().flat_map(|targets| targets.values()).filter_map(|of| of.as_table());
        for table in of_targets.chain([&manifest]) {
            for (kind, is_for_tests) in KINDS {
                let used = table.get(kind).and_then(|used| used.as_table()).into_iter().flat_map(Table::keys);
                for library in used.filter(|library| !library.starts_with("hob-")) {
                    let users = found.entry(library.clone()).or_default();
                    if !is_for_tests && name != "testkit" {
                        users.insert(name.clone());
                    }
                }
            }
        }
    }
    found
}

/// The crates, in a few words.
fn used_by(users: &BTreeSet<String>) -> String {
    match users.len() {
        0 => "tests".to_owned(),
        1..=MOST_LISTED => users.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
        many => format!("{many} crates"),
    }
}

/// The reasons in the table, by library.
fn reasons(table: &str) -> BTreeMap<String, String> {
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 3, "a row of docs/dependencies.md has three cells: {line}");
        (cells[0].trim_matches('`').to_owned(), cells[2].to_owned())
    })
    .collect()
}

/// Renew with `HOB_WRITE_DOCS=1 cargo nextest run -p hob-testkit every_library_has_a_reason`, and write the missing reasons.
#[test]
fn every_library_has_a_reason() {
    let path = root().join("docs/dependencies.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(TABLE_BEGINS).expect("the table's beginning is marked");
    let (written, after) = rest.split_once(TABLE_ENDS).expect("the table's end is marked");
    let reasons = reasons(written);
    let row = |(library, users): (&String, &BTreeSet<String>)| {
        let reason = reasons.get(library).map_or("", String::as_str);
        format!("| `{library}` | {} | {reason} |\n", used_by(users))
    };
    let libraries = libraries();
    let table = HEAD.to_owned() + &libraries.iter().map(row).collect::<String>();
    if std::env::var_os("HOB_WRITE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{TABLE_BEGINS}{table}{TABLE_ENDS}{after}")).unwrap();
    }
    let without: Vec<&String> =
        libraries.keys().filter(|name| reasons.get(*name).is_none_or(String::is_empty)).collect();
    assert!(without.is_empty(), "docs/dependencies.md has no reason for {without:?}");
    if std::env::var_os("HOB_WRITE_DOCS").is_none() {
        assert_eq!(
            written, table,
            "run: HOB_WRITE_DOCS=1 cargo nextest run -p hob-testkit every_library_has_a_reason"
        );
    }
}

/// The workspace names each library once, so a name that no crate uses is left over.
#[test]
fn the_workspace_names_the_libraries_that_its_crates_use() {
    let manifest = manifest("Cargo.toml");
    let named = manifest["workspace"]["dependencies"].as_table().unwrap();
    let named: BTreeSet<String> = named.keys().filter(|name| !name.starts_with("hob-")).cloned().collect();
    let used: BTreeSet<String> = libraries().into_keys().collect();
    assert_eq!(named, used, "[workspace.dependencies] and the manifests of the crates differ");
}

/// A second source of packages would not be covered by the checksums and licences that are checked.
#[test]
fn every_library_comes_from_crates_io_with_a_checksum() {
    let lock = manifest("Cargo.lock");
    let mut outside = 0;
    for package in lock["package"].as_array().unwrap() {
        let Some(source) = package.get("source").and_then(|source| source.as_str()) else { continue };
        assert_eq!(source, "registry+https://github.com/rust-lang/crates.io-index", "{package:?}");
        assert!(package.get("checksum").is_some(), "{package:?}");
        outside += 1;
    }
    assert!(outside > 100, "the lock file lists the libraries");
}

/// No lock file has these libraries.
#[test]
fn libraries_of_special_builds_have_exact_versions() {
    for entry in std::fs::read_dir(root().join("tests/special_builds")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let manifest = manifest(&format!("tests/special_builds/{name}"));
        let targets = manifest["target"].as_table().unwrap();
        let libraries = targets.values().flat_map(|target| target["dependencies"].as_table().unwrap());
        for (library, version) in libraries {
            assert!(version.as_str().unwrap().starts_with('='), "{name}: {library}");
        }
    }
}
