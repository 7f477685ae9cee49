//! States of Hob's directory and of the databases in it.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use hob_app::{HOB_MIGRATIONS, MEMORY_MIGRATIONS};
use hob_db::{Database, Migrations};
#[cfg(target_os = "linux")]
use hob_testkit::{FakeServer, Reply};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::diagnosis::Diagnosis;
#[cfg(target_os = "linux")]
use super::diagnosis::in_sandbox;
use super::home;
use crate::fakes;
use crate::home::Home;

/// A home with a working engine, and the engine.
async fn in_order() -> (Home, FakeServer) {
    let ollama = fakes::ollama().await;
    (home(&[("ollama", &ollama.url())]), ollama)
}

fn made(home: &Home, file: &str, migrations: &[Migrations]) -> String {
    let path = home.directory().join(file);
    drop(Database::open(&path, migrations).expect("made"));
    path.display().to_string()
}

/// Runs these Python lines with SQLite and the database `db`.
fn python(database: &Path, lines: &str) -> Command {
    let python = std::env::var("HOB_TEST_PYTHON").expect("$HOB_TEST_PYTHON; run this test with './dev test'");
    let mut command = Command::new(python);
    let script =
        format!("import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1], isolation_level=None)\n{lines}");
    command.args(["-c", &script]).arg(database).kill_on_drop(true);
    command
}

#[tokio::test]
async fn intact_databases_are_reported_as_good() {
    let (home, _ollama) = in_order().await;
    made(&home, "hob.db", HOB_MIGRATIONS);
    made(&home, "memory.db", MEMORY_MIGRATIONS);
    let found = Diagnosis::of(&home).await;
    found.shows("hob.db", "good", " KB").shows("memory.db", "good", " KB").is_ready_and_next_is("hob ask");
}

#[tokio::test]
async fn the_fix_for_a_damaged_database_moves_all_its_files() {
    for (file, again) in [("hob.db", "Hob creates a new one"), ("memory.db", "'hob memory index PATH'")] {
        let (home, _ollama) = in_order().await;
        let place = |file: &str| home.directory().join(file);
        // The second time, the files that were moved away the first time still exist.
        for (aside, said) in [("damaged", "what was written last"), ("damaged-2", "and once more")] {
            fs::write(place(file), "no database at all".repeat(1000)).expect("written");
            fs::write(place(&format!("{file}-wal")), said).expect("written");
            let found = Diagnosis::of(&home).await;
            found
                .shows(file, "warning", "the file is damaged")
                .is_ready_and_next_is("Stop Hob, then mkdir '");
            assert!(found.next.ends_with(again), "{}", found.next);
            let command = found.next.strip_prefix("Stop Hob, then ");
            let (command, _) = command.and_then(|rest| rest.split_once(", and ")).expect("a command");
            let ran = Command::new("sh").args(["-c", command]).status().await.expect("a shell");
            assert!(ran.success(), "{command}");
            for file in [file.to_owned(), format!("{file}-wal")] {
                assert!(!place(&file).exists(), "{file}");
            }
            let aside = place(&format!("{file}.{aside}"));
            let last = fs::read_to_string(aside.join(format!("{file}-wal"))).expect("a file");
            assert_eq!(last, said);
            assert!(aside.join(file).exists());
        }
    }
}

#[tokio::test]
async fn a_database_of_another_version_is_reported() {
    let (home, _ollama) = in_order().await;
    let path = made(&home, "hob.db", HOB_MIGRATIONS);
    let set = |version: &'static str| {
        python(Path::new(&path), &format!("db.execute('PRAGMA user_version = {version}')")).status()
    };
    assert!(set("0").await.expect("Python runs").success());
    let found = Diagnosis::of(&home).await;
    found.shows("hob.db", "good", "from an older version of Hob").is_ready_and_next_is("hob ask");
    assert!(set("4711").await.expect("Python runs").success());
    let found = Diagnosis::of(&home).await;
    found.shows("hob.db", "warning", "written by a newer Hob").is_ready_and_next_is("Update Hob");
}

async fn locked(path: &Path) -> Child {
    let lines = "db.execute('BEGIN EXCLUSIVE')\nprint('locked', flush=True)\nsys.stdin.read()";
    let mut command = python(path, lines);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Python starts");
    let mut said = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert_eq!(said.next_line().await.expect("text").as_deref(), Some("locked"));
    child
}

#[tokio::test]
async fn a_locked_database_is_distinguished_from_a_broken_one() {
    for (file, migrations) in [("hob.db", HOB_MIGRATIONS), ("memory.db", MEMORY_MIGRATIONS)] {
        let (home, _ollama) = in_order().await;
        let path = made(&home, file, migrations);
        let _holder = locked(Path::new(&path)).await;
        let found = Diagnosis::of(&home).await;
        found.shows(file, "warning", "another process has locked it").is_ready_and_next_is("fuser");
    }
}

#[tokio::test]
async fn an_impossible_directory_is_reported() {
    let (home, _ollama) = in_order().await;
    let file = home.directory().join("some-file");
    fs::write(&file, "").expect("written");
    let mut command = home.hob(&["doctor", "--json"]);
    command.env("HOB_HOME", file.join("hob")).env("HOB_CONFIG", home.config_file());
    let found = Diagnosis::from(command).await;
    found.shows("home", "warning", "some-file is not a directory").is_ready_and_next_is("set HOB_HOME");

    let mut command = home.hob(&["doctor", "--json"]);
    command.env("HOB_HOME", home.directory().join("new")).env("HOB_CONFIG", home.config_file());
    Diagnosis::from(command).await.shows("home", "good", "not created yet").is_ready_and_next_is("hob ask");
}

#[tokio::test]
async fn a_relative_directory_is_reported() {
    let (home, _ollama) = in_order().await;
    let mut command = home.hob(&["doctor", "--json"]);
    command.env("HOB_HOME", "here").env("HOB_CONFIG", home.config_file()).current_dir(home.directory());
    let found = Diagnosis::from(command).await;
    found.shows("home", "warning", "here is a relative path, which depends on the current directory");
    found.is_ready_and_next_is("export HOB_HOME='/");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_unwritable_directory_is_reported() {
    let (home, _ollama) = in_order().await;
    let path = home.directory().display().to_string();
    let found = Diagnosis::from(in_sandbox(&home, &["--ro-bind", &path, &path], &["--json"])).await;
    found.shows("home", "warning", "is not writable").is_ready_and_next_is("chown");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_model_is_not_promised_to_an_unwritable_directory() {
    let home = home(&[]);
    let path = home.directory().display().to_string();
    let hub = FakeServer::replying(Reply::new(200, "application/octet-stream", "")).await;
    let mut command = in_sandbox(&home, &["--ro-bind", &path, &path], &["--json"]);
    command.env("HF_ENDPOINT", hub.url());
    let found = Diagnosis::from(command).await;
    found.shows("engine", "bad", "its directory is not writable");
    found.is_not_ready_and_next_is("set HOB_HOME to a directory that you own");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_nearly_full_disk_is_reported() {
    let (home, _ollama) = in_order().await;
    let (path, file) = (home.directory().display().to_string(), home.config_file().display().to_string());
    let restrictions = ["--size", "8388608", "--tmpfs", &path, "--ro-bind", &file, &file];
    let found = Diagnosis::from(in_sandbox(&home, &restrictions, &["--json"])).await;
    found.shows("home", "warning", "only 8 MB free").is_ready_and_next_is("Free some space");
}
