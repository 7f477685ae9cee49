//! The chat page in a browser.

mod accessibility;
mod answers;
mod attachments;
mod branches;
mod compare;
mod conversations;
mod documents;
mod list;
mod long_answers;
mod moving;
mod rating;
mod server;
mod settings;
mod smoothness;

use std::sync::Arc;

use hob_app::{AskService, AskServiceParts};
use hob_conversations::{ChatStore, SqliteConversationStore};
use hob_core::Engine;
use hob_db::Database;
use hob_server::ServerParts;
use hob_testkit::{FakeServer, Reply};
use serde_json::{Value, json};

use super::chromium::{Browser, Device};
use crate::client::chunk;
use crate::fixtures::loopback_config;
use crate::support::{TestServer, models, plain_parts};

const ENTER: &str = "\u{e007}";
const SHIFT: &str = "\u{e008}";
const ESCAPE: &str = "\u{e00c}";

fn words(text: &str) -> String {
    chunk(&json!({ "content": text }).to_string())
}

/// An OpenAI-compatible engine that gives the same answer to every question.
async fn engine_saying(reply: Reply) -> FakeServer {
    FakeServer::start(move |request| if request.method == "GET" { models() } else { reply.clone() }).await
}

/// These services, with chats in memory.
fn saving_chats(parts: impl Into<ServerParts>) -> ServerParts {
    let database = Database::in_memory(&[hob_conversations::MIGRATIONS]).unwrap();
    let chats: Arc<dyn ChatStore> = Arc::new(SqliteConversationStore::new(database));
    ServerParts { chats: Some(chats), ..parts.into() }
}

/// A server that saves chats.
async fn server_with(parts: AskServiceParts) -> TestServer {
    TestServer::start_parts(saving_chats(Arc::new(AskService::new(parts))), loopback_config()).await
}

pub(super) async fn server_for(engine: Arc<dyn Engine>) -> TestServer {
    server_with(plain_parts(engine)).await
}

/// What the server answers to `GET`.
async fn get(server: &TestServer, path: &str) -> Value {
    server.client.get(server.url(path)).send().await.unwrap().json().await.unwrap()
}

/// The only chat of the server, with all its turns.
async fn only_chat(server: &TestServer) -> Value {
    let list = get(server, "/v1/chats").await;
    assert_eq!(list["data"].as_array().map(Vec::len), Some(1), "{list}");
    get(server, &format!("/v1/chats/{}", list["data"][0]["id"].as_str().unwrap())).await
}

/// Errors of scripts and violations of the policy. Requests that the server refuses are not among them: a server without a memory refuses
/// to count it.
async fn script_errors(browser: &Browser) -> Vec<String> {
    let complaints = browser.complaints().await;
    complaints.into_iter().filter(|line| !line.contains("Failed to load resource")).collect()
}

async fn page_at(server: &TestServer, device: Device) -> Browser {
    let browser = Browser::open(device).await;
    browser.go(&server.url("/")).await;
    browser.shows("connection", "ready").await;
    browser
}

async fn write(browser: &Browser, text: &str) {
    browser.run("document.getElementById('question').focus()").await;
    browser.press(text).await;
}

async fn ask(browser: &Browser, question: &str) {
    write(browser, &format!("{question}{ENTER}")).await;
}

/// Clicks the visible button with this label, the last one if there are several.
async fn press_button(browser: &Browser, within: &str, label: &str) {
    let press = "const within = [...document.querySelectorAll({within} + ' button')];
        const found = within.findLast((one) => one.checkVisibility() && one.textContent.trim() === {label});
        if (!found) throw new Error('no button ' + {label});
        found.click();";
    let literal = |text: &str| Value::from(text).to_string();
    browser.run(&press.replace("{within}", &literal(within)).replace("{label}", &literal(label))).await;
}

/// Opens the menu of a conversation in the list, and chooses.
async fn choose_in_list(browser: &Browser, row: &str, label: &str) {
    let button = format!("#list {row} button");
    // The list is loaded beside the conversation.
    browser.until(&format!("document.querySelector({button:?}) !== null")).await;
    browser.click(&button).await;
    press_button(browser, "#choices-menu", label).await;
}

/// Chooses an option as a user does.
async fn select(browser: &Browser, id: &str, value: &str) {
    let choose = format!(
        "const choice = document.getElementById({id:?});
         choice.value = {value:?};
         choice.dispatchEvent(new Event('change'));
         return choice.value"
    );
    assert_eq!(browser.run(&choose).await, value);
}

/// Asks, and waits until the answer has ended, is rendered, and is saved.
async fn ask_and_wait(browser: &Browser, question: &str) {
    ask(browser, question).await;
    settled(browser).await;
}

/// Waits until no answer is under way, and everything is saved.
async fn settled(browser: &Browser) {
    let ended = "runs.size === 0 && document.querySelector('.message[data-state]') !== null && \
        [...document.querySelectorAll('.message[data-state]')].every((one) => one.ariaBusy === 'false')";
    browser.until(ended).await;
    browser.run_async("chat.queue.then(arguments[0])").await;
}

async fn count(browser: &Browser, selector: &str) -> Value {
    browser.run(&format!("return document.querySelectorAll({selector:?}).length")).await
}

/// The state of the last answer: `running`, `elsewhere`, `missing`, or how it ended.
async fn state(browser: &Browser) -> Value {
    browser.run("return document.querySelector('.message:last-child').dataset.state").await
}

/// Waits until the last answer has this state and is rendered.
async fn becomes(browser: &Browser, state: &str) {
    let selector = format!(".message:last-child[data-state={state}][aria-busy=false]");
    browser.until(&format!("document.querySelector({selector:?}) !== null")).await;
}
