//! A real file system that is full or read-only. It is mounted, so these tests need root; without it they are skipped with a message.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::client::{Answer, Client};
use super::outcome::databases;
use super::report;
use crate::home::{Home, engines_config};
use crate::replicas::engine::{EngineLog, prompt};
use crate::running::Running;

/// Enough for a new home, and for the write-ahead logs of both databases.
const SIZE: &str = "size=12m";

/// How long a server may take to write again. Only a failure takes as long.
const LIMIT: Duration = Duration::from_secs(90);

struct SmallDisk(TempDir);

impl SmallDisk {
    /// `None` if it cannot be mounted.
    fn mount() -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", SIZE, "tmpfs"])
            .arg(directory.path())
            .output()
            .is_ok_and(|ran| ran.status.success());
        if !mounted {
            eprintln!("skipped: a file system can be mounted only by root");
        }
        mounted.then(|| SmallDisk(directory))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// A home on it. It must be dropped before the disk.
    fn home(&self, config: &str) -> Home {
        let home = Home::in_directory(tempfile::tempdir_in(self.path()).expect("a directory"));
        std::fs::write(home.config_file(), config).expect("a file");
        home
    }

    fn remount(&self, option: &str) {
        let options = format!("remount,{option}");
        let ran = Command::new("mount").args(["-o", &options]).arg(self.path()).output().expect("it runs");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }

    /// Uses all that is left. Returns the file to delete.
    fn fill(&self) -> PathBuf {
        let path = self.path().join("fill");
        let mut file = std::fs::File::create(&path).expect("a file");
        while file.write_all(&[0; 1024]).is_ok() {}
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Also while a program that failed the test still has a file open.
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}

async fn ask(client: &Client, subject: &str) {
    let messages = json!([{ "role": "user", "content": prompt(subject) }]);
    let body = json!({ "model": "default", "agent": "none", "messages": messages });
    let answer = client.send(Method::POST, "/v1/chat/completions", Some(&body)).await.expect("it runs");
    assert_eq!(answer.status, 200, "chats continue: {answer:?}");
}

/// The number of changes below.
const CHANGES: usize = 6;

/// What must be stored: a path and a body.
fn changes(number: usize) -> [(Method, &'static str, Value); CHANGES - 1] {
    let task = json!({ "schedule_type": "interval", "schedule_value": 3600, "prompt": "Hello" });
    [
        (Method::POST, "/v1/chats", json!({ "title": format!("chat {number}") })),
        (Method::POST, "/v1/tasks", task),
        (Method::POST, "/v1/conversations", json!({})),
        (Method::POST, "/v1/keys", json!({ "name": format!("key{number}") })),
        (Method::PATCH, "/v1/settings", json!({ "settings": { "memory.chunk_size": 300 + number } })),
    ]
}

/// Makes every change, and says which ones the server has acknowledged. The last two write files, the others the database.
async fn change_all(client: &Client, number: usize) -> Vec<bool> {
    let mut acknowledged = Vec::new();
    for (method, path, body) in changes(number) {
        let answer = client.send(method, path, Some(&body)).await.expect("the server runs");
        acknowledged.push(is_acknowledged(path, &answer));
    }
    let answer = client.upload(&format!("{number}.md"), "The bakery opens.").await.expect("the server runs");
    acknowledged.push(is_acknowledged("upload", &answer));
    acknowledged
}

/// Any other answer than a good one says that the disk is full.
fn is_acknowledged(path: &str, answer: &Answer) -> bool {
    if !answer.is_success() {
        assert_refused(path, answer, "disk_full", "the disk is full, so nothing was saved");
    }
    answer.is_success()
}

/// The answer says what is wrong with the disk, that nothing was saved, and when to try again.
fn assert_refused(path: &str, answer: &Answer, code: &str, words: &str) {
    let error = &answer.body["error"];
    assert_eq!((answer.status, error["code"].as_str()), (503, Some(code)), "{path}: {answer:?}");
    assert!(error["message"].as_str().is_some_and(|text| text.starts_with(words)), "{path}: {answer:?}");
    assert_eq!(answer.retry_after.as_deref(), Some("30"), "{path}: {answer:?}");
}

/// What is stored: the numbers of the chats, of the tasks and of the keys.
async fn counts(client: &Client) -> [usize; 3] {
    let count = async |path: &str, list: &str| {
        let page = client.get(path).await.expect("readable");
        page[list].as_array().map_or(0, Vec::len)
    };
    [count("/v1/chats", "data").await, count("/v1/tasks", "tasks").await, count("/v1/keys", "data").await]
}

/// How many of each were acknowledged in all.
fn expected(rounds: &[Vec<bool>]) -> [usize; 3] {
    [0, 1, 3].map(|kind| rounds.iter().filter(|round| round[kind]).count())
}

#[tokio::test]
#[ignore = "mounts a file system: ./dev test --faults"]
async fn a_full_disk_loses_nothing_and_the_server_recovers_without_a_restart() {
    let Some(disk) = SmallDisk::mount() else { return };
    let mut figure = report("full-disk", "rounds of changes");
    let engines = EngineLog::default();
    let engine = engines.start(0).await;
    let home = disk.home(&engines_config(&[("vllm", &engine.url())]));
    let server = Running::start(&home, &[]).await;
    let client = Client::of(server.address());
    let mut rounds = vec![change_all(&client, 1).await];
    assert_eq!(rounds[0], [true; CHANGES]);
    ask(&client, "beforeq").await;

    let fill = disk.fill();
    let during = change_all(&client, 2).await;
    // The write-ahead log is far shorter than the length at which SQLite reuses it, so it has no free space of its own.
    assert_eq!(during, [false; CHANGES], "the disk is not full");
    rounds.push(during);
    ask(&client, "duringq").await;
    assert_eq!(counts(&client).await, expected(&rounds));

    std::fs::remove_file(fill).expect("deleted");
    let recovered = async {
        for number in 3.. {
            let round = change_all(&client, number).await;
            let is_good = round == [true; CHANGES];
            rounds.push(round);
            if is_good {
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(LIMIT, recovered).await.expect("the server writes again");
    figure.count = rounds.len();
    ask(&client, "afterq").await;
    assert_eq!(counts(&client).await, expected(&rounds));
    let ended = server.terminate().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);

    let server = Running::start(&home, &[]).await;
    assert_eq!(counts(&Client::of(server.address())).await, expected(&rounds));
    server.terminate().await;
    assert_eq!(databases(home.directory()), [""; 0]);
}

#[tokio::test]
#[ignore = "mounts a file system: ./dev test --faults"]
async fn a_start_on_a_read_only_disk_names_the_file_and_changes_nothing() {
    let Some(disk) = SmallDisk::mount() else { return };
    let mut figure = report("read-only-disk", "starts");
    let engines = EngineLog::default();
    let engine = engines.start(0).await;
    let home = disk.home(&engines_config(&[("vllm", &engine.url())]));
    let server = Running::start(&home, &[]).await;
    let rounds = [change_all(&Client::of(server.address()), 1).await];
    assert_eq!(server.terminate().await.code, Some(0));

    disk.remount("ro");
    let refused = home.run(&["serve", "--port", "0"]).await;
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{}", refused.stderr);
    assert!(refused.stderr.contains("hob.db"), "{}", refused.stderr);

    disk.remount("rw");
    let server = Running::start(&home, &[]).await;
    let client = Client::of(server.address());
    assert_eq!(counts(&client).await, expected(&rounds));
    assert_eq!(change_all(&client, 2).await, [true; CHANGES]);
    server.terminate().await;
    assert_eq!(databases(home.directory()), [""; 0]);
    figure.count = 3;
}

#[tokio::test]
#[ignore = "mounts a file system: ./dev test --faults"]
async fn settings_on_a_read_only_disk_cannot_be_changed_until_it_is_writable() {
    let Some(disk) = SmallDisk::mount() else { return };
    let engines = EngineLog::default();
    let engine = engines.start(0).await;
    let config = disk.path().join("config.toml");
    let text = engines_config(&[("vllm", &engine.url())]);
    std::fs::write(&config, &text).expect("a file");
    disk.remount("ro");
    // Only the configuration is on it.
    let home = Home::empty();
    let mut command = home.hob(&["serve", "--port", "0"]);
    command.env("HOB_CONFIG", &config);
    let server = Running::of(command).await;
    let client = Client::of(server.address());
    let path = "/v1/settings";
    let change = json!({ "settings": { "memory.chunk_size": 300 } });
    let answer = client.send(Method::PATCH, path, Some(&change)).await.expect("the server runs");
    assert_refused(path, &answer, "disk_read_only", "the disk is read-only, so nothing was saved");
    assert_eq!(std::fs::read_to_string(&config).expect("a file"), text);

    disk.remount("rw");
    client.created(Method::PATCH, path, &change).await.expect("the server runs");
    assert!(std::fs::read_to_string(&config).expect("a file").contains("chunk_size = 300"));
    let ended = server.terminate().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}
