//! What clients do with a server that may end at any moment, and what it has acknowledged.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hob_testkit::{FakeServer, Gateway, GatewayScript};
use reqwest::Method;
use serde_json::{Value, json};

use super::client::Client;
use crate::replicas::engine::{EngineLog, NOTE, SAVED, prompt};

/// The subjects of what is asked.
pub const TASK: &str = "taskq";
pub const MESSAGE: &str = "messageq";

/// The words by which documents are found.
pub const DOCUMENT: &str = "bakery4711";
pub const NOTED: &str = "heron4712";

/// Everything that the server has confirmed.
#[derive(Debug, Default, Clone)]
pub struct Acknowledged {
    /// The id of a chat, of its turn, and whether the answer is saved.
    pub chat: Option<String>,
    pub turn: Option<String>,
    pub has_answer: bool,
    pub conversation: Option<String>,
    pub background: Option<String>,
    pub task: Option<String>,
    pub has_run: bool,
    pub key: Option<String>,
    /// Tokens that the key has used.
    pub spent: u64,
    pub has_setting: bool,
    pub has_document: bool,
    pub has_note: bool,
}

/// Shared by the work, which may be dropped at any moment, and the check after it.
#[derive(Default)]
pub struct Ledger(Mutex<Acknowledged>);

impl Ledger {
    pub fn read(&self) -> Acknowledged {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Acknowledged> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The engine and the gateway, which outlive the server.
pub struct Surroundings {
    pub engines: EngineLog,
    pub engine: FakeServer,
    pub gateway: Gateway,
}

impl Surroundings {
    pub async fn start() -> Self {
        let engines = EngineLog::default();
        let engine = engines.start(0).await;
        Surroundings { engines, engine, gateway: Gateway::start(GatewayScript::default()).await }
    }

    pub fn config(&self) -> String {
        super::config(&self.engine.url(), &self.gateway.url())
    }
}

/// One of everything that a server stores. Returns `None` if the server ends first.
pub async fn work(client: &Client, gateway: &Gateway, ledger: &Ledger) -> Option<()> {
    let id = |created: &Value| created["id"].as_str().expect("an id").to_owned();
    let post = Method::POST;
    let chat = id(&client.created(post.clone(), "/v1/chats", &json!({})).await?);
    ledger.lock().chat = Some(chat.clone());
    let question = json!({ "parent": null, "question": { "text": "Why?" } });
    let turn = id(&client.created(post.clone(), &format!("/v1/chats/{chat}/turns"), &question).await?);
    ledger.lock().turn = Some(turn.clone());
    let answer = json!({ "text": "Because.", "model": "smollm2", "ending": "complete" });
    client.created(Method::PUT, &format!("/v1/chats/{chat}/turns/{turn}/answer"), &answer).await?;
    ledger.lock().has_answer = true;

    let items = json!({ "items": [{ "type": "message", "role": "user", "content": "Hello" }] });
    let conversation = client.created(post.clone(), "/v1/conversations", &items).await?;
    ledger.lock().conversation = Some(id(&conversation));
    let asked =
        json!({ "model": "default", "input": prompt("responseq"), "background": true, "store": true });
    let background = client.created(post.clone(), "/v1/responses", &asked).await?;
    ledger.lock().background = Some(id(&background));

    let task = json!({ "schedule_type": "interval", "schedule_value": 3600, "prompt": prompt(TASK) });
    let task = id(&client.created(post.clone(), "/v1/tasks", &task).await?);
    ledger.lock().task = Some(task.clone());
    client.created(post, &format!("/v1/tasks/{task}/run"), &json!({})).await?;
    ledger.lock().has_run = true;

    spend(client, ledger).await?;
    let change = json!({ "settings": { "memory.chunk_size": 300 } });
    client.created(Method::PATCH, "/v1/settings", &change).await?;
    ledger.lock().has_setting = true;

    let uploaded = client.upload("bakery.md", &format!("The {DOCUMENT} opens at seven.")).await?;
    assert!(uploaded.is_success(), "{uploaded:?}");
    ledger.lock().has_document = true;
    note(client, ledger).await?;

    gateway.opened(1).await;
    gateway.push(message(0, MESSAGE));
    answered(gateway, 0).await;
    Some(())
}

/// Asks with a key that has a budget.
async fn spend(client: &Client, ledger: &Ledger) -> Option<()> {
    let key = json!({ "name": "ana", "budgets": ["100000 tokens/month"] });
    let created = client.created(Method::POST, "/v1/keys", &key).await?;
    let secret = created["secret"].as_str().expect("a secret").to_owned();
    ledger.lock().key = Some(secret.clone());
    // More than the engine reports as used, so that the budget is never overdrawn.
    let messages = json!([{ "role": "user", "content": prompt("budgetq") }]);
    let asked = json!({ "model": "default", "agent": "none", "max_tokens": 2000, "messages": messages });
    let answer =
        client.send_as(Some(secret.as_str()), Method::POST, "/v1/chat/completions", Some(&asked)).await?;
    assert!(answer.is_success(), "{answer:?}");
    ledger.lock().spent = answer.body["usage"]["total_tokens"].as_u64().expect("a number");
    Some(())
}

/// Lets an agent save a note.
async fn note(client: &Client, ledger: &Ledger) -> Option<()> {
    let words = format!("{NOTE}The {NOTED} stands in the reeds.");
    let messages = json!([{ "role": "user", "content": prompt(&words) }]);
    let asked = json!({ "model": "default", "agent": "orchestrator", "messages": messages });
    let answer = client.created(Method::POST, "/v1/chat/completions", &asked).await?;
    ledger.lock().has_note = answer["choices"][0]["message"]["content"] == SAVED;
    Some(())
}

/// A message, each in a conversation of its own.
pub fn message(number: usize, subject: &str) -> String {
    json!({
        "channel": "telegram", "sender": "s", "content": prompt(subject), "message_id": number.to_string(),
        "conversation_id": format!("c{number}"),
    })
    .to_string()
}

/// The answers to a message among these frames.
pub fn answers(frames: &[Value], number: usize) -> Vec<&Value> {
    let conversation = format!("c{number}");
    frames.iter().filter(|frame| frame["conversation_id"] == conversation.as_str()).collect()
}

/// Waits until a message is answered.
pub async fn answered(gateway: &Gateway, number: usize) {
    let mut frames = gateway.frames();
    while answers(&frames, number).is_empty() {
        frames = gateway.received(frames.len() + 1).await;
    }
}
