//! `GET /v1/channels/details`, `GET /v1/channels/messages` and `/v1/channels/whatsapp`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hob_app::AskService;
use hob_channels::store::{Exchange, NewPairing, SenderKey, ThreadKey};
use hob_channels::whatsapp::{WhatsappInstaller, WhatsappLinking, WhatsappProgram};
use hob_channels::{
    ChannelOptions, ChannelService, ChannelStatus, ChannelStore, GatewayOptions, GatewayTimeouts, ReplyRules,
    SqliteChannelStore,
};
use hob_core::{AgentPreference, Ask, Reach};
use hob_db::Database;
use hob_keys::KeyRole;
use hob_server::ServerParts;
use hob_testkit::{Gateway, GatewayScript, ScriptedEngine};
use reqwest::Method;
use serde_json::{Value, json};

use super::openapi::{assert_fits, document_of};
use crate::admin::usage::TeamParts;
use crate::fixtures::loopback_config;
use crate::key_fixtures::{get, message, post, send};
use crate::support::{TestServer, WAIT_LIMIT, plain_parts};

/// A server with a gateway, two known senders, and a conversation of the past.
pub struct MessageServer {
    pub http: TestServer,
    pub gateway: Gateway,
}

impl MessageServer {
    pub async fn start() -> Self {
        let gateway = Gateway::start(GatewayScript::default()).await;
        let timeouts =
            GatewayTimeouts { detect_within: Duration::from_millis(100), ..GatewayTimeouts::default() };
        let database = Database::in_memory(&[hob_channels::MIGRATIONS]).unwrap();
        let store: Arc<dyn ChannelStore> = Arc::new(SqliteChannelStore::new(database));
        let thread = ThreadKey { channel: "telegram", conversation: "family" };
        let exchange = Exchange { sender: "ann", question: "when is dinner?", answer: "At seven." };
        store.remember(thread, exchange, SystemTime::UNIX_EPOCH).unwrap();
        let now = SystemTime::now();
        let sender = SenderKey { channel: "telegram", sender: "eve" };
        let ends = now + Duration::from_secs(3_600);
        store.begin_pairing(NewPairing { sender, name: "Eve", code: "ABCDEFGH", ends }, now).unwrap();
        let rules = ReplyRules {
            agent: AgentPreference::Named("simple".to_owned()),
            trust: [("telegram:ann".to_owned(), Reach::Act)].into(),
            allow_from: vec!["slack:ben".to_owned()],
            messages_per_minute: 20,
            history: 10,
            key: None,
            pairing: BTreeSet::new(),
            transcription_model: None,
        };
        let parts = plain_parts(Arc::new(ScriptedEngine::saying(&["hi"])));
        let channels = ChannelService::new(ChannelOptions {
            gateway: Some(GatewayOptions { timeouts, ..GatewayOptions::new(gateway.url()) }),
            reply_rules: Some(rules),
            store: Some(store),
            // As in the program: pages follow these events.
            events: parts.bus.clone(),
            ..ChannelOptions::default()
        });
        let channels = Arc::new(channels.unwrap());
        let system = AskService::new(parts);
        let system = Arc::new(system.with_channels(Some(Arc::clone(&channels))));
        channels.listen(&(Arc::clone(&system) as Arc<dyn Ask>));
        let connected = async {
            while channels.report().status != ChannelStatus::Connected {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(WAIT_LIMIT, connected).await.unwrap();
        let http = TestServer::start_parts(system, loopback_config()).await;
        MessageServer { http, gateway }
    }
}

#[tokio::test]
async fn the_details_say_who_is_trusted() {
    let server = MessageServer::start().await;
    let (status, details) = get(&server.http, "/v1/channels/details", "").await;
    assert_fits(&document_of(&server.http).await, "ChannelDetails", &details);
    let expected = json!({
        "object": "channels",
        "channels": [{ "name": "gateway", "status": "connected", "address": server.gateway.url(), "message": null }],
        "answering": { "agent": "simple", "key": null, "messages_per_minute": 20, "history": 10 },
        "senders": [
            { "sender": "slack:ben", "trust": "pure", "memory": true },
            { "sender": "telegram:ann", "trust": "act", "memory": false },
        ],
        "waiting": [{
            "sender": "telegram:eve",
            "name": "Eve",
            "code": "ABCD-EFGH",
            "expires": details["waiting"][0]["expires"],
        }],
        "approved": [],
    });
    assert_eq!((status, details), (200, expected));
}

#[tokio::test]
async fn a_sender_is_approved_by_the_code_once() {
    let server = MessageServer::start().await;
    for (code, expected) in [(json!("AAAA-AAAA"), 400), (json!(7), 400), (json!("abcd-efgh"), 200)] {
        let (status, body) = post(&server.http, "/v1/channels/approve", "", json!({ "code": code })).await;
        assert_eq!(status, expected, "{body}");
        if status == 200 {
            assert_fits(&document_of(&server.http).await, "ApprovedSender", &body);
            assert_eq!((&body["sender"], &body["name"]), (&json!("telegram:eve"), &json!("Eve")));
        }
    }
    let (_, details) = get(&server.http, "/v1/channels/details", "").await;
    assert_eq!(
        (&details["waiting"], &details["approved"][0]["sender"]),
        (&json!([]), &json!("telegram:eve"))
    );
    let (status, _) = post(&server.http, "/v1/channels/approve", "", json!({ "code": "ABCD-EFGH" })).await;
    assert_eq!(status, 400, "it is used");
}

#[tokio::test]
async fn messages_in_and_out_are_listed_with_what_was_sent_from_here() {
    let server = MessageServer::start().await;
    let sent = json!({ "channel": "telegram", "content": "a test", "conversation_id": "family" });
    assert_eq!(post(&server.http, "/v1/channels/send", "", sent).await.0, 200);
    let (_, list) = get(&server.http, "/v1/channels/messages", "").await;
    assert_fits(&document_of(&server.http).await, "ChannelMessages", &list);
    let shown =
        |line: &Value| json!([line["direction"], line["sender"], line["conversation"], line["content"]]);
    let lines: Vec<Value> = list["data"].as_array().unwrap().iter().map(shown).collect();
    assert_eq!(
        lines,
        [
            json!(["out", null, "family", "a test"]),
            json!(["out", "ann", "family", "At seven."]),
            json!(["in", "ann", "family", "when is dinner?"]),
        ]
    );
    let (_, one) = get(&server.http, "/v1/channels/messages?limit=1", "").await;
    assert_eq!(one["data"].as_array().unwrap().len(), 1);
    let (status, error) = get(&server.http, "/v1/channels/messages?limit=201", "").await;
    assert_eq!((status, &error["error"]["param"]), (400, &json!("limit")));
}

#[tokio::test]
async fn without_channels_there_is_nothing_and_linking_says_why_it_fails() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("no-npm");
    let installer =
        WhatsappInstaller { npm: missing, ..WhatsappInstaller::new(directory.path().join("bridge")) };
    let program = WhatsappProgram {
        node: "node".into(),
        script: installer.script(),
        auth_dir: directory.path().join("session"),
    };
    let system = Arc::new(AskService::new(plain_parts(Arc::new(ScriptedEngine::saying(&["hi"])))));
    let linking = Some(Arc::new(WhatsappLinking::new(program, installer)));
    let parts = ServerParts { linking, ..ServerParts::from(system) };
    let server = TestServer::start_parts(parts, loopback_config()).await;
    let (_, details) = get(&server, "/v1/channels/details", "").await;
    let nothing = json!({ "object": "channels", "channels": [], "answering": null, "senders": [], "waiting": [], "approved": [] });
    assert_eq!(details, nothing);
    assert_eq!(get(&server, "/v1/channels/messages", "").await.1["data"], json!([]));

    let idle = json!({ "object": "channel_link", "enabled": false, "state": "idle", "code": null });
    assert_eq!(get(&server, "/v1/channels/whatsapp", "").await, (200, idle.clone()));
    let document = document_of(&server).await;
    let (status, begun) = post(&server, "/v1/channels/whatsapp", "", json!({})).await;
    assert_eq!(status, 200);
    assert_fits(&document, "ChannelLink", &begun);
    let failed = async {
        loop {
            let (_, report) = get(&server, "/v1/channels/whatsapp", "").await;
            if report["state"] == "failed" {
                break report;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let report = tokio::time::timeout(WAIT_LIMIT, failed).await.unwrap();
    assert_fits(&document, "ChannelLink", &report);
    assert!(report["message"].as_str().unwrap().contains("Install it"), "{report}");
    let cancelled = send(&server, Method::DELETE, "/v1/channels/whatsapp", "", None).await;
    assert_eq!(cancelled.json::<Value>().await.unwrap(), idle);
}

#[tokio::test]
async fn an_account_is_linked_from_this_machine_only_and_that_is_in_the_audit_log() {
    let directory = tempfile::tempdir().unwrap();
    let installer = WhatsappInstaller {
        npm: directory.path().join("no-npm"),
        ..WhatsappInstaller::new(directory.path().join("bridge"))
    };
    let program = WhatsappProgram {
        node: "node".into(),
        script: installer.script(),
        auth_dir: directory.path().join("session"),
    };
    let team = TeamParts::open();
    let linking = Some(Arc::new(WhatsappLinking::new(program, installer)));
    let parts = ServerParts { linking, ..team.of_server() };
    let server = TestServer::start_parts(parts, loopback_config()).await;
    let key = team.create("boss", KeyRole::Owner, json!({})).await;
    let link = |proxied: bool| {
        let request = server.client.post(server.url("/v1/channels/whatsapp")).bearer_auth(&key);
        if proxied { request.header("x-forwarded-for", "192.0.2.7") } else { request }
    };
    let refused = link(true).send().await.unwrap();
    assert_eq!(refused.status(), 403);
    let refused: Value = refused.json().await.unwrap();
    assert_eq!(refused["error"]["code"], "local_only");
    assert!(message(&refused).contains("hob channel login whatsapp"), "{refused}");
    let idle = json!({ "object": "channel_link", "enabled": false, "state": "idle", "code": null });
    assert_eq!(get(&server, "/v1/channels/whatsapp", &key).await, (200, idle), "nothing was started");

    assert_eq!(link(false).send().await.unwrap().status(), 200);
    let noted = team.keys.audit().after(0, 9).unwrap();
    let noted = noted.iter().map(|entry| (entry.event.action.as_str(), entry.event.subject.as_str()));
    let noted: Vec<(&str, &str)> = noted.filter(|(action, _)| action.starts_with("channel.")).collect();
    assert_eq!(noted, [("channel.link", "whatsapp")]);
}
