//! Transactions on a real server: seen by others, retried, refused with words.

use std::net::TcpListener;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use hob_testkit::{PostgresServer, TestDatabase, free_port};

use super::super::inspect::ExtensionState;
use super::super::listener::{POLL_INTERVAL, TopicMessage};
use super::super::transaction::MAX_MESSAGE_BYTES;
use super::*;

pub(super) const MIGRATIONS: &[PostgresMigrations] = &[PostgresMigrations {
    capability: "notes",
    steps: &["CREATE TABLE note (id BIGINT PRIMARY KEY, text TEXT NOT NULL)"],
    usable_from: 0,
}];

pub(super) fn options(url: &str) -> PostgresOptions {
    url.parse().expect("a good URL")
}

pub(super) fn at(url: &str) -> PostgresDatabase {
    PostgresDatabase::new(options(url), MIGRATIONS).expect("made")
}

pub(super) fn database() -> (PostgresDatabase, TestDatabase) {
    let test = PostgresServer::shared().create_database();
    (at(&test.url()), test)
}

pub(super) fn insert(database: &PostgresDatabase, id: i64, text: &str) -> Result<u64, DatabaseError> {
    database.write(|transaction| {
        transaction.execute("INSERT INTO note (id, text) VALUES ($1, $2)", &[&id, &text])
    })
}

pub(super) fn texts(database: &PostgresDatabase) -> Result<Vec<String>, DatabaseError> {
    database.read(|transaction| {
        let rows = transaction.query("SELECT text FROM note ORDER BY id", &[])?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    })
}

#[test]
fn what_is_written_is_read_by_all_connections() {
    let (one, test) = database();
    let two = at(&test.url());
    assert_eq!(insert(&one, 1, "hello").expect("written"), 1);
    assert_eq!(texts(&two).expect("read"), ["hello"]);
    let refused: Result<(), _> = one.write(|transaction| {
        transaction.execute("UPDATE note SET text = 'lost'", &[])?;
        Err(QueryError::unreadable("text", "no good"))
    });
    assert!(matches!(refused, Err(DatabaseError::QueryFailed { .. })), "{refused:?}");
    assert_eq!(texts(&two).expect("read"), ["hello"], "an error undoes the transaction");
    let duplicate = insert(&two, 1, "again").expect_err("the key is taken");
    assert!(!duplicate.is_temporary() && duplicate.to_string().contains("note_pkey"), "{duplicate}");
    assert_eq!(insert(&two, 2, "after an error").expect("written"), 1);
}

#[test]
fn a_read_sees_one_moment_and_changes_nothing() {
    let (one, test) = database();
    let two = at(&test.url());
    insert(&one, 1, "first").expect("written");
    let count = "SELECT count(*) FROM note";
    let counts: Vec<i64> = one
        .read(|transaction| {
            let before = transaction.query_one(count, &[])?.try_get(0)?;
            if texts(&two).expect("read").len() == 1 {
                insert(&two, 2, "second").expect("written");
            }
            Ok(vec![before, transaction.query_one(count, &[])?.try_get(0)?])
        })
        .expect("read");
    assert_eq!(counts, [1, 1]);
    let refused = one.read(|transaction| transaction.execute("DELETE FROM note", &[]));
    assert!(refused.is_err());
    assert_eq!(texts(&one).expect("read").len(), 2);
}

#[test]
fn transactions_that_block_each_other_run_again() {
    let (database, _test) = database();
    for id in [1, 2] {
        insert(&database, id, "0").expect("written");
    }
    let tries = AtomicUsize::new(0);
    let both_hold_one = Barrier::new(2);
    let swap = |first: i64, second: i64| {
        let mut is_first_try = true;
        let add = "UPDATE note SET text = (text::bigint + 1)::text WHERE id = $1";
        database.write(|transaction| {
            tries.fetch_add(1, Ordering::Relaxed);
            transaction.execute(add, &[&first])?;
            if std::mem::take(&mut is_first_try) {
                both_hold_one.wait();
            }
            transaction.execute(add, &[&second])
        })
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| swap(1, 2));
        swap(2, 1).expect("written");
        other.join().expect("no panic").expect("written");
    });
    assert_eq!(texts(&database).expect("read"), ["2", "2"]);
    assert!(tries.load(Ordering::Relaxed) > 2, "one of them lost");
}

#[test]
fn many_rows_are_copied_at_once() {
    use tokio_postgres::types::{ToSql, Type};
    let (database, _test) = database();
    let rows: Vec<(i64, String)> = (0..5000).map(|id| (id, format!("number {id}"))).collect();
    let copied = database.write(|transaction| {
        let rows = rows.iter().map(|(id, text)| vec![id as &(dyn ToSql + Sync), text]);
        transaction.copy_in("COPY note (id, text) FROM STDIN BINARY", &[Type::INT8, Type::TEXT], rows)
    });
    assert_eq!(copied.expect("copied"), 5000);
    assert_eq!(texts(&database).expect("read").last().map(String::as_str), Some("number 4999"));
}

#[test]
fn a_change_is_noticed_by_those_who_watch_its_topic() {
    let (one, test) = database();
    let two = at(&test.url());
    let mut notes = one.watch("notes").expect("watched");
    let mut others = one.watch("others").expect("watched");
    for watch in [&mut notes, &mut others] {
        assert!(watch.has_changed().expect("looked"), "the first look");
    }
    wait_for_listener(PostgresServer::shared(), &test);
    // That it listens counts as a change, of each topic.
    while !notes.has_changed().expect("looked") {
        thread::yield_now();
    }
    let looked = Instant::now();
    while !others.has_changed().expect("looked") {
        thread::yield_now();
    }
    two.write(|transaction| transaction.notify("notes")).expect("written");
    while !notes.has_changed().expect("looked") {
        thread::yield_now();
    }
    let failed: Result<(), _> = two.write(|transaction| {
        transaction.notify("others")?;
        Err(QueryError::unreadable("text", "no good"))
    });
    assert!(failed.is_err());
    two.write(|transaction| transaction.notify("notes")).expect("written");
    while !notes.has_changed().expect("looked") {
        thread::yield_now();
    }
    // After a while, a watch reports a change in any case.
    let is_changed = others.has_changed().expect("looked");
    assert!(!is_changed || looked.elapsed() >= POLL_INTERVAL, "nothing was committed");
}

#[test]
fn all_connections_in_use_is_said_after_a_while() {
    let test = PostgresServer::shared().create_database();
    let options = PostgresOptions {
        max_connections: 1,
        connect_timeout: Duration::from_millis(200),
        ..options(&test.url())
    };
    let database = PostgresDatabase::new(options, MIGRATIONS).expect("made");
    // A busy machine may take longer than this for a connection too. The one that is made then stays open.
    while let Err(error) = database.migrate() {
        assert!(error.is_temporary(), "{error}");
    }
    let busy = database.read(|_| Ok(texts(&database))).expect("held").expect_err("no second one");
    assert!(busy.is_temporary());
    assert_eq!(
        busy.to_string(),
        format!(
            "all 1 connections to PostgreSQL at {} are in use. Try again; if this happens often, raise database.max_connections.",
            database.server()
        )
    );
    assert_eq!(texts(&database).expect("free again"), [""; 0]);
}

#[test]
fn a_statement_that_takes_too_long_is_ended() {
    let test = PostgresServer::shared().create_database();
    // The other statements have more than enough time, also on a busy machine.
    at(&test.url()).migrate().expect("migrated");
    let options = PostgresOptions { statement_timeout: Duration::from_secs(1), ..options(&test.url()) };
    let database = PostgresDatabase::new(options, MIGRATIONS).expect("made");
    let slow = database.read(|transaction| transaction.execute("SELECT pg_sleep(600)", &[]));
    assert!(matches!(slow, Err(DatabaseError::Overloaded { .. })), "{slow:?}");
    assert_eq!(texts(&database).expect("read"), [""; 0], "the connection still works");
    let long = database.write(|transaction| {
        transaction.wait_without_limit()?;
        transaction.execute("SELECT pg_sleep(1.5)", &[])
    });
    assert_eq!(long.expect("no limit"), 1);
}

#[test]
fn a_store_may_be_called_where_a_runtime_runs() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (database, _test) = database();
        insert(&database, 1, "hello").expect("written");
        assert_eq!(texts(&database).expect("read"), ["hello"]);
    });
}

#[test]
fn a_server_that_restarts_is_found_again() {
    let mut server = PostgresServer::start();
    let test = server.create_database();
    let database = at(&server.tcp_url(&test));
    let mut watch = database.watch("notes").expect("watched");
    insert(&database, 1, "before").expect("written");
    let mut id = 1;
    let ends: [fn(&mut PostgresServer); 2] = [PostgresServer::stop, PostgresServer::kill];
    for end in ends {
        end(&mut server);
        let error = texts(&database).expect_err("it is down");
        assert!(matches!(error, DatabaseError::Unreachable { .. }) && error.is_temporary(), "{error}");
        assert!(!error.to_string().contains("hob-test"), "{error}");
        server.start_again();
        id += 1;
        insert(&database, id, "after").expect("written");
        assert_eq!(texts(&database).expect("read").len(), usize::try_from(id).expect("small"));
        // The new connection listens, which counts as a change, and then hears this one.
        watch.has_changed().expect("looked");
        while !watch.has_changed().expect("looked") {
            thread::yield_now();
        }
    }
    // Idle connections of several threads are all stale; each thread still succeeds.
    let hold = Barrier::new(4);
    let read_together = || {
        database.read(|transaction| {
            hold.wait();
            transaction.execute("SELECT 1", &[])
        })
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(read_together)).collect();
        for thread in threads {
            thread.join().expect("no panic").expect("read");
        }
    });
    server.stop();
    server.start_again();
    assert_eq!(insert(&database, 100, "at once").expect("written"), 1, "the first use after a restart works");
}

#[test]
fn a_server_that_does_not_answer_holds_one_caller_at_a_time() {
    let port = free_port();
    let mut options = options(&format!("postgres://hob@127.0.0.1:{port}/hob"));
    options.connect_timeout = Duration::from_secs(600);
    let database = PostgresDatabase::new(options, MIGRATIONS).expect("made");
    database.check_known_state().expect("nothing is known yet");
    let is_away = |result| matches!(result, Err(DatabaseError::Unreachable { .. }));
    assert!(is_away(texts(&database).map(drop)), "nothing listens");
    assert!(is_away(database.check_known_state()), "that is known now");
    let silent = TcpListener::bind(("127.0.0.1", port)).expect("free");
    let held = thread::spawn({
        let database = database.clone();
        move || texts(&database).map(drop)
    });
    let (socket, _) = silent.accept().expect("it connects");
    assert!(is_away(texts(&database).map(drop)));
    assert!(!held.is_finished());
    drop((socket, silent));
    assert!(is_away(held.join().expect("ended")));
}

#[test]
fn the_state_of_a_server_is_read_without_a_change() {
    let (database, test) = database();
    let state = database.inspect().expect("it answers");
    assert_eq!((state.steps_behind, state.is_read_only, state.connections.own_max), (1, false, 10));
    assert!(state.version.starts_with(|digit: char| digit.is_ascii_digit()), "{state:?}");
    assert!(
        state.connections.in_use > 0 && state.connections.in_use <= state.connections.server_max,
        "{state:?}"
    );
    assert_eq!(state.pgvector, ExtensionState::Available);
    assert_eq!(at(&test.url()).inspect().expect("it answers").steps_behind, 1, "nothing was migrated");
    insert(&database, 1, "hello").expect("written");
    assert_eq!(database.inspect().expect("it answers").steps_behind, 0);
}

#[test]
fn a_login_that_is_refused_is_said_without_the_password() {
    let server = PostgresServer::start();
    let test = server.create_database();
    let good = server.tcp_url(&test);
    let refused = |url: &str| at(url).migrate().expect_err("refused");
    let wrong = refused(&good.replace("hob-test", "wrong-secret"));
    assert!(matches!(wrong, DatabaseError::LoginRefused { .. }) && !wrong.is_temporary());
    assert_eq!(
        wrong.to_string(),
        format!(
            "PostgreSQL at {} refused the login (db error: FATAL: password authentication failed for user \"hob\"). Check the user, \
             the password and the name of the database in the setting database.url.",
            options(&good).server()
        )
    );
    let missing = refused(&good.replace(":hob-test", ""));
    assert!(matches!(missing, DatabaseError::LoginRefused { .. }), "{missing}");
    let unknown = refused(&format!("{good}_other"));
    assert!(matches!(unknown, DatabaseError::LoginRefused { .. }), "{unknown}");
    let no_tls = refused(&format!("{good}?sslmode=require"));
    assert!(
        matches!(no_tls, DatabaseError::Unreachable { .. }) && no_tls.to_string().contains("TLS"),
        "{no_tls}"
    );
    at(&good).migrate().expect("the right password");
}

#[test]
fn of_several_hosts_the_first_that_answers_is_used() {
    let server = PostgresServer::start();
    let test = server.create_database();
    let dead = format!("127.0.0.1:{},127.0.0.1", free_port());
    let database = at(&server.tcp_url(&test).replacen("127.0.0.1", &dead, 1));
    assert_eq!(insert(&database, 1, "hello").expect("written"), 1);
}

#[test]
fn a_host_that_accepts_connections_and_says_nothing_does_not_keep_the_others_from_being_used() {
    let test = PostgresServer::shared().create_database();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = silent.local_addr().expect("its address").port();
    let socket = test.socket();
    let directory = socket.parent().expect("a directory").to_string_lossy().replace('/', "%2F");
    let url = format!("postgres://hob@127.0.0.1:{port},{directory}:5432/{}?sslmode=disable", test.name());
    let options = PostgresOptions { connect_timeout: Duration::from_millis(300), ..options(&url) };
    let database = PostgresDatabase::new(options, MIGRATIONS).expect("made");
    // A busy machine may take longer than the limit for the good host too.
    while let Err(error) = database.migrate() {
        assert!(error.is_temporary(), "{error}");
    }
    drop(silent);
}

/// Waits until a session of the server listens for changes.
fn wait_for_listener(server: &PostgresServer, test: &TestDatabase) {
    let listening = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = '{}' AND query LIKE 'LISTEN %' AND state = 'idle'",
        test.name()
    );
    while server.query(&listening) == "0" {
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_standby_that_is_promoted_is_used_and_listened_to_instead_of_the_primary() {
    let mut primary = PostgresServer::start();
    let test = primary.create_database();
    let standby = primary.start_standby();
    let url = primary.failover_url(&standby, &test);
    let (one, two) = (at(&url), at(&url));
    insert(&one, 1, "before").expect("written on the primary");
    let mut watch = two.watch("notes").expect("watched");
    wait_for_listener(&primary, &test);
    primary.kill();
    for database in [&one, &two] {
        let error = insert(database, 2, "in between").expect_err("the standby cannot write");
        assert!(error.is_temporary(), "{error}");
        let error = texts(database).expect_err("the standby may be behind, so it is not read either");
        assert!(error.is_temporary(), "{error}");
    }
    standby.promote();
    insert(&one, 2, "after").expect("written on the standby");
    assert_eq!(texts(&two).expect("read"), ["before", "after"]);
    wait_for_listener(&standby, &test);
    watch.has_changed().expect("looked");
    one.write(|transaction| transaction.notify("notes")).expect("written");
    while !watch.has_changed().expect("looked") {
        thread::yield_now();
    }
}

/// The next message that is not a gap.
fn next_text(messages: &mut TopicMessages) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        loop {
            if let TopicMessage::Text(text) = messages.next().await.expect("the database is open") {
                return text.to_string();
            }
        }
    })
}

#[test]
fn messages_reach_the_readers_of_their_topic_in_other_processes() {
    let (one, test) = database();
    let two = at(&test.url());
    let (mut notes, mut others) =
        (two.messages("notes").expect("listening"), two.messages("others").expect("listening"));
    wait_for_listener(PostgresServer::shared(), &test);
    let long = "x".repeat(MAX_MESSAGE_BYTES - "notes ".len());
    one.write(|transaction| {
        transaction.send_message("notes", "two words")?;
        transaction.notify("others")?;
        transaction.send_message("notes", &long)?;
        transaction.send_message("others", "")
    })
    .expect("written");
    assert_eq!((next_text(&mut notes), next_text(&mut notes)), ("two words".to_owned(), long));
    assert_eq!(next_text(&mut others), "", "and not the notification without a message");
    let refused = one.write(|transaction| transaction.send_message("notes", &"x".repeat(8_000)));
    assert!(refused.is_err());
}

#[test]
fn a_server_that_became_a_standby_is_left_for_another_connection() {
    let (database, _test) = database();
    let mut is_first_try = true;
    let written = database.write(|transaction| {
        if std::mem::take(&mut is_first_try) {
            transaction.run_script("SET TRANSACTION READ ONLY")?;
        }
        transaction.execute("DELETE FROM note", &[])
    });
    assert_eq!(written.expect("the second connection can write"), 0);
    let error = database.write(|transaction| {
        transaction.run_script("SET TRANSACTION READ ONLY")?;
        transaction.execute("DELETE FROM note", &[])
    });
    let error = error.expect_err("no connection can write");
    assert!(matches!(error, DatabaseError::Standby { .. }) && error.is_temporary(), "{error}");
}
