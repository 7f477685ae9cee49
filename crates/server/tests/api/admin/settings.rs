//! `/v1/settings`: the configuration file over HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use hob_config::Environment;
use hob_keys::KeyRole;
use hob_server::{ServerParts, ServerSettings};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::admin::openapi::{assert_fits, document_of};
use crate::admin::usage::TeamParts;
use crate::fixtures::loopback_config;
use crate::key_fixtures::get;
use crate::support::{TestServer, WAIT_LIMIT};

pub const TEXT: &str = "# Mine.\n[server]\napi_key = \"s3cret\" # do not lose it\n\n[memory]\n# Short passages.\nchunk_size = 256 # tokens\n";

/// A server with a configuration file of its own.
pub struct SettingsServer {
    home: TempDir,
    pub team: TeamParts,
    pub settings: Arc<ServerSettings>,
    pub http: TestServer,
}

impl SettingsServer {
    pub async fn start(variables: &[(&'static str, &str)]) -> Self {
        Self::start_with_options(variables, BTreeMap::new()).await
    }

    /// A server that was started with options for these keys.
    pub async fn start_with_options(
        variables: &[(&'static str, &str)],
        options: BTreeMap<&'static str, Value>,
    ) -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("config.toml"), TEXT).unwrap();
        let path = home.path().to_str().unwrap();
        let environment: Environment = variables
            .iter()
            .copied()
            .chain([("HOB_HOME", path)])
            .map(|(name, value)| (name, value.to_owned()))
            .collect();
        let settings = Arc::new(ServerSettings::new(environment).with_options(options));
        let team = TeamParts::open();
        let parts = ServerParts { settings: Some(Arc::clone(&settings)), ..team.of_server() };
        let http = TestServer::start_parts(parts, loopback_config()).await;
        SettingsServer { home, team, settings, http }
    }

    pub fn text(&self) -> String {
        std::fs::read_to_string(self.home.path().join("config.toml")).unwrap()
    }

    async fn change(&self, settings: Value) -> (u16, Value) {
        let request = self.http.client.request(Method::PATCH, self.http.url("/v1/settings"));
        let answer = request.json(&json!({ "settings": settings })).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    async fn setting(&self, key: &str) -> Value {
        let (status, list) = get(&self.http, "/v1/settings", "").await;
        assert_eq!(status, 200, "{list}");
        assert_fits(&document_of(&self.http).await, "SettingList", &list);
        let sections = list["data"].as_array().unwrap().iter();
        let mut settings = sections.flat_map(|section| section["settings"].as_array().unwrap());
        settings.find(|setting| setting["key"] == key).unwrap_or_else(|| panic!("no {key}")).clone()
    }
}

#[tokio::test]
async fn every_setting_is_listed_and_no_secret() {
    let server = SettingsServer::start(&[]).await;
    let chunk_size = server.setting("memory.chunk_size").await;
    let expected = json!({
        "key": "memory.chunk_size", "description": "Maximum size of a passage in tokens.",
        "expected": chunk_size["expected"], "choices": [], "default": 512, "value": 256, "secret": false, "set": true,
        "source": "file", "variable": null, "changeable": true, "needs_restart": true,
    });
    assert_eq!(chunk_size, expected);
    let key = server.setting("server.api_key").await;
    let facts = ["value", "secret", "set", "changeable"].map(|name| key[name].clone());
    assert_eq!(facts, [json!(null), json!(true), json!(true), json!(false)]);
    let (_, list) = get(&server.http, "/v1/settings", "").await;
    assert!(!list.to_string().contains("s3cret"));
}

#[tokio::test]
async fn what_an_option_of_the_command_line_sets_is_shown_as_its_value() {
    let options = BTreeMap::from([("server.port", json!(18_652)), ("memory.chunk_size", json!(512))]);
    let server = SettingsServer::start_with_options(&[], options).await;
    let port = server.setting("server.port").await;
    let facts = ["value", "default", "set", "source", "changeable"].map(|name| port[name].clone());
    assert_eq!(facts, [json!(18_652), json!(8000), json!(true), json!("option"), json!(false)]);
    let chunk_size = server.setting("memory.chunk_size").await;
    let facts = ["value", "set", "source", "changeable"].map(|name| chunk_size[name].clone());
    assert_eq!(facts, [json!(512), json!(false), json!("option"), json!(false)]);
    let (status, body) = server.change(json!({ "memory.chunk_size": 300, "agent.max_turns": 3 })).await;
    assert_eq!((status, &body["error"]["param"]), (409, &json!("memory.chunk_size")), "{body}");
    assert_eq!(server.text(), TEXT);
}

#[tokio::test]
async fn a_change_keeps_the_comments_is_in_the_audit_log_and_is_reloaded() {
    let server = SettingsServer::start(&[]).await;
    let changes = json!({ "memory.chunk_size": 300, "server.access_log": "json" });
    let (status, report) = server.change(changes).await;
    assert_eq!(status, 200, "{report}");
    assert_fits(&document_of(&server.http).await, "ChangedSettings", &report);
    let expected = json!({
        "changed": ["server.access_log", "memory.chunk_size"],
        "applied": ["server.access_log"],
        "after_restart": ["memory.chunk_size"],
    });
    assert_eq!(report, expected);
    let text = TEXT.replace("= 256", "= 300").replace("[server]\n", "[server]\naccess_log = \"json\"\n");
    assert_eq!(server.text(), text);
    let changed_by = tokio::time::timeout(WAIT_LIMIT, server.settings.changed()).await;
    let changed_by = changed_by.expect("a request to reload");
    assert_eq!((changed_by.name.as_str(), changed_by.origin.as_str()), ("owner", "127.0.0.1"));
    let noted = server.team.keys.audit().after(0, 9).unwrap();
    let noted: Vec<(&str, &str)> =
        noted.iter().map(|entry| (entry.event.action.as_str(), entry.event.subject.as_str())).collect();
    assert_eq!(noted, [("settings.change", "server.access_log, memory.chunk_size")]);
    // The default again.
    let (_, report) = server.change(json!({ "memory.chunk_size": null })).await;
    assert_eq!(report["changed"], json!(["memory.chunk_size"]));
    assert_eq!(server.setting("memory.chunk_size").await["source"], "default");
}

#[tokio::test]
async fn what_cannot_be_changed_is_refused_and_the_file_stays() {
    let server = SettingsServer::start(&[("HOB_DATABASE_URL", "postgres://db/hob")]).await;
    for (key, value, status, reason) in [
        ("memory.chunk_size", json!("large"), 400, "expected a whole number"),
        ("memory.chunk_size", json!({}), 400, "got an object"),
        ("memory.chunk_sise", json!(1), 400, "Did you mean 'memory.chunk_size'?"),
        ("server.host", json!("0.0.0.0"), 403, "Edit "),
        ("server.api_key", json!("x"), 403, "Edit "),
        ("mcp.servers", json!("x"), 403, "Edit "),
        ("intelligence.allow_cloud_fallback", json!(true), 403, "Edit "),
        ("engine.default", json!("cloud"), 403, "cannot be changed to the cloud here"),
        ("engine.pool", json!(["cloud"]), 403, "cannot be changed to the cloud here"),
        ("server.model", json!("a".repeat(10_001)), 400, "expected at most 10000 characters"),
        ("database.url", json!("x"), 409, "is set by $HOB_DATABASE_URL"),
    ] {
        // A good change beside it is not made either.
        let (found, body) = server.change(json!({ key: value, "agent.max_turns": 3 })).await;
        assert_eq!((found, body["error"]["param"].as_str()), (status, Some(key)), "{body}");
        assert!(body["detail"].as_str().unwrap().contains(reason), "{body}");
    }
    assert_eq!(server.text(), TEXT);
    assert_eq!(server.setting("database.url").await["variable"], "HOB_DATABASE_URL");
}

#[tokio::test]
async fn a_member_neither_reads_nor_changes_settings() {
    let server = SettingsServer::start(&[]).await;
    let ana = server.team.create("ana", KeyRole::Member, json!({})).await;
    assert_eq!(get(&server.http, "/v1/settings", &ana).await.0, 403);
    let request =
        server.http.client.request(Method::PATCH, server.http.url("/v1/settings")).bearer_auth(&ana);
    let refused = request.json(&json!({ "settings": { "agent.max_turns": 3 } })).send().await.unwrap();
    assert_eq!(refused.status(), 403);
    assert_eq!(server.text(), TEXT);
}

#[tokio::test]
async fn a_server_without_a_file_says_so() {
    let server = crate::fixtures::scripted(loopback_config()).await;
    assert_eq!(get(&server, "/v1/settings", "").await.0, 503);
}
