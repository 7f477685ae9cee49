//! Several servers with one PostgreSQL: limits hold for all of them together, and survive crashes and a database that is away.

use std::sync::atomic::{AtomicU64, Ordering};

use hob_core::{LimitKind, LimitReached};
use hob_db::postgres::PostgresDatabase;
use hob_testkit::{PostgresServer, TestDatabase};

use super::tests::{Keys, budget, call, keys_over, keys_with, name, usage};
use super::*;
use crate::identity::{IdentityRule, IdentityRules};
use crate::options::StoreFailure;
use crate::store::POSTGRES_MIGRATIONS;

fn connect(url: &str) -> PostgresDatabase {
    PostgresDatabase::new(url.parse().expect("a URL"), &[POSTGRES_MIGRATIONS]).expect("made")
}

/// A server with its own connections. It knows the keys that there are.
async fn server(database: &TestDatabase) -> Keys {
    let keys = keys_over(connect(&database.url()));
    keys.service.reload().await.expect("read");
    keys
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_admit_the_requests_a_minute_of_a_key_together() {
    let database = PostgresServer::shared().create_database();
    let one = server(&database).await;
    one.create("ana", KeyPatch { requests_per_minute: Some(Some(60)), ..KeyPatch::default() }).await;
    let other = server(&database).await;
    let admitted = Arc::new(AtomicU64::new(0));
    // Each server gets as many requests as the key allows, so that it spends every share that it has.
    let asking = (0..120).map(|number| {
        let spending = if number % 2 == 0 { &one } else { &other }.spending("ana");
        let admitted = Arc::clone(&admitted);
        tokio::spawn(async move {
            match spending.begin_request().await {
                Ok(_) => admitted.fetch_add(1, Ordering::Relaxed),
                Err(refusal) => {
                    assert_eq!(refusal.kind, LimitKind::RequestsPerMinute);
                    0
                }
            }
        })
    });
    for asked in asking.collect::<Vec<_>>() {
        asked.await.expect("ended");
    }
    assert_eq!(admitted.load(Ordering::Relaxed), 60);
    assert_eq!((one.used("ana").await, other.used("ana").await), (vec![60], vec![60]));
    for server in [&one, &other] {
        server.clock.forward(60);
        server.spending("ana").begin_request().await.expect("the next minute");
    }
}

#[tokio::test]
async fn two_servers_admit_the_requests_a_minute_of_an_identity_together() {
    let database = PostgresServer::shared().create_database();
    let (one, other) = (server(&database).await, server(&database).await);
    let rule = json!({ "claim": "groups", "value": "ml", "requests_per_minute": 60 });
    for server in [&one, &other] {
        let rule = IdentityRule::read(rule.as_object().expect("an object")).expect("a rule");
        server.service.identities().set_rules(IdentityRules::new(vec![rule], Vec::new()).expect("rules"));
    }
    let mut admitted = 0;
    for number in 0..120 {
        let server = if number % 2 == 0 { &one } else { &other };
        let grant = server.service.grant("identity:ana@example.org", Some("groups=ml")).expect("rights");
        match grant.spending.as_ref().expect("limits").begin_request().await {
            Ok(_) => admitted += 1,
            Err(refusal) => assert_eq!(refusal.kind, LimitKind::RequestsPerMinute),
        }
    }
    assert_eq!(admitted, 60);
}

/// Two servers with a budget of 10,000 tokens get 250 calls each, all at once. Each call reserves 100 tokens, and uses `used`. Returns
/// how many calls were admitted, and what the key has used at the end.
async fn spend_in_parallel(used: u64) -> (u64, u64) {
    let database = PostgresServer::shared().create_database();
    let one = server(&database).await;
    one.create("ana", budget("10k tokens/day")).await;
    let other = server(&database).await;
    let admitted = Arc::new(AtomicU64::new(0));
    let asking = (0..500).map(|number| {
        let spending = if number % 2 == 0 { &one } else { &other }.spending("ana");
        let admitted = Arc::clone(&admitted);
        tokio::spawn(async move {
            match spending.reserve(call(Some(90))).await {
                Ok(reserved) => {
                    admitted.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                    reserved.settle(usage(used - 90, 90));
                }
                Err(refusal) => assert_eq!(refusal.kind, LimitKind::Budget),
            }
        })
    });
    for asked in asking.collect::<Vec<_>>() {
        asked.await.expect("ended");
    }
    one.service.close().await;
    other.service.close().await;
    let total = server(&database).await.used("ana").await;
    (admitted.load(Ordering::Relaxed), total[0])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_calls_of_two_servers_never_pass_a_budget() {
    let (admitted, used) = spend_in_parallel(100).await;
    assert_eq!(used, admitted * 100);
    // Each server may have less left than one call needs.
    assert!((99..=100).contains(&admitted), "{admitted}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_use_more_than_their_estimate_pass_a_budget_by_no_more_than_that() {
    let (admitted, used) = spend_in_parallel(110).await;
    assert_eq!(used, admitted * 110, "what was used beyond the estimates counts");
    assert!(used <= 10_000 + admitted * 10, "{used} tokens of {admitted} calls");
}

#[tokio::test]
async fn a_crash_costs_at_most_the_share_that_was_leased() {
    let database = PostgresServer::shared().create_database();
    let crashed = server(&database).await;
    crashed.create("ana", budget("1600 tokens/month")).await;
    crashed.spending("ana").reserve(call(Some(40))).await.expect("fits").settle(usage(10, 40));
    assert_eq!(crashed.used("ana").await, [50]);
    // It is not closed, so it gives nothing back.
    drop(crashed);
    let next = server(&database).await;
    assert_eq!(next.used("ana").await, [100], "the share, which is a sixteenth");
    next.spending("ana").reserve(call(Some(1_490))).await.expect("the rest").settle(usage(10, 1_490));
    next.spending("ana").reserve(call(Some(1))).await.err().expect("nothing is left");
}

#[tokio::test]
async fn without_the_database_requests_are_refused_or_allowed_as_configured() {
    let mut postgres = PostgresServer::start();
    let database = postgres.create_database();
    let url = postgres.tcp_url(&database);
    let refusing = keys_with(connect(&url), StoreFailure::Refuse);
    refusing.create("ana", budget("1600 tokens/day")).await;
    let allowing = keys_with(connect(&url), StoreFailure::Allow);
    allowing.service.reload().await.expect("read");
    for keys in [&refusing, &allowing] {
        keys.spending("ana").reserve(call(Some(10))).await.expect("fits").settle(usage(10, 10));
    }
    postgres.stop();

    // What is leased already can be spent.
    refusing.spending("ana").reserve(call(Some(10))).await.expect("within the share").settle(usage(10, 10));
    let refusal = refusing.spending("ana").reserve(call(Some(200))).await.err().expect("refused");
    let expected = LimitReached {
        kind: LimitKind::Unknown,
        message: "the limits of the key 'ana' cannot be read now, so its requests are refused. Try again in a moment"
            .into(),
        retry_after: Some(Duration::from_secs(5)),
    };
    assert_eq!(refusal, expected);
    let unlimited = allowing.spending("ana").reserve(call(Some(5_000))).await;
    assert_eq!(unlimited.err().map(|refusal| refusal.kind), Some(LimitKind::Budget), "it never fits");
    allowing.spending("ana").reserve(call(Some(200))).await.expect("allowed").settle(usage(10, 200));

    postgres.start_again();
    refusing.clock.forward(1);
    refusing
        .spending("ana")
        .reserve(call(Some(200)))
        .await
        .expect("the database is back")
        .settle(usage(10, 1));
    for keys in [&refusing, &allowing] {
        keys.service.close().await;
    }
    let after = keys_over(connect(&url));
    // What was allowed without the database counts afterwards.
    assert_eq!(after.used("ana").await, [20 + 20 + 11 + 20 + 210]);
}

#[tokio::test]
async fn a_server_that_starts_without_the_database_refuses_named_keys_until_it_can_read_them() {
    let mut postgres = PostgresServer::start();
    let database = postgres.create_database();
    let url = postgres.tcp_url(&database);
    let terminal = keys_over(connect(&url));
    let secret = terminal.create("ana", KeyPatch::default()).await.secret;
    postgres.stop();
    let server = keys_over(connect(&url));
    server.service.start().await.expect("the database may come later");
    assert!(server.service.snapshot().has_keys(), "there may be keys");
    assert!(matches!(server.service.check(secret.expose()), KeyCheck::Unread));
    assert!(matches!(server.service.check("sk-other"), KeyCheck::Unknown));
    // A task of the key waits.
    let service = Arc::clone(&server.service);
    let task = tokio::spawn(async move { service.stored_grant("ana", None).await });
    server.service.refresh.next().await;
    assert!(!task.is_finished());
    postgres.start_again();
    let granted = task.await.expect("no panic").expect("the key is valid");
    assert_eq!(&*granted.name, "ana");
    assert!(server.is_valid(&secret));
    server.service.close().await;
}

#[tokio::test]
async fn a_key_that_another_server_changes_is_changed_here_too() {
    let database = PostgresServer::shared().create_database();
    let here = keys_over(connect(&database.url()));
    here.service.start().await.expect("started");
    let other = server(&database).await;
    let secret = other.create("ana", KeyPatch::default()).await.secret;
    while !here.is_valid(&secret) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    other.service.revoke(&name("ana"), AuditActor::terminal()).await.expect("revoked");
    while here.is_valid(&secret) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    here.service.close().await;
}

#[tokio::test]
async fn a_task_of_a_key_that_another_server_has_just_created_gets_its_rights() {
    let database = PostgresServer::shared().create_database();
    let here = keys_over(connect(&database.url()));
    here.service.start().await.expect("started");
    let other = server(&database).await;
    for key in ["ana", "ben", "cleo"] {
        // The first refresh reads the keys in any case.
        assert!(here.service.stored_grant(key, None).await.is_none());
        other.create(key, KeyPatch::default()).await;
        // At once, whether or not the announcement of the change has arrived.
        let granted = here.service.stored_grant(key, None).await.expect("the key is valid");
        assert_eq!(&*granted.name, key);
    }
    here.service.close().await;
}
