//! Tokens as callers send them: good ones, hostile ones, and a provider that changes its keys, is away or answers nonsense.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use hob_core::{
    CallerRole, Clock, CollectionName, CollectionSet, KeyRing, LimitKind, PlannedCall, Reach, Spending,
};
use hob_db::Database;
use hob_testkit::{FakeServer, Reply, TokenIssuer, shared_secret_token, token_part};
use jiff::Timestamp;
use serde_json::{Map, json};

use super::*;
use crate::identity::rules::IdentityRule;
use crate::options::KeyOptions;
use crate::store::{MIGRATIONS, SqliteKeyStore};

const ISSUER: &str = "https://sso.example.org";
const NOON: i64 = 1_800_000_000;

/// A clock that tests move.
struct MovedClock(AtomicI64);

impl MovedClock {
    fn forward(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }
}

impl Clock for MovedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0.load(Ordering::Relaxed)).expect("a moment")
    }
}

/// What the provider answers now.
type Answer = Arc<Mutex<Reply>>;

struct Setup {
    service: Arc<IdentityService>,
    keys: Arc<KeyService>,
    clock: Arc<MovedClock>,
    provider: FakeServer,
    answer: Answer,
}

impl Setup {
    fn answers(&self, reply: Reply) {
        *self.answer.lock().expect("not poisoned") = reply;
    }

    /// As the server does it: with a second look if the keys may be old.
    async fn check(&self, token: &str) -> Result<Arc<ActiveKey>, IdentityRefusal> {
        match self.service.check(token) {
            Err(refusal) if refusal.needs_keys() => {
                self.service.refresh().await;
                self.service.check(token)
            }
            checked => checked,
        }
    }

    async fn refusal(&self, token: &str) -> IdentityRefusal {
        match self.check(token).await {
            Ok(account) => panic!("accepted as {}", account.key.name),
            Err(refusal) => refusal,
        }
    }

    fn fetches(&self) -> usize {
        self.provider.requests().len()
    }
}

fn fields(rule: Value) -> Map<String, Value> {
    rule.as_object().expect("an object").clone()
}

fn rules(rules: &[Value], blocked: &[&str]) -> IdentityRules {
    let rules = rules.iter().map(|rule| IdentityRule::read(&fields(rule.clone())).expect("a rule")).collect();
    IdentityRules::new(rules, blocked.iter().map(|name| (*name).to_owned()).collect()).expect("rules")
}

fn options(origin: KeyOrigin) -> IdentityOptions {
    IdentityOptions {
        issuer: ISSUER.into(),
        audience: vec!["hob".into(), "hob-test".into()],
        origin,
        algorithms: Vec::new(),
        header: None,
        name_claim: "email".into(),
        max_lifetime: Duration::from_secs(86_400),
        rules: rules(
            &[
                json!({ "claim": "groups", "value": "admins", "role": "owner" }),
                json!({ "claim": "groups", "value": "ml", "models": ["qwen*"], "reach": "read", "budgets": ["100 tokens/day"] }),
            ],
            &["mallory@example.org"],
        ),
    }
}

fn key_service(clock: &Arc<MovedClock>) -> Arc<KeyService> {
    let store = Arc::new(SqliteKeyStore::new(Database::in_memory(&[MIGRATIONS]).expect("opened")));
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    Arc::new(KeyService::new(KeyOptions { clock, ..KeyOptions::new(store) }))
}

async fn setup(issuer: &TokenIssuer) -> Setup {
    let answer: Answer = Arc::new(Mutex::new(Reply::json(200, issuer.key_set())));
    let script = Arc::clone(&answer);
    let provider = FakeServer::start(move |_| script.lock().expect("not poisoned").clone()).await;
    let clock = Arc::new(MovedClock(AtomicI64::new(NOON)));
    let keys = key_service(&clock);
    let url = format!("{}/keys", provider.url());
    let service = IdentityService::open(options(KeyOrigin::Url(url)), Arc::clone(&keys)).expect("settings");
    Setup { service: Arc::new(service), keys, clock, provider, answer }
}

fn claims() -> Value {
    json!({ "iss": ISSUER, "aud": "hob", "sub": "1", "email": "ana@example.org", "groups": ["ml"], "iat": NOON, "exp": NOON + 600 })
}

/// The usual claims with others in their place; `null` removes one.
fn with(changed: Value) -> Value {
    let mut claims = fields(claims());
    for (name, value) in fields(changed) {
        match value {
            Value::Null => drop(claims.remove(&name)),
            value => drop(claims.insert(name, value)),
        }
    }
    Value::Object(claims)
}

#[tokio::test]
async fn a_token_becomes_an_account_with_the_rights_of_its_rule() {
    let issuer = TokenIssuer::new("one");
    let setup = setup(&issuer).await;
    let account = setup.check(&issuer.token(&claims())).await.expect("accepted");
    let grant = &account.grant;
    assert_eq!(
        (account.key.id.as_ref(), account.key.name.as_str()),
        ("identity:ana@example.org", "identity:ana@example.org")
    );
    assert_eq!(
        (grant.role, grant.cloud, grant.reach, grant.rule.as_deref()),
        (CallerRole::Member, false, Reach::Read, Some("groups=ml"))
    );
    assert!(grant.models.as_ref().is_some_and(|models| models.allow("qwen3:8b") && !models.allow("llama3")));
    let owner = issuer.token(&with(
        json!({ "email": "Boss@Example.org", "groups": ["ml", "admins"], "aud": ["x", "hob-test"] }),
    ));
    let owner = setup.check(&owner).await.expect("accepted");
    assert_eq!((owner.key.name.as_str(), owner.grant.role), ("identity:boss@example.org", CallerRole::Owner));
    assert_eq!(setup.fetches(), 1, "the keys are read once");
}

#[tokio::test]
async fn a_token_is_checked_once_and_not_after_its_end() {
    let issuer = TokenIssuer::new("one");
    let setup = setup(&issuer).await;
    let token = issuer.token(&claims());
    for _ in 0..3 {
        setup.check(&token).await.expect("accepted");
    }
    assert_eq!(setup.service.cached_tokens(), 1);
    setup.clock.forward(659);
    setup.check(&token).await.expect("accepted: clocks may differ by a minute");
    setup.clock.forward(1);
    assert_eq!(setup.refusal(&token).await, IdentityRefusal::Token(TokenError::Expired));
}

#[tokio::test]
async fn hostile_tokens_are_refused_with_what_to_do() {
    let (issuer, other) = (TokenIssuer::new("one"), TokenIssuer::new("one"));
    let setup = setup(&issuer).await;
    let good = issuer.token(&claims());
    let (signed, signature) = good.rsplit_once('.').expect("a signature");
    let header = |header: Value| issuer.token_with(&header, &claims());
    let none = format!("{}.{}.", token_part(&json!({ "alg": "none" })), token_part(&claims()));
    let swapped = format!(
        "{}.{}.{signature}",
        token_part(&json!({ "alg": "ES256", "kid": "one" })),
        token_part(&with(json!({ "groups": ["admins"] })))
    );
    // The public key as a shared secret: the classic confusion of algorithms.
    let confused = shared_secret_token(issuer.key_set().as_bytes(), &claims());
    let huge = issuer.token(&with(json!({ "groups": vec!["x".repeat(60); 400] })));
    for (token, words) in [
        (String::new(), "is not a signed JSON Web Token"),
        ("a.b".into(), "is not a signed JSON Web Token"),
        ("..".into(), "is not a signed JSON Web Token"),
        ("!.!.!".into(), "is not a signed JSON Web Token"),
        (format!("{good}.x"), "is not a signed JSON Web Token"),
        (none, "is not signed (alg: none)"),
        (header(json!({ "alg": "NoNe", "kid": "one" })), "is not signed (alg: none)"),
        (confused, "is signed with HS256, which this server does not accept"),
        (header(json!({ "alg": "ES384", "kid": "one" })), "is signed with ES384"),
        (
            header(json!({ "alg": "RS256", "kid": "one" })),
            "a key that the identity provider does not publish",
        ),
        (header(json!({ "alg": "ES256", "kid": "one", "crit": ["exp"], "exp": 1 })), "has 'crit'"),
        (header(json!({ "alg": "ES256", "kid": 7 })), "is not a signed JSON Web Token"),
        (other.token(&claims()), "the signature of the token is wrong"),
        (swapped, "the signature of the token is wrong"),
        (format!("{signed}."), "the signature of the token is wrong"),
        (huge, "more than 16384 bytes"),
        (
            issuer.token(&with(json!({ "iss": "https://evil.example.net" }))),
            "from 'https://evil.example.net'",
        ),
        (issuer.token(&with(json!({ "iss": null }))), "[server.identity] issuer"),
        (issuer.token(&with(json!({ "aud": "mail" }))), "is for 'mail'"),
        (issuer.token(&with(json!({ "aud": null }))), "[server.identity] audience"),
        (issuer.token(&with(json!({ "exp": null }))), "no time at which it expires"),
        (issuer.token(&with(json!({ "exp": "tomorrow" }))), "is not a signed JSON Web Token"),
        (issuer.token(&with(json!({ "exp": NOON - 60 }))), "has expired. Sign in again"),
        (issuer.token(&with(json!({ "exp": -1.0e300 }))), "has expired"),
        (issuer.token(&with(json!({ "nbf": NOON + 61 }))), "is not valid yet"),
        (issuer.token(&with(json!({ "iat": NOON + 61 }))), "is not valid yet"),
        (issuer.token(&with(json!({ "exp": NOON + 10 * 86_400 }))), "[server.identity] max_lifetime"),
        (issuer.token(&with(json!({ "exp": 1.0e300 }))), "[server.identity] max_lifetime"),
    ] {
        let refusal = setup.refusal(&token).await;
        assert!(matches!(refusal, IdentityRefusal::Token(_)), "{refusal:?}");
        assert!(refusal.to_string().contains(words), "{refusal}");
    }
    assert_eq!(setup.service.cached_tokens(), 0);
    setup.check(&good).await.expect("accepted");
}

#[tokio::test]
async fn a_signed_token_without_a_name_or_a_rule_has_no_rights() {
    let issuer = TokenIssuer::new("one");
    let setup = setup(&issuer).await;
    for (changed, words) in [
        (json!({ "email": null }), "no usable name in the claim 'email'"),
        (json!({ "email": 7 }), "no usable name"),
        (json!({ "email": "" }), "no usable name"),
        (json!({ "email": "a b" }), "no usable name"),
        (json!({ "email": "a\nb" }), "no usable name"),
        (json!({ "email": "x".repeat(129) }), "no usable name"),
        (json!({ "email_verified": false }), "'ana@example.org' is not verified"),
        (json!({ "email_verified": "false" }), "is not verified"),
        (json!({ "groups": ["sales"] }), "no rule of this server gives rights"),
        (json!({ "groups": null }), "no rule of this server gives rights"),
        (json!({ "email": "Mallory@example.org" }), "is blocked on this server"),
    ] {
        let refusal = setup.refusal(&issuer.token(&with(changed))).await;
        assert!(!matches!(refusal, IdentityRefusal::Token(_)), "{refusal:?}");
        assert!(refusal.to_string().contains(words), "{refusal}");
    }
}

#[tokio::test]
async fn new_keys_are_noticed_and_unknown_keys_are_looked_for_once_a_minute() {
    let (old, new) = (TokenIssuer::new("old"), TokenIssuer::new("new"));
    let setup = setup(&old).await;
    let (of_old, of_new) = (old.token(&claims()), new.token(&claims()));
    setup.check(&of_old).await.expect("accepted");
    setup.answers(Reply::json(200, json!({ "keys": [old.key(), new.key()] }).to_string()));
    let unknown = IdentityRefusal::Token(TokenError::UnknownKey);
    for _ in 0..3 {
        assert_eq!(setup.refusal(&of_new).await, unknown);
    }
    assert_eq!(setup.fetches(), 1, "the keys were read less than a minute ago");
    setup.clock.forward(60);
    setup.check(&of_new).await.expect("accepted");
    setup.check(&of_old).await.expect("accepted");
    assert_eq!(setup.fetches(), 2);
    // The provider takes the old key back: its tokens end at the next read, checked before or not.
    setup.answers(Reply::json(200, new.key_set()));
    setup.clock.forward(60);
    setup.service.refresh().await;
    assert_eq!(setup.refusal(&of_old).await, unknown);
    setup.check(&of_new).await.expect("accepted");
    assert_eq!(setup.fetches(), 3);
}

#[tokio::test]
async fn keys_are_read_again_when_they_are_no_longer_fresh() {
    let issuer = TokenIssuer::new("one");
    let setup = setup(&issuer).await;
    setup.answers(Reply::json(200, issuer.key_set()).header("cache-control", "public, max-age=600"));
    assert!(setup.service.source.refresh_if_stale().await);
    setup.clock.forward(599);
    setup.service.source.refresh_if_stale().await;
    assert_eq!(setup.fetches(), 1);
    setup.clock.forward(1);
    assert!(!setup.service.source.refresh_if_stale().await, "the same keys");
    assert_eq!(setup.fetches(), 2);
}

#[tokio::test]
async fn known_keys_stay_in_use_while_the_provider_is_away_or_answers_nonsense() {
    let issuer = TokenIssuer::new("one");
    let setup = setup(&issuer).await;
    setup.check(&issuer.token(&claims())).await.expect("accepted");
    let huge = format!("{{\"keys\": [{}]}}", " ".repeat(300 * 1024));
    let many = json!({ "keys": vec![issuer.key(); 65] }).to_string();
    for (number, reply) in [
        Reply::json(500, "{}"),
        Reply::json(302, "").header("location", "http://127.0.0.1:1/"),
        Reply::json(200, "<html>maintenance</html>"),
        Reply::json(200, "{\"keys\": []}"),
        Reply::json(200, huge),
        Reply::json(200, many),
        Reply::json(200, "{\"keys\": [").then_cut(),
    ]
    .into_iter()
    .enumerate()
    {
        setup.answers(reply);
        setup.clock.forward(60);
        setup.service.refresh().await;
        assert_eq!(setup.fetches(), number + 2);
        let token = issuer.token(&with(json!({ "exp": NOON + 3_600, "jti": number })));
        setup.check(&token).await.expect("accepted with the keys of before");
    }
}

#[tokio::test]
async fn without_any_keys_tokens_are_refused_for_now() {
    let issuer = TokenIssuer::new("one");
    let setup = setup(&issuer).await;
    setup.answers(Reply::json(503, ""));
    let token = issuer.token(&claims());
    assert_eq!(setup.refusal(&token).await, IdentityRefusal::NoKeys);
    assert_eq!(setup.refusal(&token).await, IdentityRefusal::NoKeys);
    assert_eq!(setup.fetches(), 1);
    setup.answers(Reply::json(200, issuer.key_set()));
    setup.clock.forward(5);
    setup.check(&token).await.expect("accepted");
}

#[tokio::test]
async fn many_requests_at_once_read_the_keys_once() {
    let issuer = TokenIssuer::new("one");
    let setup = Arc::new(setup(&issuer).await);
    let mut requests = tokio::task::JoinSet::new();
    for number in 0..50 {
        let (setup, token) = (Arc::clone(&setup), issuer.token(&with(json!({ "jti": number }))));
        requests.spawn(async move { setup.check(&token).await.is_ok() });
    }
    assert!(requests.join_all().await.into_iter().all(|is_accepted| is_accepted));
    assert_eq!(setup.fetches(), 1);
}

#[tokio::test]
async fn keys_come_from_a_file_too() {
    let issuer = TokenIssuer::new("one");
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("keys.json");
    std::fs::write(&path, issuer.key_set()).expect("written");
    let clock = Arc::new(MovedClock(AtomicI64::new(NOON)));
    let service =
        IdentityService::open(options(KeyOrigin::File(path)), key_service(&clock)).expect("settings");
    let service = Arc::new(service);
    service.refresh().await;
    assert!(service.check(&issuer.token(&claims())).is_ok());
}

#[tokio::test]
async fn a_proxy_may_sign_with_a_shared_secret() {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("secret");
    let clock = Arc::new(MovedClock(AtomicI64::new(NOON)));
    let open = |options| IdentityService::open(options, key_service(&clock)).map(drop);
    std::fs::write(&path, "short").expect("written");
    let refusal = open(options(KeyOrigin::Secret(path.clone()))).expect_err("short").to_string();
    assert!(refusal.contains("'openssl rand -hex 32'"), "{refusal}");
    let secret = "0123456789abcdef0123456789abcdef";
    std::fs::write(&path, format!("{secret}\n")).expect("written");
    let service = IdentityService::open(options(KeyOrigin::Secret(path.clone())), key_service(&clock))
        .expect("settings");
    assert!(service.check(&shared_secret_token(secret.as_bytes(), &claims())).is_ok());
    let guessed = service.check(&shared_secret_token(b"another secret of at least 32 by", &claims()));
    assert_eq!(guessed.err(), Some(IdentityRefusal::Token(TokenError::Signature)));
    let mixed =
        IdentityOptions { algorithms: vec![TokenAlgorithm::Rs256], ..options(KeyOrigin::Secret(path)) };
    assert!(open(mixed).expect_err("mixed").to_string().contains("HS256 is for secret_file only"));
    let url = KeyOrigin::Url("https://sso.example.org/keys".into());
    let mixed = IdentityOptions { algorithms: vec![TokenAlgorithm::Hs256], ..options(url) };
    assert!(open(mixed).expect_err("mixed").to_string().contains("HS256 is for secret_file only"));
}

async fn spend(spending: &Arc<dyn Spending>, tokens: u64) -> Result<(), LimitKind> {
    let call = PlannedCall {
        engine: "ollama",
        model: "m",
        prompt_tokens: 0,
        completion_tokens: Some(tokens),
        lowest_completion: None,
    };
    let reserved = spending.reserve(call).await.map_err(|limit| limit.kind)?;
    let usage = hob_core::Usage { completion_tokens: tokens, ..hob_core::Usage::default() };
    reserved.settle(usage);
    Ok(())
}

#[tokio::test]
async fn the_limits_of_an_identity_count_over_all_its_tokens_and_tasks() {
    let issuer = TokenIssuer::new("one");
    let setup = setup(&issuer).await;
    let spending = async |number: u32, email: &str| {
        let token = issuer.token(&with(json!({ "jti": number, "email": email })));
        setup.check(&token).await.expect("accepted").grant.spending.clone().expect("limits")
    };
    assert_eq!(spend(&spending(1, "ana@example.org").await, 60).await, Ok(()));
    assert_eq!(spend(&spending(2, "ANA@example.org").await, 60).await, Err(LimitKind::Budget));
    assert_eq!(spend(&spending(3, "ben@example.org").await, 60).await, Ok(()), "another person");
    let task = setup.keys.grant("identity:ana@example.org", Some("groups=ml")).expect("rights");
    let task = task.spending.clone().expect("limits");
    assert_eq!(spend(&task, 60).await, Err(LimitKind::Budget));
    assert_eq!(spend(&task, 40).await, Ok(()));
    let account = setup.check(&issuer.token(&claims())).await.expect("accepted");
    let (shown, usage) = setup.keys.show_active(&account).await.expect("shown");
    assert_eq!((shown.name.as_str(), usage.len(), usage[0].used), ("identity:ana@example.org", 1, 100));
}

#[tokio::test]
async fn the_limits_of_one_rule_do_not_replace_those_of_another() {
    let issuer = TokenIssuer::new("one");
    let setup = setup(&issuer).await;
    setup.service.set_rules(rules(
        &[
            json!({ "claim": "groups", "value": "ml", "requests_per_minute": 1, "budgets": ["100 tokens/day"] }),
            json!({ "claim": "groups", "value": "ops", "budgets": ["1000 tokens/day"] }),
        ],
        &[],
    ));
    let spending = |rule: &str| {
        let grant = setup.keys.grant("identity:ana@example.org", Some(rule)).expect("rights");
        grant.spending.clone().expect("limits")
    };
    let begin = async |rule: &str| spending(rule).begin_request().await.map(drop).map_err(|limit| limit.kind);
    assert_eq!(begin("groups=ml").await, Ok(()));
    for _ in 0..3 {
        assert_eq!(begin("groups=ops").await, Ok(()));
        assert_eq!(begin("groups=ml").await, Err(LimitKind::RequestsPerMinute));
    }
    assert_eq!(spend(&spending("groups=ops"), 60).await, Ok(()));
    assert_eq!(spend(&spending("groups=ml"), 60).await, Err(LimitKind::Budget), "one person has one budget");
}

#[tokio::test]
async fn a_task_has_the_rights_that_its_rule_gives_now() {
    let issuer = TokenIssuer::new("one");
    let setup = setup(&issuer).await;
    let permit = setup.check(&issuer.token(&claims())).await.expect("accepted").grant.permit();
    let (name, rule) = (permit.key.expect("a name"), permit.rule.expect("a rule"));
    assert_eq!((&*name, &*rule), ("identity:ana@example.org", "groups=ml"));
    let reach = |setup: &Setup| setup.keys.grant(&name, Some(&rule)).map(|grant| grant.reach);
    assert_eq!(reach(&setup), Some(Reach::Read));
    assert!(setup.keys.grant(&name, None).is_none(), "an identity is no named key");
    assert!(setup.keys.grant("ana", Some(&rule)).is_none(), "a named key is no identity");
    setup.service.set_rules(rules(&[json!({ "claim": "groups", "value": "ml", "reach": "pure" })], &[]));
    assert_eq!(reach(&setup), Some(Reach::Pure), "a changed rule");
    let memory = |setup: &Setup| setup.keys.grant(&name, Some(&rule)).map(|grant| grant.memory.clone());
    assert_eq!(memory(&setup), Some(CollectionSet::none()), "a member reads no documents");
    setup.service.set_rules(rules(&[json!({ "claim": "groups", "value": "ml", "memory": ["team"] })], &[]));
    let team = CollectionSet::of(CollectionName::parse("team").expect("a name"));
    assert_eq!(memory(&setup), Some(team));
    setup.service.set_rules(rules(&[json!({ "claim": "groups", "value": "ml" })], &["ana@example.org"]));
    assert_eq!(reach(&setup), None, "a blocked person");
    assert!(matches!(setup.refusal(&issuer.token(&claims())).await, IdentityRefusal::Blocked { .. }));
    setup.service.set_rules(rules(&[json!({ "claim": "groups", "value": "sales" })], &[]));
    assert_eq!(reach(&setup), None, "a rule that is gone");
}

#[tokio::test]
async fn accounts_that_are_not_in_use_give_back_what_they_have_leased() {
    let issuer = TokenIssuer::new("one");
    let setup = setup(&issuer).await;
    let token = issuer.token(&claims());
    let account = setup.check(&token).await.expect("accepted");
    let spending = account.grant.spending.clone().expect("limits");
    assert_eq!(spend(&spending, 60).await, Ok(()));
    drop((account, spending));
    let accounts = setup.keys.identities();
    let retire_after = |seconds: i64| {
        setup.clock.forward(seconds);
        accounts.retire_idle().expect("given back");
        accounts.all().len()
    };
    assert_eq!(retire_after(120), 1, "a token refers to it");
    assert_eq!(retire_after(120), 1);
    setup.clock.forward(700);
    setup.service.tokens.forget_expired(setup.clock.now());
    assert_eq!(retire_after(0), 1, "its limits per minute still count");
    assert_eq!(retire_after(120), 0);
    let later = issuer.token(&with(json!({ "iat": null, "exp": NOON + 3_600 })));
    let account = setup.check(&later).await.expect("accepted");
    let (_, usage) = setup.keys.show_active(&account).await.expect("shown");
    assert_eq!(usage[0].used, 60, "what was spent is stored");
}
