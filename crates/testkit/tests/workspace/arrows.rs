//! Which crate may use which other crate, and which libraries and which knowledge belong to some crates alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use hob_testkit::repository::root;

/// The crates that each crate may use.
const ALLOWED: &[(&str, &[&str])] = &[
    ("agents", &["core", "net", "text"]),
    (
        "app",
        &[
            "agents",
            "backup",
            "channels",
            "config",
            "conversations",
            "core",
            "db",
            "engines",
            "keys",
            "llama",
            "mail",
            "mcp",
            "memory",
            "models",
            "net",
            "routing",
            "sandbox",
            "sources",
            "tasks",
            "telemetry",
        ],
    ),
    ("backup", &["core", "db", "process"]),
    ("channels", &["core", "db", "mail", "net", "process"]),
    (
        "cli",
        &[
            "agents",
            "app",
            "backup",
            "channels",
            "config",
            "conversations",
            "core",
            "db",
            "engines",
            "keys",
            "mcp",
            "memory",
            "models",
            "net",
            // Programs of the desktop that set the clipboard, and the service manager.
            "process",
            "routing",
            "server",
            "sources",
            "tasks",
            "telemetry",
            "text",
            "updates",
        ],
    ),
    ("config", &["core", "process"]),
    ("conversations", &["core", "db"]),
    ("core", &["sync"]),
    ("db", &["core", "net", "sync"]),
    ("engines", &["core", "net", "process", "sync"]),
    ("keys", &["core", "db", "net", "sync"]),
    // The one capability that uses another: llama loads the files that models keeps.
    ("llama", &["core", "models", "process", "sync"]),
    ("mail", &["core", "net", "text"]),
    ("mcp", &["core", "net", "process"]),
    ("memory", &["core", "db", "process", "text"]),
    ("models", &["core", "net", "process"]),
    ("net", &["core"]),
    ("process", &["core"]),
    ("routing", &["core", "db"]),
    ("sandbox", &["core", "process"]),
    (
        "server",
        &[
            "app",
            "channels",
            "config",
            "conversations",
            "core",
            // Its error, which becomes an HTTP status, and `spawn_blocking`.
            "db",
            "engines",
            "keys",
            "memory",
            "models",
            // The certificate of HTTPS.
            "net",
            "routing",
            "sync",
            "tasks",
            "telemetry",
            "text",
        ],
    ),
    ("sources", &["core", "db", "net", "text"]),
    ("sync", &[]),
    ("tasks", &["core", "db"]),
    ("telemetry", &["core", "db", "net"]),
    ("text", &[]),
    ("updates", &["net"]),
];

/// Libraries that only these crates may use.
const RESERVED: &[(&str, &[&str])] = &[
    ("axum", &["server"]),
    // The engine crate only recognises one of its errors, which reqwest passes on.
    ("hyper", &["server", "engines"]),
    ("tower-http", &["server"]),
    (
        "reqwest",
        &["net", "engines", "models", "agents", "mcp", "channels", "telemetry", "keys", "sources", "updates"],
    ),
    // Signatures of tokens.
    ("ring", &["keys"]),
    ("tokio-tungstenite", &["channels"]),
    ("mdns-sd", &["net"]),
    ("llama-cpp-2", &["llama"]),
    ("clap", &["cli"]),
    ("anyhow", &["cli"]),
    ("toml", &["config"]),
    (
        "rusqlite",
        &["channels", "conversations", "db", "keys", "memory", "routing", "sources", "tasks", "telemetry"],
    ),
    ("rustls", &["db", "net"]),
    ("tokio-postgres", &["db"]),
];

/// Words in product code that only these crates may contain.
const RESERVED_WORDS: &[(&str, &[&str])] = &[
    // `sync` reads how many orders of threads the tests try.
    ("std::env::var", &["config", "cli", "process", "sync"]),
    ("println!", &["cli"]),
    ("eprintln!", &["cli"]),
    // Crates with a store use `hob_db::spawn_blocking`, so that all worker threads of the server share one set of threads.
    (
        "tokio::task::spawn_blocking",
        &["agents", "app", "cli", "config", "db", "llama", "mail", "models", "sandbox", "server"],
    ),
    // A worker thread that blocks in place is replaced, and ends when it is idle. With it ends every sandbox that it started.
    ("block_in_place", &[]),
];

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

#[test]
fn crates_use_exactly_what_the_table_allows() {
    let allowed: BTreeSet<(String, String)> =
        pairs(ALLOWED.iter().map(|(name, uses)| (*name, uses.to_vec())));
    let dependencies = dependencies();
    let used = pairs(dependencies.iter().map(|(name, uses)| {
        (name.as_str(), uses.iter().filter_map(|used| used.strip_prefix("hob-")).collect())
    }));
    let not_listed: Vec<_> = used.difference(&allowed).collect();
    assert!(not_listed.is_empty(), "pairs that ALLOWED does not list: {not_listed:?}");
    let not_used: Vec<_> = allowed.difference(&used).collect();
    assert!(not_used.is_empty(), "pairs in ALLOWED that no longer exist: {not_used:?}");
    let listed: Vec<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    let existing: Vec<&str> = dependencies.keys().map(String::as_str).collect();
    assert_eq!(listed, existing, "ALLOWED has one line for each crate, in alphabetical order");
}

fn pairs<'a>(uses: impl Iterator<Item = (&'a str, Vec<&'a str>)>) -> BTreeSet<(String, String)> {
    uses.flat_map(|(name, used)| used.into_iter().map(move |used| (name.to_owned(), used.to_owned())))
        .collect()
}

#[test]
fn each_heavy_library_belongs_to_its_crates() {
    for (name, uses) in dependencies() {
        for (library, owners) in RESERVED {
            let allowed = owners.contains(&name.as_str()) || !uses.iter().any(|used| used == library);
            assert!(allowed, "{name} uses {library}, which belongs to {owners:?}");
        }
    }
}

#[test]
fn some_words_belong_to_their_crates() {
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

/// A crate that uses a name of another crate depends on it, so that the table above shows it.
#[test]
fn no_crate_re_exports_another() {
    for (name, _) in dependencies() {
        for file in product_files(&crates_dir().join(&name).join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            let found = text.lines().find(|line| line.trim_start().starts_with("pub use hob_"));
            assert_eq!(found, None, "{} re-exports a name of another crate", file.display());
        }
    }
}

#[test]
fn every_crate_is_in_the_picture() {
    let picture = std::fs::read_to_string(crates_dir().join("../ARCHITECTURE.md")).unwrap();
    for name in dependencies().keys() {
        assert!(
            picture.contains(&format!("crates/{name}")),
            "ARCHITECTURE.md does not speak of crates/{name}"
        );
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
