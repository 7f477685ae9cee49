//! `hob memory`: documents are indexed, searched and removed; `hob ask` uses them.

use std::path::PathBuf;
use std::time::SystemTime;

use hob_core::CollectionName;
use hob_memory::store::NewFolder;
use hob_memory::{DocumentCatalog, SqliteMemoryStore};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::fakes;
use crate::home::{Home, Ran};

const NOTES: [(&str, &str); 3] = [
    (
        "heating.md",
        "# Heating\n\nThe boiler was serviced in October by Ann Miller.\n\n## Pump\n\nIt hums when it is cold.",
    ),
    ("garden.txt", "The roses are cut back in March."),
    ("image.bin", "\0\0\0\0"),
];

fn notes(home: &Home) -> PathBuf {
    let directory = home.documents().join("notes");
    std::fs::create_dir(&directory).expect("a directory");
    for (name, text) in NOTES {
        std::fs::write(directory.join(name), text).expect("a file");
    }
    directory.canonicalize().expect("it is there")
}

fn path(path: &std::path::Path) -> &str {
    path.to_str().expect("text")
}

/// The line without the duration.
fn without_time(line: &str) -> String {
    line.split(' ')
        .map(|word| if word.parse::<f64>().is_ok_and(|_| word.contains('.')) { "T" } else { word })
        .collect::<Vec<_>>()
        .join(" ")
}

async fn index(home: &Home, directory: &std::path::Path) -> String {
    let ran = home.run(&["memory", "index", path(directory)]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    without_time(&ran.stdout)
}

#[tokio::test]
async fn indexed_documents_are_found_and_forgotten_ones_are_not() {
    let home = Home::empty();
    let notes = notes(&home);
    assert_eq!(
        index(&home, &notes).await,
        "Indexed 2 files: 2 passages, 127 B in T s. Skipped 1: image.bin (the file is binary, not text).\n"
    );
    assert_eq!(
        index(&home, &notes).await,
        "Up to date: 2 files. Skipped 1: image.bin (the file is binary, not text).\n"
    );

    let ran = home.run(&["memory", "search", "who serviced the boiler?"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(
        lines[0].trim_start().starts_with("SCORE  SOURCE") && lines[0].trim_end().ends_with("PASSAGE"),
        "{}",
        ran.stdout
    );
    assert_eq!(lines.len(), 2, "a header and one passage: {}", ran.stdout);
    assert!(lines[1].contains(&format!("{}:1", notes.join("heating.md").display())), "{}", ran.stdout);
    assert!(lines[1].contains("serviced in October by Ann Miller."), "{}", ran.stdout);
    assert!(lines[1].trim_start().starts_with("1.00 "), "the best there is: {}", ran.stdout);

    let ran = home.run(&["memory", "search", "-k", "1", "--json", "roses \"OR NOT (*"]).await;
    let found: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(found["backend"], "sqlite");
    assert_eq!(found["passages"][0]["text"], "The roses are cut back in March.");

    let ran = home.run(&["memory", "forget", path(&notes)]).await;
    assert_eq!(
        ran,
        Ran { code: Some(0), stdout: "Removed 2 sources, 2 passages.\n".into(), stderr: String::new() }
    );
    let ran = home.run(&["memory", "search", "roses"]).await;
    assert_eq!(ran, Ran { code: Some(0), stdout: String::new(), stderr: "No passages found.\n".into() });
    let ran = home.run(&["memory", "forget", path(&notes)]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert_eq!(
        ran.stderr,
        format!(
            "error: {} is not in memory. Use the path as it was indexed; 'hob memory search' shows paths.\n",
            notes.display()
        )
    );
}

#[tokio::test]
async fn documents_of_a_watched_folder_are_not_forgotten_and_uploads_lose_their_copy() {
    let home = Home::empty();
    let notes = notes(&home);
    index(&home, &notes).await;
    let memory = SqliteMemoryStore::find(&home.directory().join("memory.db")).expect("good").expect("there");
    let folder =
        NewFolder { path: path(&notes).to_owned(), collection: CollectionName::default(), watched: true };
    memory.save_folder(&folder, SystemTime::now()).expect("saved");
    drop(memory);
    for meant in [&notes, &notes.join("garden.txt")] {
        let ran = home.run(&["memory", "forget", path(meant)]).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
        let reason =
            format!("error: the folder {} is watched, so its documents would come back", path(&notes));
        assert!(ran.stderr.starts_with(&reason), "{}", ran.stderr);
    }

    let uploads = home.directory().canonicalize().expect("there").join("documents/default");
    std::fs::create_dir_all(&uploads).expect("a directory");
    for (name, text) in [("gate.md", "The code is 4711."), ("photo.bin", "\0\0\0\0")] {
        let (file, note) = (uploads.join(name), uploads.join(format!(".pending-{name}")));
        std::fs::write(&file, text).expect("a file");
        std::fs::write(&note, "").expect("a file");
        let ran = home.run(&["memory", "index", path(&file)]).await;
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let ran = home.run(&["memory", "forget", path(&file)]).await;
        assert_eq!(
            (ran.code, ran.stderr.as_str(), file.exists(), note.exists()),
            (Some(0), "", false, false)
        );
        let ran = home.run(&["memory", "forget", path(&file)]).await;
        assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    }

    // Their copies also go with a directory above them.
    for name in ["gate.md", "door.md"] {
        std::fs::write(uploads.join(name), "The code is 4711.").expect("a file");
    }
    let ran = home.run(&["memory", "index", path(&uploads.join("gate.md"))]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = home.run(&["memory", "forget", path(home.directory())]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(ran.stdout, "Removed 1 source, 1 passage, 2 uploaded files.\n");
    assert!(!uploads.exists(), "their directory goes too");
}

#[tokio::test]
async fn a_search_shows_the_passages_that_match_best_and_all_shows_the_others() {
    let home = Home::empty();
    let notes = notes(&home);
    std::fs::write(notes.join("bread.md"), "Knead the bread for ten minutes.").expect("a file");
    std::fs::write(notes.join("oven.md"), "The bread oven is heated to 230 degrees.").expect("a file");
    index(&home, &notes).await;
    let ran = home.run(&["memory", "search", "make bread"]).await;
    assert!(
        ran.stdout.contains("Knead the bread") && ran.stdout.contains("The bread oven"),
        "{}",
        ran.stdout
    );
    let question = "how many degrees does the oven need for bread?";
    let ran = home.run(&["memory", "search", question]).await;
    assert!(ran.stdout.contains("The bread oven") && !ran.stdout.contains("Knead"), "{}", ran.stdout);
    let ran = home.run(&["memory", "search", "--all", question]).await;
    assert!(ran.stdout.contains("The bread oven") && ran.stdout.contains("Knead"), "{}", ran.stdout);
    let ran = home.run(&["memory", "search", "xylophone"]).await;
    assert_eq!(ran, Ran { code: Some(0), stdout: String::new(), stderr: "No passages found.\n".into() });
    std::fs::write(home.config_file(), "[memory]\nmin_word_share = 0.0\n").expect("a file");
    let ran = home.run(&["memory", "search", question]).await;
    assert!(ran.stdout.contains("The bread oven") && ran.stdout.contains("Knead"), "{}", ran.stdout);
}

#[tokio::test]
async fn documents_and_skipped_files_are_listed() {
    let home = Home::empty();
    let ran = home.run(&["memory", "list"]).await;
    assert_eq!(ran.stderr, "The memory is empty. Index documents with 'hob memory index PATH'.\n");
    let notes = notes(&home);
    index(&home, &notes).await;
    let ran = home.run(&["memory", "list"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let lines: Vec<Vec<&str>> = ran.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["DOCUMENT", "KIND", "PASSAGES", "INDEXED", "COLLECTION"]);
    let (garden, heating) = (notes.join("garden.txt"), notes.join("heating.md"));
    assert_eq!((lines[1][0], lines[1][1], lines[1][2], lines[1][4]), (path(&garden), "text", "1", "default"));
    assert_eq!((lines[2][0], lines[2][1]), (path(&heating), "Markdown"));
    assert_eq!(lines.len(), 3, "{}", ran.stdout);

    let ran = home.run(&["memory", "list", "--json", path(&heating)]).await;
    let listed: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(listed["documents"].as_array().expect("a list").len(), 1);
    let document = &listed["documents"][0];
    assert_eq!((&document["kind"], &document["chunks"]), (&json!("Markdown"), &json!(1)), "{document}");
    assert_eq!(document["collections"], json!(["default"]));

    let ran = home.run(&["memory", "list", "--skipped", "--json"]).await;
    let listed: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let skipped = &listed["skipped"][0];
    assert_eq!(skipped["path"], json!(path(&notes.join("image.bin"))));
    assert_eq!(skipped["reason"], json!("the file is binary, not text"));
    let ran = home.run(&["memory", "list", "--skipped", path(&heating)]).await;
    assert_eq!(ran.stderr, "No files were skipped.\n");
}

#[tokio::test]
async fn stats_show_the_size_of_the_memory() {
    let home = Home::empty();
    let ran = home.run(&["memory", "stats"]).await;
    assert_eq!(ran.stderr, "The memory is empty. Index documents with 'hob memory index PATH'.\n");
    let notes = notes(&home);
    index(&home, &notes).await;
    let stats: Value =
        serde_json::from_str(&home.run(&["memory", "stats", "--json"]).await.stdout).expect("JSON");
    assert_eq!((&stats["sources"], &stats["chunks"], &stats["vectors"]), (&json!(2), &json!(2), &json!(0)));
    assert_eq!((&stats["backend"], &stats["automatic"]), (&json!("sqlite"), &json!(true)));
    let ran = home.run(&["memory", "status"]).await;
    let backend = "Backend   sqlite (automatic: by words, because there are no vectors)";
    assert!(ran.stdout.contains(backend), "{}", ran.stdout);
    let ran = home.run(&["memory", "stats", "-b", "vector"]).await;
    assert!(
        ran.stdout.contains("Size      127 B read, ") && ran.stdout.contains(" KB stored"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("Vectors   none; create them with 'hob memory index PATH -b vector'"),
        "{}",
        ran.stdout
    );
}

#[tokio::test]
async fn documents_in_a_collection_are_searched_counted_and_forgotten_there() {
    let home = Home::empty();
    let notes = notes(&home);
    let garden = notes.join("garden.txt");
    let index_garden = ["memory", "index", path(&garden), "--collection", "team"];
    let ran = home.run(&index_garden).await;
    assert_eq!(without_time(&ran.stdout), "Indexed 1 file: 1 passage, 32 B in T s.\n", "{}", ran.stderr);
    let ran = home.run(&["memory", "index", path(&notes)]).await;
    assert_eq!(
        without_time(&ran.stdout),
        "Indexed 1 file: 1 passage, 95 B in T s; 1 added to the collection. Skipped 1: image.bin (the file is binary, not text).\n"
    );
    let sources = async |arguments: &[&str]| {
        let ran = home.run(arguments).await;
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        let found: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        let passages = found["passages"].as_array().expect("a list").clone();
        let source =
            |passage: &Value| passage["source"].as_str().expect("text").rsplit('/').next().map(str::to_owned);
        passages.iter().filter_map(source).collect::<Vec<_>>()
    };
    assert_eq!(sources(&["memory", "search", "--json", "boiler"]).await, ["heating.md"]);
    assert_eq!(sources(&["memory", "search", "--json", "--collection", "team", "boiler"]).await, [""; 0]);
    assert_eq!(
        sources(&["memory", "search", "--json", "--collection", "team,default", "roses"]).await,
        ["garden.txt"]
    );
    let ran = home.run(&["memory", "stats"]).await;
    assert!(ran.stdout.contains("Collections  default (2), team (1)\n"), "{}", ran.stdout);
    let ran = home.run(&["memory", "stats", "--collection", "team"]).await;
    assert!(ran.stdout.contains("Size         32 B read\n"), "{}", ran.stdout);

    for arguments in [["search", "roses"], ["forget", path(&notes)]] {
        let ran = home.run(&["memory", arguments[0], arguments[1], "--collection", "taem"]).await;
        assert_eq!(ran.code, Some(1));
        assert_eq!(ran.stderr, "error: there is no collection 'taem'. Collections: default, team\n");
    }
    let ran = home.run(&["memory", "index", path(&notes), "--collection", "a/b"]).await;
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("'a/b' is not a name for a collection"), "{}", ran.stderr);

    let ran = home.run(&["memory", "forget", path(&notes), "--collection", "team"]).await;
    assert_eq!(ran.stdout, "Removed 1 source, 1 passage.\n", "{}", ran.stderr);
    assert_eq!(
        sources(&["memory", "search", "--json", "roses"]).await,
        ["garden.txt"],
        "it is in another one"
    );
}

#[tokio::test]
async fn errors_suggest_what_works() {
    let home = Home::empty();
    let empty = home.run(&["memory", "search", "anything"]).await;
    assert_eq!(empty.code, Some(1));
    assert_eq!(empty.stderr, "error: the memory is empty. Index documents with 'hob memory index PATH'.\n");
    assert!(!home.directory().join("memory.db").exists(), "a look makes no database");

    let ran = home.run(&["memory", "index", "/nowhere/at/all"]).await;
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.stderr, "error: cannot index /nowhere/at/all: there is no such file or directory\n");

    let ran = home.run(&["memory", "index", ".", "--chunk-size", "100", "--chunk-overlap", "100"]).await;
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("overlap of 100 tokens is too large"), "{}", ran.stderr);

    for wrong in [["-k", "0"], ["-k", "101"], ["-b", "faiss"]] {
        let ran = home.run(&["memory", "search", "x", wrong[0], wrong[1]]).await;
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_named_and_the_others_are_indexed() {
    let home = Home::empty();
    let notes = notes(&home);
    std::fs::write(notes.join("broken.pdf"), "%PDF-1.7\nnot really").expect("a file");
    let ran = home.run(&["memory", "index", path(&notes)]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let named = format!("warning: {}: the file is broken", notes.join("broken.pdf").display());
    assert!(ran.stderr.starts_with(&named), "{}", ran.stderr);
    assert_eq!(
        without_time(&ran.stdout),
        "Indexed 2 files: 2 passages, 127 B in T s. Skipped 1: image.bin (the file is binary, not text). Not readable: 1.\n"
    );
}

#[tokio::test]
async fn verbose_output_names_skipped_files_with_the_reason() {
    let home = Home::empty();
    let notes = notes(&home);
    std::fs::write(notes.join("server.pem"), "-----BEGIN").expect("a file");
    let ran = home.run(&["memory", "index", "-v", path(&notes)]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let said = format!(
        "skipped {}: the file has the name of a key or password file, or is in a directory of them; such files are never read",
        notes.join("server.pem").display()
    );
    assert!(ran.stderr.lines().any(|line| line == said), "{}", ran.stderr);
    assert!(ran.stdout.contains(" Skipped 2: "), "{}", ran.stdout);
}

#[tokio::test]
async fn a_question_uses_the_memory_unless_it_is_disabled() {
    let ollama = fakes::ollama().await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let asked = || {
        let requests = ollama.requests();
        let last = requests.iter().rfind(|request| request.path == "/api/chat").expect("a question");
        serde_json::from_slice::<Value>(&last.body).expect("JSON")["messages"].clone()
    };
    let question = "Who serviced the boiler?";
    let plain = json!([{ "role": "user", "content": question }]);
    assert_eq!(home.run(&["ask", question]).await.code, Some(0));
    assert_eq!(asked(), plain);
    assert!(!home.directory().join("memory.db").exists());

    let notes = notes(&home);
    std::fs::write(notes.join("tax.md"), "The capital gains are taxed in May.").expect("a file");
    index(&home, &notes).await;
    let ran = home.run(&["ask", "-v", question]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let place = format!("{}:1", notes.join("heating.md").display());
    let shown = format!("[1] {place}  Heating  The boiler was serviced in October");
    assert!(ran.stderr.contains(&shown), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("Sources: heating.md:1\n"), "{}", ran.stderr);
    for arguments in [&["ask", question][..], &["ask", "--no-stream", question]] {
        let ran = home.run(arguments).await;
        assert_eq!(ran.code, Some(0), "{arguments:?}");
        assert!(ran.stderr.ends_with("Sources: heating.md:1\n"), "{arguments:?}: {}", ran.stderr);
    }
    let ran = home.run(&["ask", "What is the capital of Mongolia?"]).await;
    assert_eq!(ran.code, Some(0));
    assert!(!ran.stderr.contains("Sources"), "nothing there is about that: {}", ran.stderr);
    let ran = home.run(&["ask", "-v", question]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let messages = asked();
    assert_eq!((messages.as_array().expect("messages").len(), &messages[0]["role"]), (1, &json!("user")));
    let content = messages[0]["content"].as_str().expect("text");
    assert!(
        content.contains(&place) && content.contains("Ann Miller") && content.ends_with(question),
        "{content}"
    );

    let ran = home.run(&["ask", "--json", question]).await;
    let object: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(object["context"][0]["line"], 1, "{object}");

    let ran = home.run(&["ask", "--no-context", "--json", question]).await;
    assert_eq!(asked(), plain);
    assert!(!ran.stdout.contains("\"context\""), "{}", ran.stdout);
}

#[tokio::test]
async fn a_watched_folder_is_indexed_again_on_changes() {
    let home = Home::empty();
    let notes = notes(&home);
    let mut child = home.hob(&["memory", "index", path(&notes), "--watch"]).spawn().expect("hob starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let mut says = async |needle: &str| {
        while let Some(line) = lines.next_line().await.expect("text") {
            if line.contains(needle) {
                return;
            }
        }
        panic!("hob ended without saying '{needle}'");
    };
    says("Watching for changes").await;
    std::fs::write(notes.join("new.md"), "The attic is insulated with wool.").expect("a file");
    says("Indexed 1 file: 1 passage").await;
    let ran = home.run(&["memory", "search", "attic"]).await;
    assert!(ran.stdout.contains("insulated with wool"), "{}", ran.stdout);
    let pid = child.id().and_then(|id| id.try_into().ok()).and_then(Pid::from_raw).expect("hob runs");
    kill_process(pid, Signal::INT).expect("hob runs");
    assert_eq!(child.wait().await.expect("hob ends").code(), Some(130));
}
