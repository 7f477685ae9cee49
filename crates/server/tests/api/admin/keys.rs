//! Named API keys over HTTP: who gets in, what a member may use, and its limits. `access` has the rules of all routes.

use std::sync::Arc;

use hob_core::Engine;
use hob_core::token_estimate::whole_prompt_tokens;
use hob_engines::Style;
use hob_keys::{KeyRole, KeyService};
use hob_server::ServerParts;
use hob_testkit::{Hold, ScriptedEngine};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::admin::openapi::{assert_fits, document_of};
use crate::client::asking;
use crate::fixtures::{NetworkServer, loopback_config, parts, parts_reached_from_network};
use crate::key_fixtures::{create_key, get, key_options, key_parts, key_service, message, post, send};
use crate::limits::concurrency_limit::{first_held, streaming};
use crate::support::{TestServer, engine_at};

struct KeyServer {
    _home: TempDir,
    keys: Arc<KeyService>,
    http: TestServer,
}

/// With an engine that has two models.
pub(super) fn two_model_parts(home: &TempDir, keys: &Arc<KeyService>) -> ServerParts {
    let engine = ScriptedEngine::saying(&["Hel", "lo"]).with_models(&["qwen3:8b", "llama3:8b"]);
    key_parts(home, keys, parts(Arc::new(engine)))
}

async fn start() -> KeyServer {
    let (home, keys) = (tempfile::tempdir().unwrap(), key_service());
    let http = TestServer::start_parts(two_model_parts(&home, &keys), loopback_config()).await;
    KeyServer { _home: home, keys, http }
}

#[tokio::test]
async fn the_owner_creates_changes_and_revokes_keys_over_http() {
    let server = start().await;
    let document = document_of(&server.http).await;
    let new = json!({ "name": "ana", "models": ["qwen*"], "parallel": 4, "budgets": ["5 USD/month"], "expires": "90d" });
    let (status, created) = post(&server.http, "/v1/keys", "", new).await;
    assert_eq!(status, 201, "{created}");
    assert_fits(&document, "KeyWithSecret", &created);
    let secret = created["secret"].as_str().unwrap().to_owned();
    let (status, list) = get(&server.http, "/v1/keys", "").await;
    assert_eq!(status, 200);
    assert_fits(&document, "KeyList", &list);
    assert!(!list.to_string().contains(&secret[20..]), "a secret is shown once");
    let (_, own) = get(&server.http, "/v1/keys/self", &secret).await;
    assert_fits(&document, "KeyWithUsage", &own);
    assert_eq!((&own["name"], &own["usage"][0]["used_usd"]), (&json!("ana"), &json!(0.0)));
    let patch =
        send(&server.http, Method::PATCH, "/v1/keys/ana", "", Some(json!({ "parallel": null }))).await;
    assert_eq!(patch.json::<Value>().await.unwrap()["parallel"], Value::Null);
    let (_, rotated) = post(&server.http, "/v1/keys/ana/rotate", "", json!({ "overlap": 0 })).await;
    let rotated = rotated["secret"].as_str().unwrap().to_owned();
    assert_eq!(get(&server.http, "/v1/models", &secret).await.0, 401);
    assert_eq!(get(&server.http, "/v1/models", &rotated).await.0, 200);
    assert_eq!(post(&server.http, "/v1/keys/ana/disable", "", json!({})).await.0, 200);
    let (status, refused) = get(&server.http, "/v1/models", &rotated).await;
    assert_eq!(
        (status, message(&refused)),
        (401, "the key 'ana' is disabled. Ask the owner of this server for another")
    );
    assert_eq!(post(&server.http, "/v1/keys/ana/enable", "", json!({})).await.0, 200);
    assert_eq!(get(&server.http, "/v1/models", &rotated).await.0, 200);
    let revoked = send(&server.http, Method::DELETE, "/v1/keys/ana", "", None).await;
    assert_eq!(revoked.json::<Value>().await.unwrap()["status"], "revoked");
    let (status, again) = post(&server.http, "/v1/keys", "", json!({ "name": "ana" })).await;
    assert_eq!((status, &again["error"]["code"]), (409, &json!("key_conflict")));
    let (status, wrong) =
        post(&server.http, "/v1/keys", "", json!({ "name": "b", "budgets": ["much"] })).await;
    assert_eq!(status, 400, "{wrong}");
    // A misspelt limit is refused, and does not become no limit.
    let misspelt = json!({ "request_per_minute": 60 });
    let new = json!({ "name": "b", "request_per_minute": 60 });
    let (status, refused) = post(&server.http, "/v1/keys", "", new).await;
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("request_per_minute")), "{refused}");
    assert_eq!(post(&server.http, "/v1/keys", "", json!({ "name": "b" })).await.0, 201);
    let changed = send(&server.http, Method::PATCH, "/v1/keys/b", "", Some(misspelt)).await;
    assert_eq!(changed.status(), 400);
    server.keys.audit().verify().unwrap().unwrap();
}

#[tokio::test]
async fn a_wrong_value_is_refused_with_the_name_of_its_field() {
    let (home, mut options) = (tempfile::tempdir().unwrap(), key_options());
    options.engines = vec!["ollama", "vllm"];
    let keys = Arc::new(KeyService::new(options));
    let server = TestServer::start_parts(two_model_parts(&home, &keys), loopback_config()).await;
    create_key(&keys, "ana", KeyRole::Member, json!({})).await;
    let wrong = [
        (json!({ "requests_per_minute": "many" }), "requests_per_minute", "expected a whole number"),
        (json!({ "parallel": -1 }), "parallel", "of 0 or more, got the number -1"),
        (json!({ "cloud": 1 }), "cloud", "expected true or false"),
        (
            json!({ "engines": ["ollama", "nosuch"] }),
            "engines",
            "unknown engine 'nosuch'; known engines: ollama, vllm",
        ),
    ];
    for (fields, param, words) in wrong {
        let mut new = fields.clone();
        new["name"] = json!("ben");
        let created = send(&server, Method::POST, "/v1/keys", "", Some(new)).await;
        let changed = send(&server, Method::PATCH, "/v1/keys/ana", "", Some(fields)).await;
        for response in [created, changed] {
            assert_eq!(response.status(), 400, "{param}");
            let refused: Value = response.json().await.unwrap();
            assert_eq!(refused["error"]["param"], param, "{refused}");
            assert!(message(&refused).contains(words), "{refused}");
        }
    }
    for (fields, param) in [(json!({ "overlap": "long" }), "overlap"), (json!({ "overlaps": 0 }), "overlaps")]
    {
        let (status, refused) = post(&server, "/v1/keys/ana/rotate", "", fields).await;
        assert_eq!((status, &refused["error"]["param"]), (400, &json!(param)), "{refused}");
    }
}

#[tokio::test]
async fn with_a_named_key_others_need_one_and_this_machine_does_not() {
    let (home, keys) = (tempfile::tempdir().unwrap(), key_service());
    let server: NetworkServer =
        parts_reached_from_network(two_model_parts(&home, &keys), loopback_config()).await;
    assert_eq!(get(&server, "/v1/models", "").await.0, 200, "without keys everyone is served");
    let secret = create_key(&keys, "ana", KeyRole::Member, json!({})).await;
    let (status, refused) = get(&server, "/v1/models", "").await;
    assert_eq!(status, 401);
    assert!(message(&refused).contains("'hob key create'"), "{refused}");
    assert_eq!(get(&server, "/v1/models", "sk-anything").await.0, 401);
    assert_eq!(get(&server, "/v1/models", &secret).await.0, 200);
    assert_eq!(get(&server, "/health", "").await.0, 200);
    let here = start().await;
    let secret = create_key(&here.keys, "ana", KeyRole::Member, json!({})).await;
    assert_eq!(get(&here.http, "/v1/keys", "sk-anything").await.0, 200, "this machine is the owner's");
    assert_eq!(get(&here.http, "/v1/keys", &secret).await.0, 403);
    // No secret has this letter.
    assert_eq!(get(&here.http, "/v1/models", &format!("{}!", &secret[..secret.len() - 1])).await.0, 401);
}

#[tokio::test]
async fn a_member_sees_and_uses_only_the_models_of_its_key() {
    let server = start().await;
    let secret = create_key(&server.keys, "ana", KeyRole::Member, json!({ "models": ["qwen*"] })).await;
    let (_, list) = get(&server.http, "/v1/models", &secret).await;
    let ids: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["qwen3:8b"]);
    let ask = |model: &str| asking(json!({ "model": model }));
    assert_eq!(post(&server.http, "/v1/chat/completions", &secret, ask("qwen3:8b")).await.0, 200);
    let (status, refused) = post(&server.http, "/v1/chat/completions", &secret, ask("llama3:8b")).await;
    assert_eq!(
        (status, &refused["error"]["code"], message(&refused)),
        (
            403,
            &json!("model_not_allowed"),
            "the key 'ana' may not use the model 'llama3:8b'. GET /v1/models lists the models that it may use"
        )
    );
    assert_eq!(post(&server.http, "/v1/chat/completions", &secret, ask("auto")).await.0, 403);
    let anthropic =
        json!({ "model": "llama3:8b", "max_tokens": 5, "messages": [{ "role": "user", "content": "hi" }] });
    let (status, refused) = post(&server.http, "/v1/messages", &secret, anthropic).await;
    assert_eq!((status, &refused["error"]["type"]), (403, &json!("permission_error")));
    let ollama =
        json!({ "model": "llama3:8b", "messages": [{ "role": "user", "content": "hi" }], "stream": false });
    let (status, refused) = post(&server.http, "/api/chat", &secret, ollama).await;
    assert_eq!(status, 403);
    assert!(
        refused["error"].as_str().unwrap().starts_with("the key 'ana' may not use the model"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_key_has_its_requests_a_minute_and_the_headers_say_what_is_left() {
    let server = start().await;
    let secret =
        create_key(&server.keys, "ana", KeyRole::Member, json!({ "requests_per_minute": 1_000_000 })).await;
    let path = "/v1/chat/completions";
    let response =
        send(&server.http, Method::POST, path, &secret, Some(asking(json!({ "model": "qwen3:8b" })))).await;
    assert_eq!(response.status(), 200);
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("x-ratelimit-limit-requests"), "1000000");
    assert!(header("x-ratelimit-remaining-requests").parse::<u64>().unwrap() <= 1_000_000);
    assert!(header("x-ratelimit-reset-requests").ends_with('s'));
    assert!(!response.headers().contains_key("x-ratelimit-limit-tokens"));
}

#[tokio::test]
async fn a_key_without_enough_left_is_refused_before_the_engine_is_asked() {
    let server = start().await;
    let secret =
        create_key(&server.keys, "ana", KeyRole::Member, json!({ "budgets": ["40 tokens/month"] })).await;
    let ask = |most: u32| asking(json!({ "max_tokens": most, "model": "qwen3:8b" }));
    let (status, refused) = post(&server.http, "/v1/chat/completions", &secret, ask(500)).await;
    assert_eq!((status, &refused["error"]["code"]), (429, &json!("insufficient_quota")), "{refused}");
    assert!(
        message(&refused).starts_with("the budget of the key 'ana' has too little left: 40 tokens/month."),
        "{refused}"
    );
    let (status, answer) = post(&server.http, "/v1/chat/completions", &secret, ask(5)).await;
    assert_eq!(status, 200, "{answer}");
    let (_, own) = get(&server.http, "/v1/keys/self", &secret).await;
    let used = answer["usage"]["total_tokens"].as_u64().unwrap();
    assert_eq!(own["usage"][0]["used"], used, "what was reserved and not used is free again");
    let anthropic =
        json!({ "model": "qwen3:8b", "max_tokens": 500, "messages": [{ "role": "user", "content": "hi" }] });
    let (status, refused) = post(&server.http, "/v1/messages", &secret, anthropic).await;
    assert_eq!((status, &refused["error"]["type"]), (429, &json!("rate_limit_error")));
}

#[tokio::test]
async fn a_request_without_max_tokens_gets_what_its_key_has_left() {
    let (home, keys) = (tempfile::tempdir().unwrap(), key_service());
    let engine = Arc::new(ScriptedEngine::saying(&["Hel", "lo"]));
    let parts = key_parts(&home, &keys, parts(Arc::clone(&engine) as Arc<dyn Engine>));
    let server = TestServer::start_parts(parts, loopback_config()).await;
    let limits = [json!({ "tokens_per_minute": 40 }), json!({ "budgets": ["40 tokens/month"] })];
    for (name, rules) in ["ana", "ben"].into_iter().zip(limits) {
        let secret = create_key(&keys, name, KeyRole::Member, rules).await;
        let ask = asking(json!({ "model": "m" }));
        let (status, answer) = post(&server, "/v1/chat/completions", &secret, ask).await;
        assert_eq!(status, 200, "{answer}");
        let request = engine.requests().pop().unwrap();
        let most = request.max_tokens().map(u64::from);
        assert_eq!(most, Some(40 - whole_prompt_tokens(&request)), "{name}");
        let ask = asking(json!({ "model": "m", "max_tokens": 1_024 }));
        assert_eq!(post(&server, "/v1/chat/completions", &secret, ask).await.0, 429, "{name}");
    }
}

#[tokio::test]
async fn a_stream_that_has_ended_leaves_room_for_the_next_request() {
    let server = start().await;
    let secret = create_key(&server.keys, "ana", KeyRole::Member, json!({ "parallel": 1 })).await;
    let path = "/v1/chat/completions";
    for _ in 0..3 {
        let stream = send(
            &server.http,
            Method::POST,
            path,
            &secret,
            Some(asking(json!({ "stream": true, "model": "qwen3:8b" }))),
        )
        .await;
        assert_eq!(stream.status(), 200);
        assert!(stream.text().await.unwrap().ends_with("[DONE]\n\n"));
    }
}

#[tokio::test]
async fn a_request_over_the_parallel_limit_is_refused_while_a_stream_runs() {
    let (home, keys, hold) = (tempfile::tempdir().unwrap(), key_service(), Hold::new());
    let fake = first_held(&hold).await;
    let parts = key_parts(&home, &keys, parts(engine_at(&fake, Style::VLLM)));
    let server = TestServer::start_parts(parts, loopback_config()).await;
    let secret = create_key(&keys, "ana", KeyRole::Member, json!({ "parallel": 1 })).await;
    let ask = async || send(&server, Method::POST, "/v1/chat/completions", &secret, Some(streaming())).await;
    let first = ask().await;
    assert_eq!(first.status(), 200);
    let refused = ask().await;
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &"1".parse().unwrap()));
    let refused: Value = refused.json().await.unwrap();
    assert_eq!(
        (refused["error"]["code"].as_str(), message(&refused)),
        (
            Some("rate_limit_exceeded"),
            "the key 'ana' may have 1 requests at once, and they are running. Try again when one of them has ended"
        )
    );
    hold.release();
    assert!(first.text().await.unwrap().ends_with("data: [DONE]\n\n"));
    assert_eq!(ask().await.status(), 200);
}

#[tokio::test]
async fn members_have_their_own_responses_and_tasks() {
    let server = start().await;
    let ana = create_key(&server.keys, "ana", KeyRole::Member, json!({})).await;
    let ben = create_key(&server.keys, "ben", KeyRole::Member, json!({})).await;
    let (status, response) =
        post(&server.http, "/v1/responses", &ana, json!({ "model": "qwen3:8b", "input": "hi" })).await;
    assert_eq!(status, 200, "{response}");
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    assert_eq!(get(&server.http, &path, &ana).await.0, 200);
    assert_eq!(get(&server.http, &path, &ben).await.0, 404);
    let task = json!({ "prompt": "say hi", "schedule_type": "interval", "schedule_value": "3600" });
    let (status, created) = post(&server.http, "/v1/tasks", &ana, task.clone()).await;
    assert_eq!(status, 201, "{created}");
    post(&server.http, "/v1/tasks", "", task.clone()).await;
    let path = format!("/v1/tasks/{}", created["id"].as_str().unwrap());
    let count =
        async |key: &str| get(&server.http, "/v1/tasks", key).await.1["tasks"].as_array().unwrap().len();
    assert_eq!((count(&ana).await, count(&ben).await, count("").await), (1, 0, 2));
    assert_eq!(get(&server.http, &path, &ana).await.0, 200);
    for changed in ["pause", "run"] {
        assert_eq!(
            post(&server.http, &format!("{path}/{changed}"), &ben, json!({})).await.0,
            404,
            "{changed}"
        );
    }
    let sending =
        json!({ "prompt": "p", "schedule_type": "interval", "schedule_value": "60", "channel": "telegram" });
    assert_eq!(post(&server.http, "/v1/tasks", &ana, sending).await.0, 403, "the channels are the owner's");
    assert_eq!(send(&server.http, Method::DELETE, &path, &ben, None).await.status(), 404);
    assert_eq!(send(&server.http, Method::DELETE, &path, &ana, None).await.status(), 200);
    let log = server.keys.audit().latest(2).unwrap();
    let shown: Vec<_> =
        log.iter().map(|entry| (entry.event.action.as_str(), entry.event.actor.name.as_str())).collect();
    assert_eq!(shown, [("task.delete", "ana"), ("task.create", "owner")]);
}

#[tokio::test]
async fn a_change_of_a_task_counts_as_a_request_of_its_key() {
    let server = start().await;
    let ana = create_key(&server.keys, "ana", KeyRole::Member, json!({ "requests_per_minute": 1 })).await;
    let task = json!({ "prompt": "say hi", "schedule_type": "interval", "schedule_value": "3600" });
    let (status, created) = post(&server.http, "/v1/tasks", &ana, task.clone()).await;
    assert_eq!(status, 201, "{created}");
    let path = format!("/v1/tasks/{}", created["id"].as_str().unwrap());
    let (pause, resume) = (format!("{path}/pause"), format!("{path}/resume"));
    let mut statuses = Vec::new();
    // A new minute can begin between two of them, but not between all.
    for _ in 0..4 {
        statuses.push(post(&server.http, &pause, &ana, json!({})).await.0);
        statuses.push(post(&server.http, &resume, &ana, json!({})).await.0);
    }
    assert!(statuses.contains(&429), "{statuses:?}");
    let mut created = Vec::new();
    for _ in 0..4 {
        created.push(post(&server.http, "/v1/tasks", &ana, task.clone()).await.0);
    }
    assert!(created.contains(&429), "{created:?}");
    assert_eq!(get(&server.http, &path, &ana).await.0, 200, "reading does not count");
    // Those that were refused have changed nothing, and are not in the audit log.
    let changed = statuses.iter().filter(|status| **status == 200).count();
    let added = created.iter().filter(|status| **status == 201).count();
    let log = server.keys.audit().latest(100).unwrap();
    let entries = log.iter().filter(|entry| entry.event.action.starts_with("task.")).count();
    assert_eq!(entries, 1 + changed + added);
}
