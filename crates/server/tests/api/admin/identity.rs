//! Tokens of an identity provider over HTTP: who gets in, with which rights, and behind a proxy.

use std::sync::Arc;

use hob_app::startup::identity::open_identity;
use hob_config::{IdentityConfig, ServerConfig};
use hob_keys::{KeyRole, KeyService};
use hob_server::ServerParts;
use hob_testkit::{FakeServer, Reply, TokenIssuer};
use reqwest::Method;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::keys::two_model_parts;
use crate::client::asking;
use crate::fixtures::{loopback_config, parts_reached_from_network};
use crate::key_fixtures::{create_key, get, key_service, message, post, send};
use crate::support::TestServer;

const ISSUER: &str = "https://sso.example.org";

/// A provider with its keys, and a server that accepts its tokens.
struct Company {
    _home: TempDir,
    provider: FakeServer,
    issuer: TokenIssuer,
    keys: Arc<KeyService>,
    http: TestServer,
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn identity_config(provider: &FakeServer) -> IdentityConfig {
    IdentityConfig {
        issuer: Some(ISSUER.into()),
        audience: vec!["hob".into()],
        jwks_url: Some(format!("{}/keys", provider.url())),
        name_claim: "email".into(),
        rules: vec![
            object(json!({ "claim": "groups", "value": "admins", "role": "owner" })),
            object(json!({
                "claim": "groups", "value": "ml", "models": ["qwen*"], "requests_per_minute": 1_000_000,
                "budgets": ["10k tokens/month"],
            })),
        ],
        ..IdentityConfig::default()
    }
}

fn parts_with(home: &TempDir, keys: &Arc<KeyService>, config: &IdentityConfig) -> ServerParts {
    let identity = open_identity(config, keys).unwrap();
    ServerParts { identity, ..two_model_parts(home, keys) }
}

async fn company_with(change: impl FnOnce(&mut IdentityConfig), server: ServerConfig) -> Company {
    let issuer = TokenIssuer::new("one");
    let provider = FakeServer::replying(Reply::json(200, issuer.key_set())).await;
    let (home, keys) = (tempfile::tempdir().unwrap(), key_service());
    let mut config = identity_config(&provider);
    change(&mut config);
    let http = TestServer::start_parts(parts_with(&home, &keys, &config), server).await;
    Company { _home: home, provider, issuer, keys, http }
}

async fn company() -> Company {
    company_with(|_| (), loopback_config()).await
}

impl Company {
    fn token(&self, email: &str, groups: &[&str]) -> String {
        token_until(&self.issuer, email, groups, 600)
    }
}

fn token_until(issuer: &TokenIssuer, email: &str, groups: &[&str], seconds: i64) -> String {
    let now = jiff::Timestamp::now().as_second();
    issuer.token(&json!({ "iss": ISSUER, "aud": "hob", "email": email, "groups": groups, "iat": now - 900, "exp": now + seconds }))
}

#[tokio::test]
async fn a_token_gives_the_rights_of_the_first_rule_that_fits() {
    let company = company().await;
    let ana = company.token("ana@example.org", &["ml"]);
    let (_, list) = get(&company.http, "/v1/models", &ana).await;
    let ids: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["qwen3:8b"]);
    let ask = |model: &str| asking(json!({ "model": model, "max_tokens": 5 }));
    let path = "/v1/chat/completions";
    assert_eq!(post(&company.http, path, &ana, ask("qwen3:8b")).await.0, 200);
    let (status, refused) = post(&company.http, path, &ana, ask("llama3:8b")).await;
    assert_eq!((status, &refused["error"]["code"]), (403, &json!("model_not_allowed")));
    assert!(message(&refused).contains("identity:ana@example.org"), "{refused}");
    assert_eq!(get(&company.http, "/v1/keys", &ana).await.0, 403, "a member");
    let boss = company.token("boss@example.org", &["admins"]);
    assert_eq!(get(&company.http, "/v1/keys", &boss).await.0, 200, "an owner");
    assert_eq!(company.provider.requests().len(), 1, "the keys are read once");
    let task = json!({ "prompt": "say hi", "schedule_type": "interval", "schedule_value": "3600" });
    assert_eq!(post(&company.http, "/v1/tasks", &ana, task).await.0, 201);
    let log = company.keys.audit().latest(1).unwrap();
    assert_eq!(
        (log[0].event.action.as_str(), log[0].event.actor.name.as_str()),
        ("task.create", "identity:ana@example.org")
    );
}

#[tokio::test]
async fn the_limits_of_an_identity_hold_over_its_tokens_and_show_in_headers() {
    let company = company().await;
    let path = "/v1/chat/completions";
    let ask = |most: u32| asking(json!({ "max_tokens": most, "model": "qwen3:8b" }));
    let first = token_until(&company.issuer, "ana@example.org", &["ml"], 500);
    let response = send(&company.http, Method::POST, path, &first, Some(ask(5))).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["x-ratelimit-limit-requests"], "1000000");
    let used = response.json::<Value>().await.unwrap()["usage"]["total_tokens"].as_u64().unwrap();
    let second = token_until(&company.issuer, "ana@example.org", &["ml"], 400);
    let (status, own) = get(&company.http, "/v1/keys/self", &second).await;
    assert_eq!((status, &own["name"]), (200, &json!("identity:ana@example.org")));
    let monthly =
        own["usage"].as_array().unwrap().iter().find(|usage| usage["limit"] == "10000 tokens/month");
    assert_eq!(monthly.unwrap()["used"], used);
    let (status, refused) = post(&company.http, path, &second, ask(50_000)).await;
    assert_eq!((status, &refused["error"]["code"]), (429, &json!("insufficient_quota")), "{refused}");
}

#[tokio::test]
async fn people_have_their_own_responses_and_tasks() {
    let company = company().await;
    let (ana, ben) = (company.token("ana@example.org", &["ml"]), company.token("ben@example.org", &["ml"]));
    let body = json!({ "model": "qwen3:8b", "input": "hi", "max_output_tokens": 5 });
    let (status, response) = post(&company.http, "/v1/responses", &ana, body).await;
    assert_eq!(status, 200, "{response}");
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    let later = token_until(&company.issuer, "ana@example.org", &["ml"], 300);
    assert_eq!(get(&company.http, &path, &later).await.0, 200, "with another token");
    assert_eq!(get(&company.http, &path, &ben).await.0, 404);
    let task = json!({ "prompt": "say hi", "schedule_type": "interval", "schedule_value": "3600" });
    assert_eq!(post(&company.http, "/v1/tasks", &ana, task).await.0, 201);
    let count =
        async |token: &str| get(&company.http, "/v1/tasks", token).await.1["tasks"].as_array().unwrap().len();
    assert_eq!((count(&later).await, count(&ben).await), (1, 0));
}

#[tokio::test]
async fn a_refused_token_says_why_and_what_to_do() {
    let company = company().await;
    let expired = token_until(&company.issuer, "ana@example.org", &["ml"], -120);
    let stranger = TokenIssuer::new("one");
    let forged = token_until(&stranger, "ana@example.org", &["admins"], 600);
    let unknown = token_until(&TokenIssuer::new("two"), "ana@example.org", &["ml"], 600);
    let sales = company.token("ana@example.org", &["sales"]);
    for (token, status, code, words) in [
        (expired, 401, "invalid_token", "the token has expired. Sign in again"),
        (forged, 401, "invalid_token", "the signature of the token is wrong"),
        (unknown, 401, "unknown_signing_key", "a key that the identity provider does not publish"),
        (sales, 403, "identity_not_allowed", "'ana@example.org' is signed in, and no rule of this server"),
    ] {
        let (got, refused) = get(&company.http, "/v1/models", &token).await;
        assert_eq!((got, &refused["error"]["code"]), (status, &json!(code)), "{refused}");
        assert!(message(&refused).contains(words), "{refused}");
    }
    let (status, refused) = post(
        &company.http,
        "/v1/messages",
        &token_until(&company.issuer, "ana@example.org", &["ml"], -120),
        json!({ "model": "qwen3:8b", "max_tokens": 5, "messages": [{ "role": "user", "content": "hi" }] }),
    )
    .await;
    assert_eq!((status, &refused["error"]["type"]), (401, &json!("authentication_error")));
    assert_eq!(get(&company.http, "/health", "").await.0, 200);
}

#[tokio::test]
async fn a_provider_that_is_away_is_a_503_and_named_keys_still_work() {
    let issuer = TokenIssuer::new("one");
    let provider = FakeServer::replying(Reply::json(502, "bad gateway")).await;
    let (home, keys) = (tempfile::tempdir().unwrap(), key_service());
    let parts = parts_with(&home, &keys, &identity_config(&provider));
    let server = TestServer::start_parts(parts, loopback_config()).await;
    let token = token_until(&issuer, "ana@example.org", &["ml"], 600);
    let response = send(&server, Method::GET, "/v1/models", &token, None).await;
    assert_eq!((response.status().as_u16(), response.headers()["retry-after"].to_str().unwrap()), (503, "5"));
    let secret = create_key(&keys, "ci", KeyRole::Member, json!({})).await;
    assert_eq!(get(&server, "/v1/models", &secret).await.0, 200);
}

#[tokio::test]
async fn callers_from_elsewhere_need_a_token_and_this_machine_does_not() {
    let issuer = TokenIssuer::new("one");
    let provider = FakeServer::replying(Reply::json(200, issuer.key_set())).await;
    let (home, keys) = (tempfile::tempdir().unwrap(), key_service());
    let parts = parts_with(&home, &keys, &identity_config(&provider));
    let server = parts_reached_from_network(parts, loopback_config()).await;
    let (status, refused) = get(&server, "/v1/models", "").await;
    assert_eq!(status, 401);
    assert!(message(&refused).contains("with a token from https://sso.example.org"), "{refused}");
    let (status, refused) = get(&server, "/v1/models", "sk-anything").await;
    assert_eq!(status, 401);
    assert!(message(&refused).starts_with("the key of this request is wrong"), "{refused}");
    assert_eq!(get(&server, "/v1/models", &token_until(&issuer, "a@example.org", &["ml"], 600)).await.0, 200);
    let here = company().await;
    assert_eq!(get(&here.http, "/v1/keys", "").await.0, 200, "this machine is the owner's");
}

#[tokio::test]
async fn behind_a_proxy_only_its_header_counts_and_this_machine_is_not_the_owners() {
    let header = "cf-access-jwt-assertion";
    let company = company_with(|config| config.header = Some(header.into()), loopback_config()).await;
    let ana = company.token("ana@example.org", &["ml"]);
    let call = async |tokens: &[&str], key: &str| {
        let mut request = company.http.client.get(company.http.url("/v1/keys/self"));
        for token in tokens {
            request = request.header(header, *token);
        }
        if !key.is_empty() {
            request = request.bearer_auth(key);
        }
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    assert_eq!(call(&[&ana], "").await.1["name"], "identity:ana@example.org");
    assert_eq!(call(&[&format!("Bearer {ana}")], "").await.0, 200);
    let (status, refused) = call(&[], "").await;
    assert_eq!(status, 401);
    assert!(
        message(&refused).contains("the proxy that sends the header 'cf-access-jwt-assertion'"),
        "{refused}"
    );
    assert_eq!(call(&[], &ana).await.0, 401, "a token elsewhere is no token");
    assert_eq!(call(&["nonsense"], "").await.0, 401);
    let (status, refused) = call(&[&ana, &ana], "").await;
    assert_eq!(status, 401);
    assert!(message(&refused).contains("more than one header"), "{refused}");
}
