//! `hob database copy`, `hob backup` and `hob restore`, with a real PostgreSQL.

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use hob_app::POSTGRES_MIGRATIONS;
use hob_db::count_rows;
use hob_db::postgres::PostgresDatabase;
use hob_memory::store::{NewChunk, NewSource, NewVector, SourceStamp};
use hob_memory::{MemoryStore, PositionUnit, PostgresMemoryStore, SqliteMemoryStore};
use hob_testkit::old_database::left_at;
use hob_testkit::{PostgresServer, TestDatabase};
use serde_json::Value;
use tokio::process::Command;

use crate::fakes;
use crate::home::{Home, Ran, finish};
use crate::running::Running;

/// All kinds of data, as the last Hob with one list of migrations left them.
const OLD: [&str; 10] = [
    include_str!("../../../app/tests/app/old_databases/hob/1.sql"),
    include_str!("../../../app/tests/app/old_databases/hob/2.sql"),
    include_str!("../../../app/tests/app/old_databases/hob/3.sql"),
    include_str!("../../../app/tests/app/old_databases/hob/4.sql"),
    include_str!("../../../app/tests/app/old_databases/hob/5.sql"),
    include_str!("../../../app/tests/app/old_databases/hob/6.sql"),
    include_str!("../../../app/tests/app/old_databases/hob/7.sql"),
    include_str!("../../../app/tests/app/old_databases/hob/8.sql"),
    include_str!("../../../app/tests/app/old_databases/hob/9.sql"),
    include_str!("../../../app/tests/app/old_databases/hob/10.sql"),
];

const COPY: [&str; 6] = ["database", "copy", "--from", "sqlite", "--to", "postgres"];
const COPY_BACK: [&str; 6] = ["database", "copy", "--from", "postgres", "--to", "sqlite"];

/// A home with calls, tasks, messages, chats, learned routing, keys, an audit log, and a memory with vectors.
async fn filled() -> Home {
    let home = Home::empty();
    drop(left_at(&OLD, OLD.len(), &home.directory().join("hob.db")));
    let memory = SqliteMemoryStore::open(&home.directory().join("memory.db")).expect("opened");
    memory.save(&boiler(), SystemTime::UNIX_EPOCH).expect("saved");
    memory.add_vectors("minilm", &[NewVector { chunk: 1, vector: vec![0.6, -0.8] }]).expect("added");
    drop(memory);
    for command in [
        &["key", "create", "ana", "--models", "qwen*", "--budget", "200k tokens/day"][..],
        &["key", "create", "ben", "--expires", "2099-01-31"],
        &["key", "disable", "ben"],
    ] {
        let ran = home.run(command).await;
        assert_eq!(ran.code, Some(0), "{command:?}: {}", ran.stderr);
    }
    home
}

/// A document of one chunk.
fn boiler() -> NewSource {
    NewSource {
        collection: hob_core::CollectionName::default(),
        path: "/notes/boiler.md".to_owned(),
        title: "Boiler".to_owned(),
        place: PositionUnit::Line,
        stamp: SourceStamp { hash: [7; 32], modified: 5, size: 11, recipe: "512/64".to_owned() },
        chunks: vec![NewChunk {
            title: "Service".to_owned(),
            text: "The boiler was serviced in May.".to_owned(),
            line: 1,
            end_line: 1,
            tokens: 7,
        }],
    }
}

/// A database with a document, opened under another name than Hob's, which would count as a user of it.
fn with_a_document() -> (TestDatabase, PostgresDatabase) {
    let created = database();
    let url = format!("{}&application_name=test", created.url());
    let opened = PostgresDatabase::new(url.parse().expect("a URL"), POSTGRES_MIGRATIONS).expect("opened");
    PostgresMemoryStore::new(opened.clone()).save(&boiler(), SystemTime::UNIX_EPOCH).expect("saved");
    (created, opened)
}

fn count(database: &PostgresDatabase, table: &str) -> i64 {
    let counted = database.read(|transaction| {
        let row = transaction.query_one(&format!("SELECT count(*) FROM {table}"), &[])?;
        Ok(row.try_get::<_, i64>(0)?)
    });
    counted.expect("counted")
}

/// What users see of the data.
async fn seen(home: &Home) -> Vec<String> {
    let mut seen = Vec::new();
    for command in [
        &["telemetry", "export"][..],
        &["telemetry", "stats", "--json"],
        &["scheduler", "list", "--json"],
        &["scheduler", "logs", "water-the-plants", "--json"],
        &["router", "show", "--json"],
        &["memory", "search", "boiler", "--json"],
        &["key", "list", "--json"],
        &["audit", "list", "--json"],
        &["audit", "verify"],
    ] {
        let Ran { code, stdout, stderr } = home.run(command).await;
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{command:?}");
        seen.push(if command.contains(&"stats") { without_days(&stdout) } else { stdout });
    }
    seen
}

/// Statistics without the figures of the last days, which are others after midnight.
fn without_days(stats: &str) -> String {
    let mut stats: Value = serde_json::from_str(stats).expect("JSON");
    stats.as_object_mut().expect("an object").remove("days").expect("the last days");
    stats.to_string()
}

/// The rows of the tables that are equal in both databases. Calls may be in other pages.
fn rows(home: &Path) -> Vec<(String, u64)> {
    let mut rows = Vec::new();
    for file in ["hob.db", "memory.db"] {
        rows.extend(count_rows(&home.join(file)).expect("counted"));
    }
    rows.retain(|(table, _)| {
        !["telemetry_page", "database_copy", "memory_vector_gone"].contains(&table.as_str())
    });
    rows
}

fn database() -> TestDatabase {
    PostgresServer::shared().create_database()
}

fn with(database: &TestDatabase, home: &Home, arguments: &[&str]) -> Command {
    let mut command = home.hob(arguments);
    command.env("HOB_DATABASE_URL", database.url());
    command
}

fn failure(ran: &Ran) -> &str {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    &ran.stderr
}

#[tokio::test]
async fn everything_moves_to_postgresql_and_back() {
    let (home, database) = (filled().await, database());
    let before = seen(&home).await;
    let there = finish(with(&database, &home, &COPY)).await;
    assert_eq!(there.code, Some(0), "{}", there.stderr);
    for line in [
        "telemetry_call                  5",
        "chat ",
        "task_run ",
        "memory_vector                   1",
        "api_key                         2",
        "audit_entry                     3",
        "Both have the same",
    ] {
        assert!(there.stdout.contains(line), "'{line}' in\n{}", there.stdout);
    }

    let again = finish(with(&database, &home, &COPY)).await;
    assert_eq!(again.code, Some(0));
    assert!(again.stdout.starts_with("Nothing was copied: an earlier copy"), "{}", again.stdout);

    let back = Home::empty();
    let copied = finish(with(&database, &back, &COPY_BACK)).await;
    assert_eq!(copied.code, Some(0), "{}", copied.stderr);
    assert_eq!(rows(back.directory()), rows(home.directory()));
    assert_eq!(seen(&back).await, before);
}

#[tokio::test]
async fn a_copy_that_was_killed_continues() {
    let (home, created) = (filled().await, database());
    // Another name than Hob's, which would count as a user of the database.
    let url = format!("{}&application_name=test", created.url());
    let watched = PostgresDatabase::new(url.parse().expect("a URL"), POSTGRES_MIGRATIONS).expect("opened");
    watched.migrate().expect("migrated");
    let (locked, is_locked) = mpsc::channel();
    let (release, is_released) = mpsc::channel::<()>();
    let holder = watched.clone();
    let holding = std::thread::spawn(move || {
        holder.write(|transaction| {
            transaction.run_script("LOCK TABLE chat IN SHARE MODE")?;
            locked.send(()).expect("the test waits");
            let _ = is_released.recv();
            Ok(())
        })
    });
    is_locked.recv().expect("locked");
    let mut child = with(&created, &home, &COPY).spawn().expect("hob starts");
    loop {
        let waiting = watched.read(|transaction| {
            let sql =
                "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'chat'::regclass)";
            Ok(transaction.query_one(sql, &[])?.try_get::<_, bool>(0)?)
        });
        if waiting.expect("read") {
            break;
        }
        assert!(child.try_wait().expect("a child").is_none(), "it waits for the lock");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    child.kill().await.expect("killed");
    release.send(()).expect("held");
    holding.join().expect("ended").expect("released");

    let ran = finish(with(&created, &home, &COPY)).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let total: u64 = ran
        .stdout
        .rsplit_once("Both have the same ")
        .and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok())
        .expect("a number");
    let copied: u64 = ran
        .stdout
        .rsplit_once("Copied ")
        .and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok())
        .expect("a number");
    assert!(0 < copied && copied < total, "{}", ran.stdout);
    let back = Home::empty();
    assert_eq!(finish(with(&created, &back, &COPY_BACK)).await.code, Some(0));
    assert_eq!(seen(&back).await, seen(&home).await);
}

#[tokio::test]
async fn a_wrong_target_is_refused_and_unchanged() {
    let (home, database) = (filled().await, database());
    let same = home.run(&["database", "copy", "--from", "sqlite", "--to", "sqlite:/nowhere"]).await;
    assert!(failure(&same).contains("must be different kinds"), "{}", same.stderr);
    let unset = home.run(&COPY).await;
    assert!(failure(&unset).contains("no PostgreSQL is configured"), "{}", unset.stderr);
    let empty = Home::empty();
    let nothing = finish(with(&database, &empty, &COPY)).await;
    assert!(failure(&nothing).contains("there is nothing to copy"), "{}", nothing.stderr);

    assert_eq!(finish(with(&database, &home, &COPY)).await.code, Some(0));
    let other = filled().await;
    let occupied = finish(with(&database, &other, &COPY)).await;
    assert!(failure(&occupied).contains("already has data"), "{}", occupied.stderr);
    let before = rows(other.directory());
    let occupied = finish(with(&database, &other, &COPY_BACK)).await;
    assert!(failure(&occupied).contains("already has data"), "{}", occupied.stderr);
    assert_eq!(rows(other.directory()), before);

    let warned = other
        .run(&["database", "copy", "--from", "sqlite", "--to", "postgres://ann:secret@127.0.0.1:9/x"])
        .await;
    let said = failure(&warned);
    assert!(said.contains("can read the password") && !said.contains("secret"), "{said}");
}

#[tokio::test]
async fn a_copy_whose_target_has_only_documents_is_refused_before_it_begins() {
    let home = filled().await;
    let (created, opened) = with_a_document();
    let refused = finish(with(&created, &home, &COPY)).await;
    assert!(failure(&refused).contains("already has data"), "{}", refused.stderr);
    assert_eq!([count(&opened, "api_key"), count(&opened, "memory_source")], [0, 1]);

    // The other way: the target has only a memory.
    let full = database();
    assert_eq!(finish(with(&full, &home, &COPY)).await.code, Some(0));
    let target = Home::empty();
    let memory = SqliteMemoryStore::open(&target.directory().join("memory.db")).expect("opened");
    memory.save(&boiler(), SystemTime::UNIX_EPOCH).expect("saved");
    drop(memory);
    let refused = finish(with(&full, &target, &COPY_BACK)).await;
    assert!(failure(&refused).contains("already has data"), "{}", refused.stderr);
    let hob = target.directory().join("hob.db");
    let keys = if hob.exists() { count_rows(&hob).expect("counted")["api_key"] } else { 0 };
    assert_eq!(keys, 0);
}

#[tokio::test]
async fn a_restored_backup_without_documents_replaces_those_of_a_server() {
    let home = Home::empty();
    assert_eq!(home.run(&["key", "create", "ana"]).await.code, Some(0));
    let file = home.documents().join("backup.zip");
    let file = file.to_str().expect("text");
    assert_eq!(home.run(&["backup", file]).await.code, Some(0));
    let (created, opened) = with_a_document();
    let refused = finish(with(&created, &home, &["restore", file])).await;
    assert!(failure(&refused).contains("Add --force"), "{}", refused.stderr);
    assert_eq!([count(&opened, "api_key"), count(&opened, "memory_source")], [0, 1]);
    let restored = finish(with(&created, &home, &["restore", file, "--force"])).await;
    assert_eq!(restored.code, Some(0), "{}", restored.stderr);
    assert_eq!([count(&opened, "api_key"), count(&opened, "memory_source")], [1, 0]);
}

#[tokio::test]
async fn a_copy_is_refused_while_a_server_runs_and_a_backup_is_not() {
    let ollama = fakes::ollama().await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    assert_eq!(home.run(&["ask", "Capital?"]).await.code, Some(0));
    let server = Running::start(&home, &[]).await;
    let database = database();
    let refused = finish(with(&database, &home, &COPY)).await;
    assert!(failure(&refused).contains("Stop it, and try again"), "{}", refused.stderr);
    let file = home.documents().join("backup.zip");
    let file = file.to_str().expect("text");
    let saved = home.run(&["backup", file]).await;
    assert_eq!(saved.code, Some(0), "{}", saved.stderr);
    let refused = home.run(&["restore", file, "--force"]).await;
    assert!(failure(&refused).contains("Stop it, and try again"), "{}", refused.stderr);
    assert_eq!(server.terminate().await.code, Some(0));
    assert_eq!(home.run(&["restore", file, "--force"]).await.code, Some(0));
}

#[tokio::test]
async fn a_backup_is_restored_in_either_database() {
    let home = filled().await;
    let before = seen(&home).await;
    let file = home.documents().join("backup.zip");
    let file = file.to_str().expect("text");
    let saved = home.run(&["backup", file]).await;
    assert_eq!(saved.code, Some(0), "{}", saved.stderr);
    assert!(saved.stderr.contains("config.toml with its keys"), "{}", saved.stderr);
    assert!(failure(&home.run(&["backup", file]).await).contains("already exists"));

    assert!(failure(&home.run(&["restore", file]).await).contains("Add --force"));
    assert_eq!(home.run(&["telemetry", "clear", "-y"]).await.code, Some(0));
    let restored = home.run(&["restore", file, "--force"]).await;
    assert_eq!(restored.code, Some(0), "{}", restored.stderr);
    assert!(restored.stderr.contains("hob.db.before-restore-"), "{}", restored.stderr);
    assert_eq!(seen(&home).await, before);

    let database = database();
    let to_server = finish(with(&database, &home, &["restore", file])).await;
    assert_eq!(to_server.code, Some(0), "{}", to_server.stderr);
    let refused = finish(with(&database, &home, &["restore", file])).await;
    assert!(failure(&refused).contains("Add --force"), "{}", refused.stderr);
    let replaced = finish(with(&database, &home, &["restore", file, "--force"])).await;
    assert_eq!(replaced.code, Some(0), "{}", replaced.stderr);
    assert!(replaced.stderr.contains("before-restore-"), "{}", replaced.stderr);

    let of_server = home.documents().join("server.zip");
    let of_server = of_server.to_str().expect("text");
    assert_eq!(finish(with(&database, &home, &["backup", of_server])).await.code, Some(0));
    let other = Home::empty();
    let from_server = other.run(&["restore", of_server]).await;
    assert_eq!(from_server.code, Some(0), "{}", from_server.stderr);
    assert_eq!(seen(&other).await, before);
}

#[tokio::test]
async fn a_damaged_backup_and_another_file_change_nothing() {
    let home = filled().await;
    let file = home.documents().join("backup.zip");
    let path = file.to_str().expect("text");
    assert_eq!(home.run(&["backup", path]).await.code, Some(0));
    let whole = std::fs::read(&file).expect("there");
    let before = rows(home.directory());
    let restore = async |bytes: &[u8]| {
        std::fs::write(&file, bytes).expect("written");
        failure(&home.run(&["restore", path, "--force"]).await).to_owned()
    };
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 0xff;
    let said = restore(&damaged).await;
    assert!(said.contains("damaged") && said.contains("Nothing was changed"), "{said}");
    let said = restore(&whole[..whole.len() / 2]).await;
    assert!(said.contains("is not a backup of Hob"), "{said}");
    let said = restore(b"a letter").await;
    assert!(
        said.contains("is not a backup of Hob, or it is incomplete. Use a file that 'hob backup' wrote"),
        "{said}"
    );
    assert!(!said.contains("Zip"), "{said}");
    assert_eq!(rows(home.directory()), before);
    let left: Vec<String> = std::fs::read_dir(home.directory())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("restore") && name != ".restore.lock")
        .collect();
    assert_eq!(left, [""; 0]);
}
