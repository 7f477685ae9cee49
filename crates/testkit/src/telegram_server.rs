//! A Bot API of Telegram on a real socket: its updates, its messages and its errors, as its documentation describes them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{FakeServer, Hold, Recorded, Reply};

/// The token that the server accepts.
pub const TELEGRAM_TOKEN: &str = "123456:TEST-token_abcdefgh";

/// The longest text of a message, in UTF-16 units.
const MAX_UNITS: usize = 4_096;

/// The server. It stops with its value.
pub struct TelegramServer {
    server: FakeServer,
    state: Arc<Mutex<State>>,
    /// Counts the requests.
    changes: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    /// Updates that are not confirmed.
    updates: Vec<Value>,
    last_update: i64,
    last_message: i64,
    /// Chat, number and text, as people see them.
    messages: Vec<(i64, i64, String)>,
    files: HashMap<String, Vec<u8>>,
    /// Methods with the bodies of their requests, oldest first.
    calls: Vec<(String, Value)>,
    /// Answers to the next requests of a method.
    failures: Vec<(String, u16, Value)>,
    /// Where a request that waits for updates stands.
    waiting: Hold,
}

impl TelegramServer {
    pub async fn start() -> Self {
        let state: Arc<Mutex<State>> = Arc::default();
        let changes = watch::Sender::new(0);
        let (shared, counter) = (Arc::clone(&state), changes.clone());
        let server = FakeServer::start(move |request| {
            let reply = lock(&shared).answer(request);
            counter.send_modify(|count| *count += 1);
            reply
        })
        .await;
        TelegramServer { server, state, changes }
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    /// The section of a configuration file that connects to this server.
    pub fn config(&self) -> String {
        format!(
            "[channel.telegram]\nenabled = true\ntoken = \"{TELEGRAM_TOKEN}\"\napi_url = \"{}\"\n",
            self.url()
        )
    }

    /// A person writes to the bot. The fields of `message` are added to those of a direct message.
    pub fn push(&self, person: i64, message: &Value) {
        let mut state = lock(&self.state);
        state.last_update += 1;
        state.last_message += 1;
        let mut whole = json!({
            "message_id": state.last_message,
            "date": 1_700_000_000,
            "from": { "id": person, "is_bot": false, "first_name": "Ann" },
            "chat": { "id": person, "type": "private", "first_name": "Ann" },
        });
        for (name, value) in message.as_object().into_iter().flatten() {
            whole[name] = value.clone();
        }
        let update = json!({ "update_id": state.last_update, "message": whole });
        state.updates.push(update);
        std::mem::take(&mut state.waiting).release();
    }

    /// A file that messages can name by its id.
    pub fn add_file(&self, file_id: &str, bytes: &[u8]) {
        lock(&self.state).files.insert(file_id.to_owned(), bytes.to_vec());
    }

    /// The next request of `method` fails. `extra` is added to the answer.
    pub fn fail_next(&self, method: &str, status: u16, extra: Value) {
        lock(&self.state).failures.push((method.to_owned(), status, extra));
    }

    /// The bodies of the requests of `method` so far.
    pub fn calls(&self, method: &str) -> Vec<Value> {
        let state = lock(&self.state);
        state.calls.iter().filter(|(called, _)| called == method).map(|(_, body)| body.clone()).collect()
    }

    /// The texts that people see in a chat.
    pub fn shown(&self, chat: i64) -> Vec<String> {
        let state = lock(&self.state);
        state.messages.iter().filter(|(place, ..)| *place == chat).map(|(.., text)| text.clone()).collect()
    }

    /// Waits until `is_so`.
    pub async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        let mut changes = self.changes.subscribe();
        while !is_so(self) {
            changes.changed().await.expect("the server runs");
        }
    }

    /// Waits until a chat shows exactly these texts.
    pub async fn until_shown(&self, chat: i64, texts: &[&str]) {
        self.until(|server| server.shown(chat) == texts).await;
    }

    /// The number of updates that are not confirmed.
    pub fn unconfirmed(&self) -> usize {
        lock(&self.state).updates.len()
    }
}

impl State {
    fn answer(&mut self, request: &Recorded) -> Reply {
        if let Some(path) = request.path.strip_prefix(&format!("/file/bot{TELEGRAM_TOKEN}/files/")) {
            return match self.files.get(path) {
                Some(bytes) => Reply::new(200, "application/octet-stream", bytes.clone()),
                None => refused(404, "Not Found"),
            };
        }
        let Some(method) = request.path.strip_prefix(&format!("/bot{TELEGRAM_TOKEN}/")) else {
            return refused(401, "Unauthorized");
        };
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        self.calls.push((method.to_owned(), body.clone()));
        if let Some(place) = self.failures.iter().position(|(failing, ..)| failing == method) {
            let (_, status, extra) = self.failures.remove(place);
            return refused_with(status, "the test wants it", &extra);
        }
        match method {
            "getMe" => {
                done(json!({ "id": 123_456, "is_bot": true, "first_name": "Hob", "username": "HobBot" }))
            }
            "getUpdates" => self.get_updates(&body),
            "sendMessage" => self.send_message(&body),
            "editMessageText" => self.edit_message(&body),
            "sendChatAction" => done(json!(true)),
            "getFile" => self.get_file(&body),
            _ => refused(404, "Not Found"),
        }
    }

    fn get_updates(&mut self, body: &Value) -> Reply {
        if let Some(offset) = body["offset"].as_i64() {
            self.updates.retain(|update| update["update_id"].as_i64().is_some_and(|id| id >= offset));
        }
        if self.updates.is_empty() && body["timeout"].as_i64().unwrap_or_default() > 0 {
            let nothing = json!({ "ok": true, "result": [] }).to_string();
            return Reply::json(200, "").then_held(&self.waiting, nothing);
        }
        done(json!(self.updates))
    }

    fn send_message(&mut self, body: &Value) -> Reply {
        let (Some(chat), Some(text)) = (body["chat_id"].as_i64(), body["text"].as_str()) else {
            return refused(400, "Bad Request: chat not found");
        };
        if let Some(problem) = problem_of(text) {
            return refused(400, problem);
        }
        self.last_message += 1;
        self.messages.push((chat, self.last_message, text.to_owned()));
        done(
            json!({ "message_id": self.last_message, "date": 1_700_000_000, "chat": { "id": chat }, "text": text }),
        )
    }

    fn edit_message(&mut self, body: &Value) -> Reply {
        let (chat, number) = (body["chat_id"].as_i64(), body["message_id"].as_i64());
        let text = body["text"].as_str().unwrap_or_default();
        if let Some(problem) = problem_of(text) {
            return refused(400, problem);
        }
        let mut messages = self.messages.iter_mut();
        match messages.find(|(place, id, _)| (Some(*place), Some(*id)) == (chat, number)) {
            None => refused(400, "Bad Request: message to edit not found"),
            Some((.., before)) if before == text => refused(
                400,
                "Bad Request: message is not modified: specified new message content and reply markup are exactly the same",
            ),
            Some((.., before)) => {
                text.clone_into(before);
                done(json!({ "message_id": number }))
            }
        }
    }

    fn get_file(&self, body: &Value) -> Reply {
        let id = body["file_id"].as_str().unwrap_or_default();
        match self.files.get(id) {
            None => refused(400, "Bad Request: invalid file_id"),
            Some(bytes) if bytes.len() > 20 << 20 => refused(400, "Bad Request: file is too big"),
            Some(bytes) => {
                done(json!({ "file_id": id, "file_size": bytes.len(), "file_path": format!("files/{id}") }))
            }
        }
    }
}

/// What is wrong with a text.
fn problem_of(text: &str) -> Option<&'static str> {
    if text.trim().is_empty() {
        Some("Bad Request: message text is empty")
    } else if text.encode_utf16().count() > MAX_UNITS {
        Some("Bad Request: message is too long")
    } else {
        None
    }
}

fn done(result: Value) -> Reply {
    Reply::json(200, json!({ "ok": true, "result": result }).to_string())
}

fn refused(status: u16, description: &str) -> Reply {
    refused_with(status, description, &Value::Null)
}

fn refused_with(status: u16, description: &str, extra: &Value) -> Reply {
    let mut body = json!({ "ok": false, "error_code": status, "description": description });
    for (name, value) in extra.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    Reply::json(status, body.to_string())
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
