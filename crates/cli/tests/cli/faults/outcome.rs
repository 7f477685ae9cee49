//! What must be true after a fault, once the server runs again. Each check returns what is wrong.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use hob_testkit::old_database::damage;
use reqwest::Method;
use serde_json::{Value, json};

use super::acknowledged::{
    Acknowledged, DOCUMENT, MESSAGE, NOTED, Surroundings, TASK, answered, answers, message,
};
use super::client::Client;
use crate::home::Home;
use crate::running::Running;

/// How long the server may take for what it continues after its start. Only a failure takes as long.
const LIMIT: Duration = Duration::from_secs(60);

/// What a fault may take of what was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// All of it is there.
    All,
    /// Conversations and responses of the API may lose about a second, as documented.
    AllButTheLastSecond,
}

/// Starts the server again, and compares what it has with what was acknowledged.
pub async fn check(
    home: &Home,
    surroundings: &Surroundings,
    known: &Acknowledged,
    promise: Promise,
) -> Vec<String> {
    let arguments = ["serve", "--port", "0"];
    let server = match Running::try_of(home.hob(&arguments)).await {
        Ok(server) => server,
        Err(complaint) => return vec![format!("the next start fails: {complaint}")],
    };
    let client = Client::of(server.address());
    let mut wrong = saved(&client, known, promise).await;
    wrong.extend(once(&client, surroundings, known).await);
    wrong.extend(found(&client, known).await);
    let ended = server.terminate().await;
    if ended.code != Some(0) {
        wrong.push(format!("the server does not stop: {ended:?}"));
    }
    if known.has_setting {
        let text = std::fs::read_to_string(home.config_file()).unwrap_or_default();
        if !text.contains("chunk_size = 300") {
            wrong.push(format!("the setting is lost:\n{text}"));
        }
    }
    wrong.extend(records(home).await);
    wrong.extend(databases(home.directory()));
    wrong
}

/// What is read by its id.
async fn saved(client: &Client, known: &Acknowledged, promise: Promise) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut paths = Vec::new();
    if let Some(id) = &known.chat {
        paths.push(format!("/v1/chats/{id}"));
    }
    if let Some(id) = &known.task {
        paths.push(format!("/v1/tasks/{id}"));
    }
    if promise == Promise::All {
        paths.extend(known.conversation.iter().map(|id| format!("/v1/conversations/{id}")));
        paths.extend(known.background.iter().map(|id| format!("/v1/responses/{id}")));
    }
    for path in paths {
        if let Err(error) = client.get(&path).await {
            wrong.push(error);
        }
    }
    if let (Some(chat), Some(_)) = (&known.chat, &known.turn) {
        let chat = client.get(&format!("/v1/chats/{chat}")).await.unwrap_or_default();
        let turn = &chat["data"][0];
        if turn["question"]["text"] != "Why?" || known.has_answer && turn["answer"]["text"] != "Because." {
            wrong.push(format!("the turn is {turn}"));
        }
    }
    if let Some(secret) = &known.key {
        let own = client.send_as(Some(secret.as_str()), Method::GET, "/v1/keys/self", None).await;
        if own.as_ref().is_none_or(|answer| answer.status != 200) {
            wrong.push(format!("the key is lost: {own:?}"));
        }
        let shown = client.get("/v1/keys/ana").await.unwrap_or_default();
        let used = shown["usage"][0]["used"].as_u64();
        if used.is_none_or(|used| used < known.spent) {
            wrong.push(format!("{used:?} tokens count, but {} were used", known.spent));
        }
    }
    wrong
}

/// What must not happen twice: the run of a task and the answer to a message.
async fn once(client: &Client, surroundings: &Surroundings, known: &Acknowledged) -> Vec<String> {
    let mut wrong = Vec::new();
    if let Some(task) = known.task.as_ref().filter(|_| known.has_run) {
        let logs = client.get(&format!("/v1/tasks/{task}/logs")).await.unwrap_or_default();
        let runs = logs["logs"].as_array().map_or(0, Vec::len);
        if runs != 1 {
            wrong.push(format!("one run was acknowledged, and there are {runs}: {logs}"));
        }
    }
    let calls = surroundings.engines.calls();
    if calls.iter().filter(|call| call.subject == TASK).count() > 1 {
        wrong.push(format!("the task ran twice: {calls:?}"));
    }
    // The gateway sends the message again, because it cannot know whether it arrived, and then a new one.
    let gateway = &surroundings.gateway;
    let talk = async {
        gateway.opened(gateway.connections_so_far().max(1)).await;
        let mut connections = gateway.connections_so_far();
        gateway.push(message(0, MESSAGE));
        gateway.push(message(1, "nextq"));
        // The connection of the server that ended may have been the last one so far.
        loop {
            tokio::select! {
                () = answered(gateway, 1) => return,
                () = gateway.opened(connections + 1) => {
                    connections = gateway.connections_so_far();
                    gateway.push(message(0, MESSAGE));
                    gateway.push(message(1, "nextq"));
                }
            }
        }
    };
    if tokio::time::timeout(LIMIT, talk).await.is_err() {
        wrong.push("a message is not answered".to_owned());
    }
    let frames = gateway.frames();
    let repeated = answers(&frames, 0);
    if repeated.len() > 1 {
        wrong.push(format!("a message is answered twice: {repeated:?}"));
    }
    wrong
}

/// Documents, which may be indexed after the start.
async fn found(client: &Client, known: &Acknowledged) -> Vec<String> {
    let words = [(DOCUMENT, known.has_document), (NOTED, known.has_note)];
    let mut wrong = Vec::new();
    for (word, _) in words.iter().filter(|(_, is_known)| *is_known) {
        let find = async {
            loop {
                let query = json!({ "query": word });
                let answer = client.send(Method::POST, "/v1/memory/search", Some(&query)).await;
                if answer.is_some_and(|answer| answer.body.to_string().contains(word)) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if tokio::time::timeout(LIMIT, find).await.is_err() {
            wrong.push(format!("'{word}' is not found"));
        }
    }
    wrong
}

/// No call is recorded twice. The engine reports its number as the tokens of the prompt.
async fn records(home: &Home) -> Vec<String> {
    let ran = home.run(&["telemetry", "export"]).await;
    let Ok(records) = serde_json::from_str::<Vec<Value>>(&ran.stdout) else {
        return vec![format!("no records: {ran:?}")];
    };
    let mut numbers = BTreeSet::new();
    let twice = records.iter().find(|record| !numbers.insert(record["prompt_tokens"].as_u64()));
    twice.map(|record| format!("a call is recorded twice: {record}")).into_iter().collect()
}

/// SQLite finds no damage.
pub fn databases(home: &Path) -> Vec<String> {
    let mut wrong = Vec::new();
    for name in ["hob.db", "memory.db"] {
        let path = home.join(name);
        if path.exists() && damage(&path) != ["ok"] {
            wrong.push(format!("{name} is damaged: {:?}", damage(&path)));
        }
    }
    wrong
}
