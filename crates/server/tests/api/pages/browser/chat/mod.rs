//! The chat page in a browser.

mod accessibility;
mod answers;
mod conversations;
mod long_answers;
mod rating;
mod server;

use hob_testkit::{FakeServer, Reply};
use serde_json::{Value, json};

use super::chromium::{Browser, Device};
use crate::client::chunk;
use crate::support::{TestServer, models};

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

async fn page_at(server: &TestServer, device: Device) -> Browser {
    let browser = Browser::open(device).await;
    browser.go(&server.url("/")).await;
    browser.shows("pulse", "ready").await;
    browser
}

async fn write(browser: &Browser, text: &str) {
    browser.run("document.getElementById('question').focus()").await;
    browser.press(text).await;
}

async fn ask(browser: &Browser, question: &str) {
    write(browser, &format!("{question}{ENTER}")).await;
}

async fn click(browser: &Browser, selector: &str) {
    browser.run(&format!("document.querySelector({selector:?}).click()")).await;
}

async fn count(browser: &Browser, selector: &str) -> Value {
    browser.run(&format!("return document.querySelectorAll({selector:?}).length")).await
}

/// The state of the last answer: `running`, `complete`, `stopped` or `broken`.
async fn state(browser: &Browser) -> Value {
    browser.run("return document.querySelector('.message:last-child').dataset.state").await
}

/// Waits until a condition of the page holds, and returns its value.
async fn until(browser: &Browser, condition: &str) -> Value {
    let wait = "const done = arguments[0];
        const look = () => { const found = {condition}; if (found) done(found); else setTimeout(look, 20); };
        look();";
    browser.run_async(&wait.replace("{condition}", condition)).await
}

/// Waits until the last answer has this state and is rendered.
async fn becomes(browser: &Browser, state: &str) {
    let selector = format!(".message:last-child[data-state={state}][aria-busy=false]");
    until(browser, &format!("document.querySelector({selector:?}) !== null")).await;
}
