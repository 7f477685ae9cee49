//! Keys as callers use them: created, checked, limited, changed by another process.

use std::sync::atomic::{AtomicI64, Ordering};

use hob_core::{CallerRole, LimitKind, LimitReached, PlannedCall, Reach, RunningRequest, Usage};
use hob_db::{Database, LazyDatabase, Storage};

use super::*;
use crate::key::KeyRole;
use crate::limits::{Budget, Period};
use crate::options::{CallCost, PriceFn, StoreFailure};
use crate::store::{MIGRATIONS, QuotaWindow, SqliteKeyStore, key_store};

const MIGRATED: &[hob_db::Migrations] = &[MIGRATIONS];

/// A clock that tests move.
pub(super) struct TestClock(AtomicI64);

impl TestClock {
    pub(super) fn forward(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0.load(Ordering::Relaxed)).expect("a moment")
    }
}

pub(super) struct Keys {
    pub(super) service: Arc<KeyService>,
    pub(super) clock: Arc<TestClock>,
}

pub(super) fn keys_over(storage: impl Into<Storage>) -> Keys {
    keys_with(storage, StoreFailure::Refuse)
}

/// A cloud call costs a thousandth of a dollar for each token.
pub(super) fn keys_with(storage: impl Into<Storage>, on_failure: StoreFailure) -> Keys {
    let noon: Timestamp = "2026-11-16T12:00:00Z".parse().expect("a moment");
    let clock = Arc::new(TestClock(AtomicI64::new(noon.as_second())));
    let price: PriceFn = Arc::new(|engine, model, prompt, completion| match (engine, model) {
        ("cloud", "secret-model") => CallCost::Unknown,
        ("cloud", _) => CallCost::NanoDollars((prompt + completion) * 1_000_000),
        _ => CallCost::Free,
    });
    let options = KeyOptions {
        price,
        on_failure,
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        ..KeyOptions::new(key_store(storage))
    };
    Keys { service: Arc::new(KeyService::new(options)), clock }
}

fn keys() -> Keys {
    keys_over(Database::in_memory(MIGRATED).expect("opened"))
}

pub(super) fn name(text: &str) -> KeyName {
    KeyName::parse(text).expect("a name")
}

impl Keys {
    pub(super) async fn create(&self, text: &str, rules: KeyPatch) -> CreatedKey {
        let new = NewKey { name: name(text), role: KeyRole::Member, rules };
        self.service.create(new, AuditActor::terminal()).await.expect("created")
    }

    pub(super) fn spending(&self, text: &str) -> Arc<dyn hob_core::Spending> {
        self.service.grant(text, None).and_then(|grant| grant.spending.clone()).expect("a key with limits")
    }

    pub(super) fn is_valid(&self, secret: &KeySecret) -> bool {
        matches!(self.service.check(secret.expose()), KeyCheck::Valid(_))
    }

    fn why_invalid(&self, secret: &KeySecret) -> &'static str {
        match self.service.check(secret.expose()) {
            KeyCheck::Valid(_) => "valid",
            KeyCheck::Invalid { why, .. } => why,
            KeyCheck::Unknown => "unknown",
            KeyCheck::Unread => "unread",
        }
    }

    pub(super) async fn used(&self, text: &str) -> Vec<u64> {
        let (_, usage) = self.service.show(&name(text)).await.expect("shown");
        usage.into_iter().map(|usage| usage.used).collect()
    }
}

pub(super) fn call(completion: Option<u64>) -> PlannedCall<'static> {
    PlannedCall {
        engine: "cloud",
        model: "gpt",
        prompt_tokens: 10,
        completion_tokens: completion,
        lowest_completion: None,
    }
}

pub(super) fn usage(prompt_tokens: u64, completion_tokens: u64) -> Usage {
    Usage { prompt_tokens, completion_tokens, cached_tokens: None, reasoning_tokens: None, load_time: None }
}

pub(super) fn budget(text: &str) -> KeyPatch {
    KeyPatch { budgets: Some(vec![Budget::parse(text).expect("a budget")]), ..KeyPatch::default() }
}

#[tokio::test]
async fn only_the_secret_of_a_valid_key_is_accepted() {
    let keys = keys();
    let rules =
        KeyPatch { expires: Some(Some("1h".into())), reach: Some(Reach::Read), ..KeyPatch::default() };
    let ana = keys.create("ana", rules).await;
    let KeyCheck::Valid(active) = keys.service.check(ana.secret.expose()) else { panic!("not accepted") };
    assert_eq!((active.grant.role, active.grant.reach), (CallerRole::Member, Reach::Read));
    let mut wrong = ana.secret.expose().to_owned();
    wrong.pop();
    wrong.push('!');
    assert!(matches!(keys.service.check(&wrong), KeyCheck::Unknown));
    keys.service.disable(&name("ana"), AuditActor::terminal()).await.expect("disabled");
    assert_eq!(
        (keys.why_invalid(&ana.secret), keys.service.grant("ana", None).is_none()),
        ("disabled", true)
    );
    keys.service.enable(&name("ana"), AuditActor::terminal()).await.expect("enabled");
    assert!(keys.is_valid(&ana.secret));
    keys.clock.forward(3_600);
    assert_eq!((keys.why_invalid(&ana.secret), keys.service.grant("ana", None).is_none()), ("expired", true));
    keys.service.revoke(&name("ana"), AuditActor::terminal()).await.expect("revoked");
    assert_eq!(keys.why_invalid(&ana.secret), "revoked");
    let again = keys.service.enable(&name("ana"), AuditActor::terminal()).await;
    assert!(matches!(again, Err(KeyError::Revoked { .. })));
    let taken = NewKey { name: name("ana"), role: KeyRole::Owner, rules: KeyPatch::default() };
    assert!(matches!(
        keys.service.create(taken, AuditActor::terminal()).await,
        Err(KeyError::NameTaken { .. })
    ));
}

#[tokio::test]
async fn rights_are_current_until_their_key_changes_or_ends() {
    let keys = keys();
    keys.create("ana", KeyPatch { expires: Some(Some("1h".into())), ..KeyPatch::default() }).await;
    let granted = || keys.service.grant("ana", None).expect("a key");
    let first = granted();
    assert!(keys.service.is_current(&first));
    let patch = KeyPatch { reach: Some(Reach::Read), ..KeyPatch::default() };
    keys.service.patch(&name("ana"), patch, AuditActor::terminal()).await.expect("changed");
    let second = granted();
    assert!(!keys.service.is_current(&first) && keys.service.is_current(&second));
    keys.clock.forward(3_600);
    assert!(!keys.service.is_current(&second));
}

#[tokio::test]
async fn after_a_rotation_both_secrets_are_valid_for_a_while() {
    let keys = keys();
    let old = keys.create("ana", KeyPatch::default()).await.secret;
    let rotated = keys.service.rotate(&name("ana"), Duration::from_secs(60), AuditActor::terminal()).await;
    let new = rotated.expect("rotated").secret;
    assert!(keys.is_valid(&old) && keys.is_valid(&new) && old != new);
    keys.clock.forward(60);
    assert!(!keys.is_valid(&old) && keys.is_valid(&new));
}

#[tokio::test]
async fn the_end_of_an_old_secret_is_shown_while_it_is_valid() {
    let keys = keys();
    keys.create("ana", KeyPatch::default()).await;
    let minute = Duration::from_secs(60);
    let until = async || keys.service.show(&name("ana")).await.expect("shown").0.previous_until;
    let rotated = keys.service.rotate(&name("ana"), minute, AuditActor::terminal()).await.expect("rotated");
    assert!(rotated.key.previous_until.is_some());
    assert_eq!(until().await, rotated.key.previous_until);
    keys.clock.forward(60);
    assert_eq!(until().await, None);
    let at_once = keys.service.rotate(&name("ana"), Duration::ZERO, AuditActor::terminal()).await;
    assert_eq!(at_once.expect("rotated").key.previous_until, None);
    keys.service.rotate(&name("ana"), minute, AuditActor::terminal()).await.expect("rotated");
    let revoked = keys.service.revoke(&name("ana"), AuditActor::terminal()).await.expect("revoked");
    assert_eq!((revoked.previous_until, until().await), (None, None));
}

#[tokio::test]
async fn a_key_gets_its_requests_a_minute_and_no_more() {
    let keys = keys();
    let rules = KeyPatch { requests_per_minute: Some(Some(3)), ..KeyPatch::default() };
    let ana = keys.create("ana", rules).await.key;
    let spending = keys.spending("ana");
    keys.clock.forward(15);
    for _ in 0..3 {
        spending.begin_request().await.expect("within the limit");
    }
    let refusal = spending.begin_request().await.expect_err("too many");
    let expected = LimitReached {
        kind: LimitKind::RequestsPerMinute,
        message: "the key 'ana' may send 3 requests a minute. Try again in 45 s".into(),
        retry_after: Some(Duration::from_secs(45)),
    };
    assert_eq!(refusal, expected);
    let window = Period::Minute.window(keys.clock.now());
    let window = QuotaWindow { key: Arc::clone(&ana.id), quota: "requests/minute", window };
    let taken = keys.service.parts.store.taken(&window).expect("read");
    assert_eq!(taken, 0, "no other server uses this database, so a minute counts in memory only");
    keys.clock.forward(45);
    spending.begin_request().await.expect("the next minute");
}

#[tokio::test]
async fn requests_at_once_are_limited_until_one_ends() {
    let keys = keys();
    keys.create("ana", KeyPatch { parallel: Some(Some(2)), ..KeyPatch::default() }).await;
    let spending = keys.spending("ana");
    let first: RunningRequest = spending.begin_request().await.expect("one");
    let _second = spending.begin_request().await.expect("two");
    assert_eq!(spending.begin_request().await.expect_err("three").kind, LimitKind::Parallel);
    drop(first);
    spending.begin_request().await.expect("one has ended");
}

#[tokio::test]
async fn refusals_are_counted_by_key_and_limit() {
    let keys = keys();
    keys.create("ana", KeyPatch { parallel: Some(Some(1)), ..KeyPatch::default() }).await;
    keys.create("ben", budget("10 tokens/day")).await;
    assert!(keys.service.refusals().is_empty());
    let ana = keys.spending("ana");
    let _running = ana.begin_request().await.expect("the first");
    for _ in 0..2 {
        assert!(ana.begin_request().await.is_err());
    }
    assert!(keys.spending("ben").reserve(call(Some(100))).await.is_err());
    let expected = [("ana".into(), LimitKind::Parallel, 2), ("ben".into(), LimitKind::Budget, 1)];
    let mut refusals = keys.service.refusals();
    refusals.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    assert_eq!(refusals, expected);
}

#[tokio::test]
async fn tokens_are_reserved_and_what_is_not_used_is_free_again() {
    let keys = keys();
    keys.create("ana", KeyPatch { tokens_per_minute: Some(Some(100)), ..KeyPatch::default() }).await;
    let spending = keys.spending("ana");
    let reserved = spending.reserve(call(Some(80))).await.expect("fits");
    let refusal = spending.reserve(call(Some(80))).await.err().expect("does not fit");
    assert_eq!(
        (refusal.kind, refusal.message.as_str()),
        (
            LimitKind::TokensPerMinute,
            "the key 'ana' may use 100 tokens a minute. This request needs about 90, and 10 are left. Try again in 60 s"
        )
    );
    reserved.settle(usage(10, 5));
    assert_eq!(keys.used("ana").await, [15]);
    // A call that used nothing, such as one that failed before it was sent.
    drop(spending.reserve(call(Some(70))).await.expect("fits"));
    assert_eq!(keys.used("ana").await, [15]);
    // A call that was left before it said what it used.
    spending.reserve(call(Some(20))).await.expect("fits").keep();
    assert_eq!(keys.used("ana").await, [45]);
    let never = spending.reserve(call(Some(1_000))).await.err().expect("never fits");
    assert_eq!(never.retry_after, None);
}

#[tokio::test]
async fn a_limit_that_the_caller_did_not_set_is_lowered_to_what_is_left() {
    let keys = keys();
    keys.create("ana", KeyPatch { tokens_per_minute: Some(Some(100)), ..KeyPatch::default() }).await;
    keys.create("ben", budget("100 tokens/day")).await;
    keys.create("cleo", budget("0.1 USD/day")).await;
    for key in ["ana", "ben", "cleo"] {
        let spending = keys.spending(key);
        for planned in [None, Some(1_024)] {
            let assumed = PlannedCall { lowest_completion: Some(1), ..call(planned) };
            let reserved = spending.reserve(assumed).await.expect("lowered");
            assert_eq!(reserved.lowered_completion(), Some(90), "{key}");
            // Nothing is left, and the prompt alone is too much.
            assert!(spending.reserve(assumed).await.is_err(), "{key}");
        }
        let used = spending.reserve(PlannedCall { lowest_completion: Some(1), ..call(Some(40)) }).await;
        let used = used.expect("fits");
        assert_eq!(used.lowered_completion(), None, "{key}");
        used.settle(usage(10, 40));
        let rest = spending.reserve(PlannedCall { lowest_completion: Some(1), ..call(None) }).await;
        assert_eq!(rest.expect("lowered").lowered_completion(), Some(40), "{key}");
    }
}

#[tokio::test]
async fn after_a_restart_a_limit_is_lowered_to_what_the_store_has_left() {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("hob.db");
    let first = keys_over(LazyDatabase::at(&path, MIGRATED));
    first.create("ana", budget("100 tokens/day")).await;
    first.spending("ana").reserve(call(Some(40))).await.expect("fits").settle(usage(10, 40));
    first.service.close().await;
    let restarted = keys_over(LazyDatabase::at(&path, MIGRATED));
    restarted.service.reload().await.expect("read");
    let assumed = PlannedCall { lowest_completion: Some(1), ..call(None) };
    let reserved = restarted.spending("ana").reserve(assumed).await.expect("lowered");
    assert_eq!(reserved.lowered_completion(), Some(40));
}

#[tokio::test]
async fn a_budget_in_dollars_counts_cloud_calls_and_needs_their_price() {
    let keys = keys();
    keys.create("ana", budget("0.1 USD/day")).await;
    let spending = keys.spending("ana");
    let local = PlannedCall { engine: "ollama", ..call(Some(100_000)) };
    spending.reserve(local).await.expect("a local model is free").settle(usage(10, 90_000));
    spending.reserve(call(Some(60))).await.expect("fits").settle(usage(10, 60));
    assert_eq!(keys.used("ana").await, [70_000_000]);
    let refusal = spending.reserve(call(Some(60))).await.err().expect("too much");
    assert_eq!(refusal.kind, LimitKind::Budget);
    assert_eq!(
        refusal.message,
        "the budget of the key 'ana' is used up: 0.1 USD/day. It begins again at 2026-11-17T00:00:00Z"
    );
    let unknown = PlannedCall { model: "secret-model", ..call(Some(1)) };
    let refusal = spending.reserve(unknown).await.err().expect("no price");
    assert!(refusal.message.contains("[savings.prices]"), "{}", refusal.message);
    // Pictures have no tokens, but they are not free.
    let picture = PlannedCall { prompt_tokens: 0, ..call(Some(0)) };
    let refusal = spending.reserve(picture).await.err().expect("no price");
    assert!(refusal.message.contains("sound and pictures of the model 'gpt'"), "{}", refusal.message);
    spending.reserve(PlannedCall { engine: "ollama", ..picture }).await.expect("a local model is free");
    keys.clock.forward(43_200);
    spending.reserve(call(Some(60))).await.expect("the next day");
}

#[tokio::test]
async fn parallel_requests_never_overshoot_a_budget_that_was_reserved() {
    let keys = keys();
    keys.create("ana", budget("10k tokens/day")).await;
    let spending = keys.spending("ana");
    let asked = (0..500).map(|_| {
        let spending = Arc::clone(&spending);
        tokio::spawn(async move {
            match spending.reserve(call(Some(90))).await {
                Ok(reserved) => {
                    tokio::task::yield_now().await;
                    reserved.settle(usage(10, 90));
                    1
                }
                Err(_) => 0,
            }
        })
    });
    let mut admitted = 0;
    for task in asked.collect::<Vec<_>>() {
        admitted += task.await.expect("ended");
    }
    assert_eq!(admitted, 100);
    assert_eq!(keys.used("ana").await, [10_000]);
}

#[tokio::test]
async fn a_share_that_was_leased_for_a_client_that_left_can_be_spent() {
    let keys = keys();
    let ana = keys.create("ana", budget("1600 tokens/day")).await.key;
    let spending = keys.spending("ana");
    // Asks the store, and leaves before the answer.
    let left = tokio::time::timeout(Duration::ZERO, spending.reserve(call(Some(40)))).await;
    drop(left);
    let window = Period::Day.window(keys.clock.now());
    let window = QuotaWindow { key: Arc::clone(&ana.id), quota: "tokens/day", window };
    while keys.service.parts.store.taken(&window).expect("read") == 0 || keys.used("ana").await != [0] {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    spending.reserve(call(Some(1_590))).await.expect("all of it is left");
}

#[tokio::test]
async fn what_was_spent_is_known_after_a_restart_and_after_a_crash_at_least_that_much() {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("hob.db");
    let first = keys_over(LazyDatabase::at(&path, MIGRATED));
    first.create("ana", budget("1600 tokens/month")).await;
    let spending = first.spending("ana");
    spending.reserve(call(Some(40))).await.expect("fits").settle(usage(10, 40));
    // More than was reserved, because the estimate was too low.
    spending.reserve(call(Some(1))).await.expect("fits").settle(usage(10, 200));
    let crashed = keys_over(LazyDatabase::at(&path, MIGRATED));
    crashed.service.reload().await.expect("read");
    assert!(crashed.used("ana").await[0] >= 100, "the lease counts as spent");
    first.service.close().await;
    let restarted = keys_over(LazyDatabase::at(&path, MIGRATED));
    restarted.service.reload().await.expect("read");
    assert_eq!(restarted.used("ana").await, [260]);
}

#[tokio::test]
async fn a_key_that_another_process_changes_is_changed_here_too() {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("hob.db");
    let server = keys_over(LazyDatabase::at(&path, MIGRATED));
    server.service.start().await.expect("started");
    let terminal = keys_over(LazyDatabase::at(&path, MIGRATED));
    let secret = terminal.create("ana", KeyPatch::default()).await.secret;
    while !server.is_valid(&secret) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    terminal.service.revoke(&name("ana"), AuditActor::terminal()).await.expect("revoked");
    while server.is_valid(&secret) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.service.close().await;
}

#[tokio::test]
async fn a_task_of_a_key_that_another_process_has_just_created_gets_its_rights() {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("hob.db");
    let server = keys_over(LazyDatabase::at(&path, MIGRATED));
    let name_of = |grant: Option<Arc<KeyGrant>>| grant.map(|grant| grant.name.to_string());
    assert_eq!(name_of(server.service.stored_grant("ana", None).await), None, "nothing follows changes yet");
    server.service.start().await.expect("started");
    let terminal = keys_over(LazyDatabase::at(&path, MIGRATED));
    terminal.create("ana", KeyPatch::default()).await;
    assert_eq!(name_of(server.service.stored_grant("ana", None).await).as_deref(), Some("ana"));
    assert_eq!(name_of(server.service.stored_grant("ben", None).await), None);
    server.service.close().await;
    assert_eq!(
        name_of(server.service.stored_grant("ben", None).await),
        None,
        "nothing follows changes any more"
    );
}

#[tokio::test]
async fn limits_that_cannot_be_read_refuse_or_allow_as_configured() {
    for (on_failure, is_admitted) in [(StoreFailure::Refuse, false), (StoreFailure::Allow, true)] {
        let database = Database::in_memory(MIGRATED).expect("opened");
        let store = Arc::new(SqliteKeyStore::new(database.clone()));
        let service = Arc::new(KeyService::new(KeyOptions { on_failure, ..KeyOptions::new(store) }));
        let new = NewKey { name: name("ana"), role: KeyRole::Member, rules: budget("5k tokens/day") };
        service.create(new, AuditActor::terminal()).await.expect("created");
        database.write(|transaction| transaction.execute_batch("DROP TABLE api_key_quota")).expect("dropped");
        let spending = service.grant("ana", None).and_then(|grant| grant.spending.clone()).expect("limits");
        let reserved = spending.reserve(call(Some(5))).await;
        assert_eq!(reserved.is_ok(), is_admitted);
        if let Err(refusal) = reserved {
            assert_eq!(refusal.kind, LimitKind::Unknown);
        }
    }
}

#[tokio::test]
async fn a_store_that_has_just_failed_is_asked_again_after_a_second() {
    let database = Database::in_memory(MIGRATED).expect("opened");
    let keys = keys_over(database.clone());
    keys.create("ana", budget("5k tokens/day")).await;
    let spending = keys.spending("ana");
    let rename = |from: &str, to: &str| {
        let sql = format!("ALTER TABLE {from} RENAME TO {to}");
        database.write(|transaction| transaction.execute_batch(&sql)).expect("renamed");
    };
    rename("api_key_quota", "gone");
    assert!(spending.reserve(call(Some(5))).await.is_err());
    rename("gone", "api_key_quota");
    assert!(spending.reserve(call(Some(5))).await.is_err(), "the store is not asked");
    keys.clock.forward(1);
    assert!(spending.reserve(call(Some(5))).await.is_ok());
}

#[tokio::test]
async fn a_change_is_made_and_its_secret_shown_although_the_keys_cannot_be_read_again() {
    let database = Database::in_memory(MIGRATED).expect("opened");
    let keys = keys_over(database.clone());
    keys.create("ana", KeyPatch::default()).await;
    keys.create("ben", KeyPatch::default()).await;
    let set_rules = |rules: &'static str| {
        let sql = format!("UPDATE api_key SET rules = {rules} WHERE name = 'ben'");
        database.write(|transaction| transaction.execute_batch(&sql)).expect("changed");
    };
    set_rules("rules || 'not rules'");
    assert!(keys.service.reload().await.is_err());
    let overlap = Duration::from_secs(60);
    let rotated = keys.service.rotate(&name("ana"), overlap, AuditActor::terminal()).await.expect("rotated");
    assert!(!keys.is_valid(&rotated.secret), "the keys are those of before");
    set_rules("replace(rules, 'not rules', '')");
    keys.service.reload().await.expect("read");
    assert!(keys.is_valid(&rotated.secret));
}

#[tokio::test]
async fn every_change_of_a_key_is_in_the_audit_log_without_its_secret() {
    let keys = keys();
    let secret = keys.create("ana", KeyPatch::default()).await.secret;
    let actor = || AuditActor { name: "owner".into(), origin: "192.168.1.7".into() };
    keys.service.patch(&name("ana"), budget("5 USD/day"), actor()).await.expect("changed");
    keys.service.rotate(&name("ana"), ROTATION_OVERLAP, actor()).await.expect("rotated");
    keys.service.revoke(&name("ana"), actor()).await.expect("revoked");
    let log = keys.service.audit();
    let entries = log.latest(10).expect("read");
    let shown: Vec<_> = entries
        .iter()
        .map(|entry| (entry.event.action.as_str(), entry.event.actor.origin.as_str()))
        .collect();
    let expected = [
        ("key.revoke", "192.168.1.7"),
        ("key.rotate", "192.168.1.7"),
        ("key.change", "192.168.1.7"),
        ("key.create", "terminal"),
    ];
    assert_eq!(shown, expected);
    assert_eq!(entries[2].event.detail, r#"{"changed":{"budgets":["5 USD/day"]}}"#);
    assert!(entries.iter().all(|entry| !entry.event.detail.contains(&secret.expose()[20..])));
    log.verify().expect("read").expect("unbroken");
}
