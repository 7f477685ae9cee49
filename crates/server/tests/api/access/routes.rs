//! The routes by the kinds of callers. `ACCESS` and `ANSWERS` are the rules, in words: a route or a method that is not there fails a test,
//! and `docs/security.md` gets its table from them.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use hob_config::ServerConfig;
use hob_core::ReadinessCheck;
use hob_keys::{AuditActor, KeyRole};
use hob_server::ServerParts;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::{Team, key_name, request};
use crate::fixtures::{loopback_config, parts_reached_from_network};
use crate::support::TestServer;

/// Every route: its path, its methods, its rule, and what a stranger gets, who is a caller without a key where no key exists: `yes`, `part`
/// (less than the owner), `no` (403) or `none` (404, because a stranger has no such thing).
///
/// The rules are those of the router. `public` is `open`, and also needs no key where there are keys.
pub(super) const ACCESS: &str = "
    /v1/chat/completions                     POST              ask     yes
    /v1/completions                          POST              ask     yes
    /v1/embeddings                           POST              ask     yes
    /v1/audio/transcriptions                 POST              ask     yes
    /v1/audio/translations                   POST              ask     yes
    /v1/audio/speech                         POST              ask     yes
    /v1/images/generations                   POST              ask     yes
    /v1/images/edits                         POST              ask     yes
    /v1/rerank                               POST              ask     yes
    /v2/rerank                               POST              ask     yes
    /rerank                                  POST              ask     yes
    /tokenize                                POST              ask     yes
    /detokenize                              POST              ask     yes
    /v1/responses                            POST              own     yes
    /v1/responses/input_tokens               POST              own     yes
    /v1/responses/{id}                       GET,DELETE        own     yes
    /v1/responses/{id}/cancel                POST              own     yes
    /v1/responses/{id}/input_items           GET               own     yes
    /v1/conversations                        POST              own     yes
    /v1/conversations/{id}                   GET,POST,DELETE   own     yes
    /v1/conversations/{id}/items             GET,POST          own     yes
    /v1/conversations/{id}/items/{item_id}   GET,DELETE        own     yes
    /v1/chats                                GET,POST          own     no
    /v1/chats/{id}                           GET,PATCH,DELETE  own     no
    /v1/chats/{id}/turns                     POST              own     no
    /v1/chats/{id}/turns/{turn}/answer       PUT               own     no
    /v1/saved-assistants                     GET,POST          own     no
    /v1/saved-assistants/{id}                GET,PATCH,DELETE  own     no
    /v1/agents                               GET               ask     yes
    /v1/models                               GET               ask     yes
    /v1/models/{*id}                         GET               ask     yes
    /v1/model-files                          GET               owner   no
    /v1/model-files/search                   GET               owner   no
    /v1/model-files/downloads                GET               owner   no
    /v1/engines/embedded                     GET,POST          owner   no
    /v1/messages                             POST              ask     yes
    /v1/messages/count_tokens                POST              ask     yes
    /v1/events                               GET               owner   no
    /v1/channels                             GET               owner   part
    /v1/channels/send                        POST              owner   no
    /v1/channels/status                      GET               owner   part
    /v1/channels/details                     GET               owner   no
    /v1/channels/messages                    GET               owner   no
    /v1/channels/approve                     POST              owner   no
    /v1/channels/whatsapp                    GET,POST,PUT,DELETE owner   no
    /v1/memory/search                        POST              memory  no
    /v1/memory/stats                         GET               memory  no
    /v1/memory/collections                   GET               memory  no
    /v1/memory/collections/{name}            DELETE            owner   no
    /v1/memory/documents                     GET,POST          memory  no
    /v1/memory/skipped                       GET               memory  no
    /v1/memory/jobs                          GET               memory  no
    /v1/memory/forget                        POST              owner   no
    /v1/memory/folders                       GET,POST          owner   no
    /v1/memory/folders/{id}                  PATCH,DELETE      owner   no
    /v1/tasks                                GET,POST          own     no
    /v1/tasks/preview                        POST              own     no
    /v1/tasks/{id}                           GET,DELETE        own     no
    /v1/tasks/{id}/pause                     POST              own     no
    /v1/tasks/{id}/resume                    POST              own     no
    /v1/tasks/{id}/cancel                    POST              own     no
    /v1/tasks/{id}/run                       POST              own     no
    /v1/tasks/{id}/logs                      GET               own     no
    /v1/keys                                 GET,POST          owner   no
    /v1/keys/self                            GET               own     none
    /v1/keys/{name}                          GET,PATCH,DELETE  owner   no
    /v1/keys/{name}/disable                  POST              owner   no
    /v1/keys/{name}/enable                   POST              owner   no
    /v1/keys/{name}/rotate                   POST              owner   no
    /v1/audit                                GET               owner   no
    /v1/usage                                GET               own     no
    /v1/calls                                GET               own     no
    /v1/settings                             GET,PATCH         owner   no
    /v1/feedback                             POST              owner   no
    /v1/savings                              GET               owner   part
    /api/chat                                POST              ask     yes
    /api/generate                            POST              ask     yes
    /api/embed                               POST              ask     yes
    /api/embeddings                          POST              ask     yes
    /api/tags                                GET               ask     yes
    /api/show                                POST              ask     yes
    /api/ps                                  GET               ask     yes
    /api/version                             GET               open    yes
    /api/pull                                POST              owner   no
    /api/delete                              DELETE            owner   no
    /api/copy                                POST              owner   no
    /api/create                              POST              open    yes
    /api/push                                POST              open    yes
    /api/blobs/{digest}                      POST,HEAD         open    yes
    /                                        GET               public  yes
    /documents                               GET               public  yes
    /tasks                                   GET               public  yes
    /channels                                GET               public  yes
    /models                                  GET               public  yes
    /dashboard                               GET               public  yes
    /team                                    GET               public  yes
    /settings                                GET               public  yes
    /pages/markdown                          POST              open    yes
    /pages/document                          POST              ask     yes
    /pages/live                              GET               own     no
    /health                                  GET               public  yes
    /health/live                             GET               public  yes
    /health/ready                            GET               public  yes
    /metrics                                 GET               owner   no
    /openapi.json                            GET               open    yes
";

/// What each caller gets where there are keys, by the rule of the route: `+` is served, the others are refusals.
const ANSWERS: &str = "
    caller         public  open  ask   own   memory  owner
    this-machine   +       +     +     +     +       +
    api-key        +       +     +     +     +       +
    owner-key      +       +     +     +     +       +
    member-key     +       +     +     +     +       403
    plain-key      +       +     +     +     403     403
    disabled-key   +       401   401   401   401     401
    expired-key    +       401   401   401   401     401
    revoked-key    +       401   401   401   401     401
    unknown-key    +       401   401   401   401     401
    no-key         +       401   401   401   401     401
";

/// One line of `ACCESS`.
pub(super) struct Route {
    pub(super) pattern: &'static str,
    pub(super) methods: Vec<Method>,
    pub(super) rule: &'static str,
    stranger: &'static str,
}

impl Route {
    /// The path, with the names of its parts for the parts.
    fn path(&self) -> String {
        self.pattern.replace("{*", "").replace(['{', '}'], "")
    }
}

pub(super) fn routes() -> Vec<Route> {
    let words = |line: &'static str| -> [&'static str; 4] {
        let words: Vec<_> = line.split_whitespace().collect();
        words.try_into().unwrap_or_else(|_| panic!("four words: {line}"))
    };
    let lines = ACCESS.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| {
            let [pattern, methods, rule, stranger] = words(line);
            let methods = methods.split(',').map(|name| Method::from_bytes(name.as_bytes()).unwrap());
            Route { pattern, methods: methods.collect(), rule, stranger }
        })
        .collect()
}

/// What `ANSWERS` has for a caller on a route.
fn expected(caller: &str, rule: &str) -> &'static str {
    let mut lines = ANSWERS.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let head = lines.find(|words| words.first() == Some(&"caller")).unwrap();
    let column = head.iter().position(|name| *name == rule).unwrap_or_else(|| panic!("no rule {rule}"));
    let line = lines.find(|words| words.first() == Some(&caller));
    line.unwrap_or_else(|| panic!("no caller {caller}"))[column]
}

/// Asserts that an answer is what a line of a table says.
async fn assert_answer(response: Response, expected: &str, what: &str, path: &str) {
    let status = response.status().as_u16();
    if expected == "+" {
        assert!(![401, 403].contains(&status), "{what}: {status}");
        return;
    }
    assert_eq!(status.to_string(), expected, "{what}");
    let challenge =
        response.headers().get("www-authenticate").map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(challenge.as_deref(), (status == 401).then_some("Bearer"), "{what}");
    let body = response.bytes().await.unwrap();
    // An answer to HEAD has no body.
    let Ok(body) = serde_json::from_slice::<Value>(&body) else { return };
    let error = &body["error"];
    // The kind of an error, and its code where the API has one.
    let found = match path {
        _ if path.starts_with("/api/") => json!(error.is_string()),
        _ if path.starts_with("/v1/messages") => json!([error["type"]]),
        _ => json!([error["type"], error["code"]]),
    };
    let documented = match (path, status) {
        _ if path.starts_with("/api/") => json!(true),
        (_, 401) if path.starts_with("/v1/messages") => json!(["authentication_error"]),
        (_, 403) if path.starts_with("/v1/messages") => json!(["permission_error"]),
        (_, 401) => json!(["authentication_error", "invalid_api_key"]),
        _ => json!(["permission_error", null]),
    };
    assert_eq!(found, documented, "{what}: {body}");
}

/// The paths of the router with their rules, as its table has them.
fn routers_rules() -> Vec<(String, String)> {
    let rows = include_str!("../../../src/router.rs").split("\n        (\"").skip(1);
    let rule = |row: &str| {
        let (path, rest) = row.split_once("\", ")?;
        Some((path.to_owned(), rest.split_once(',')?.0.to_ascii_lowercase()))
    };
    rows.filter_map(rule).collect()
}

#[tokio::test]
async fn every_route_and_every_method_of_the_router_is_in_the_table() {
    let plain = |rule: &str| if rule == "public" { "open" } else { rule }.to_owned();
    let listed: Vec<_> = routes().iter().map(|route| (route.pattern.to_owned(), plain(route.rule))).collect();
    assert_eq!(routers_rules(), listed, "a new route needs a line in ACCESS");
    let server = TestServer::start_parts(Team::new().parts(), loopback_config()).await;
    for route in routes() {
        for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let response = request(&server, &method, &route.path(), "").send().await.unwrap();
            let is_missing = response.status() == StatusCode::METHOD_NOT_ALLOWED;
            assert_eq!(is_missing, !route.methods.contains(&method), "{method} {}", route.pattern);
        }
    }
}

#[tokio::test]
async fn every_key_gets_on_every_route_what_the_table_says() {
    let team = Team::new();
    let config = ServerConfig { api_key: Some("the-owners-key".to_owned().into()), ..loopback_config() };
    let server = parts_reached_from_network(team.parts(), config).await;
    let owner = team.create("boss", KeyRole::Owner, json!({})).await;
    // With all rights that a member can have, so that only the role refuses it.
    let rights = json!({ "reach": "act", "cloud": true, "memory": ["team"] });
    let member = team.member("ana", rights).await;
    // With those that a member has without any option: it names no collections.
    let plain = team.member("ben", json!({})).await;
    let disabled = team.member("disabled", json!({})).await;
    let revoked = team.member("revoked", json!({})).await;
    let expired = team.member("expired", json!({ "expires": "1h" })).await;
    team.keys.disable(&key_name("disabled"), AuditActor::terminal()).await.unwrap();
    team.keys.revoke(&key_name("revoked"), AuditActor::terminal()).await.unwrap();
    team.forward(2 * 3_600);
    let unknown = format!("{}{}", &member[..17], "x".repeat(43));
    let callers = [
        ("disabled-key", disabled.as_str()),
        ("expired-key", &expired),
        ("revoked-key", &revoked),
        ("no-key", ""),
        ("unknown-key", &unknown),
        // A right key after the wrong one: too many wrong keys in a row would be refused for another reason.
        ("api-key", "the-owners-key"),
        ("owner-key", &owner),
        ("member-key", &member),
        ("plain-key", &plain),
    ];
    for route in routes() {
        for method in &route.methods {
            for (caller, key) in callers {
                let path = route.path();
                let what = format!("{caller} on {method} {}", route.pattern);
                let response = request(&server, method, &path, key).send().await.unwrap();
                assert_answer(response, expected(caller, route.rule), &what, &path).await;
            }
        }
    }
}

#[tokio::test]
async fn an_expired_key_is_refused_with_the_reason() {
    let team = Team::new();
    let server = parts_reached_from_network(team.parts(), loopback_config()).await;
    let secret = team.member("ana", json!({ "expires": "1h" })).await;
    team.forward(3_601);
    let (_, refused) = super::get(&server, "/v1/models", &secret).await;
    assert_eq!(
        refused["error"]["message"],
        "the key 'ana' is expired. Ask the owner of this server for another"
    );
}

#[tokio::test]
async fn this_machine_is_the_owner_and_what_is_forwarded_to_it_needs_a_key() {
    let team = Team::new();
    team.member("ana", json!({})).await;
    let server = TestServer::start_parts(team.parts(), loopback_config()).await;
    for route in routes() {
        for method in &route.methods {
            let path = route.path();
            for (caller, forwarded) in [("this-machine", false), ("no-key", true)] {
                let what = format!("{caller} on {method} {}", route.pattern);
                let mut asked = request(&server, method, &path, "");
                if forwarded {
                    asked = asked.header("x-forwarded-for", "8.8.8.8");
                }
                let response = asked.send().await.unwrap();
                assert_answer(response, expected(caller, route.rule), &what, &path).await;
            }
        }
    }
}

#[tokio::test]
async fn without_keys_a_stranger_gets_what_the_table_says() {
    let server = TestServer::start_parts(Team::new().parts(), loopback_config()).await;
    for route in routes() {
        for method in &route.methods {
            let path = route.path();
            let what = format!("a stranger on {method} {}", route.pattern);
            let asked = request(&server, method, &path, "").header("x-forwarded-for", "8.8.8.8");
            let response = asked.send().await.unwrap();
            let expected = match route.stranger {
                "yes" | "part" => "+",
                "no" => "403",
                "none" => {
                    assert_eq!(response.status(), StatusCode::NOT_FOUND, "{what}");
                    continue;
                }
                other => panic!("{}: '{other}' is not yes, part, no or none", route.pattern),
            };
            assert_answer(response, expected, &what, &path).await;
        }
    }
}

/// A readiness check can name machines in its reason, which only the owner sees.
#[tokio::test]
async fn a_path_without_a_key_proves_nothing() {
    struct Away;
    impl ReadinessCheck for Away {
        fn name(&self) -> &'static str {
            "database"
        }

        fn problem(&self) -> Option<String> {
            Some("db.internal is away".to_owned())
        }
    }
    let team = Team::new();
    let config = ServerConfig { api_key: Some("the-owners-key".to_owned().into()), ..loopback_config() };
    let parts = ServerParts { readiness: vec![Arc::new(Away)], ..team.parts() };
    let server = parts_reached_from_network(parts, config).await;
    let (status, body) = super::get(&server, "/health/ready", "").await;
    assert_eq!((status, body), (503, json!({ "status": "not ready" })));
}

const TABLE_BEGINS: &str = "<!-- access: made from crates/server/tests/api/access/routes.rs. To renew it: HOB_WRITE_DOCS=1 cargo nextest run -p hob-server the_table_of_access -->\n";
const TABLE_ENDS: &str = "<!-- /access -->";

fn table() -> String {
    let mut table =
        "| Request | Member | Stranger | Without a valid key |\n| --- | --- | --- | --- |\n".to_owned();
    for route in routes() {
        let methods: Vec<String> = route.methods.iter().map(|method| format!("`{method}`")).collect();
        let member = match (route.rule, expected("member-key", route.rule)) {
            (_, "403") => "no: 403",
            ("ask", _) => "what its key allows",
            ("own", _) => "its own",
            ("memory", _) => "the collections of its key",
            _ => "yes",
        };
        let stranger = match route.stranger {
            "part" => "in part",
            "no" => "no: 403",
            "none" => "nothing: 404",
            _ => "yes",
        };
        let without = if expected("no-key", route.rule) == "+" { "yes" } else { "no: 401" };
        let path = route.pattern.replace("{*", "{");
        writeln!(table, "| {} `{path}` | {member} | {stranger} | {without} |", methods.join(", ")).unwrap();
    }
    table
}

/// Regenerate with `HOB_WRITE_DOCS=1 cargo nextest run -p hob-server the_table_of_access`.
#[test]
fn the_table_of_access_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/security.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(TABLE_BEGINS).expect("the table's beginning is marked");
    let (written, after) = rest.split_once(TABLE_ENDS).expect("the table's end is marked");
    if std::env::var_os("HOB_WRITE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{TABLE_BEGINS}{}{TABLE_ENDS}{after}", table())).unwrap();
    } else {
        assert_eq!(
            written,
            table(),
            "run: HOB_WRITE_DOCS=1 cargo nextest run -p hob-server the_table_of_access"
        );
    }
}
