//! Conversations are saved, changed and deleted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hob_core::Role;
use hob_engines::Style;
use hob_testkit::{FakeServer, Hold, Reply, ScriptedEngine};
use serde_json::json;

use super::{ENTER, ESCAPE, ask, becomes, click, count, page_at, until, words, write};
use crate::pages::browser::axe::assert_accessible;
use crate::pages::browser::chromium::Device;
use crate::support::{FINISH, TestServer, engine_at, models};

#[tokio::test]
async fn conversations_survive_a_reload_and_can_be_deleted() {
    let engine = Arc::new(ScriptedEngine::saying(&["Because of ", "*air*."]));
    let server = TestServer::start(Arc::clone(&engine) as _).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    ask(&browser, "Why is the sky blue?").await;
    becomes(&browser, "complete").await;
    ask(&browser, "And the sea?").await;
    until(&browser, "document.querySelectorAll('[data-state=complete]').length === 2").await;
    let heard: Vec<(Role, String)> = engine
        .requests()
        .pop()
        .unwrap()
        .messages
        .into_iter()
        .map(|message| (message.role, message.content.text().to_string()))
        .collect();
    let turn = |role, text: &str| (role, text.to_owned());
    assert_eq!(
        heard,
        [
            turn(Role::User, "Why is the sky blue?"),
            turn(Role::Assistant, "Because of *air*."),
            turn(Role::User, "And the sea?")
        ]
    );

    browser.reload().await;
    browser.shows("list", "Why is the sky blue?").await;
    browser.shows("thread", "And the sea?").await;
    assert_eq!(count(&browser, ".answer em").await, 2);

    click(&browser, "#new").await;
    browser.shows("empty", "What is on your mind?").await;
    ask(&browser, "Something else").await;
    becomes(&browser, "complete").await;
    assert_eq!(count(&browser, "#list li").await, 2);

    // Deletes the older one, restores it, and opens it again.
    click(&browser, "#list li:last-child button").await;
    browser.shows("undo", "Deleted: Why is the sky blue?").await;
    assert_eq!(count(&browser, "#list li").await, 1);
    click(&browser, "#undo-button").await;
    browser.shows("thread", "And the sea?").await;
    assert_eq!(count(&browser, "#list li").await, 2);
    click(&browser, "#list li:last-child button").await;
    browser.reload().await;
    browser.shows("list", "Something else").await;
    assert_eq!(count(&browser, "#list li").await, 1);
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn editing_the_last_question_removes_its_answer() {
    let engine = Arc::new(ScriptedEngine::saying(&["Because:\n\n```sh\nls -l\n```\n"]));
    let server = TestServer::start(Arc::clone(&engine) as _).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    ask(&browser, "Why is the sky gren?").await;
    becomes(&browser, "complete").await;
    click(&browser, ".user .actions > button:last-child").await;
    browser.shows("editing", "Editing the last question").await;
    browser.press(ESCAPE).await;
    assert_eq!(browser.text("editing").await, "");

    // The draft returns when editing ends.
    let written = "return document.getElementById('question').value";
    write(&browser, "A draft").await;
    click(&browser, ".user .actions > button:last-child").await;
    assert_eq!(browser.run(written).await, "Why is the sky gren?");
    browser.press(ESCAPE).await;
    assert_eq!(browser.run(written).await, "A draft");
    click(&browser, ".user .actions > button:last-child").await;
    write(&browser, &format!("{}blue?{ENTER}", "\u{e003}".repeat(5))).await;
    browser.shows("thread", "Why is the sky blue?").await;
    becomes(&browser, "complete").await;
    assert_eq!(count(&browser, ".message").await, 2);
    assert_eq!(engine.requests().pop().unwrap().messages.len(), 1);
    assert_eq!(browser.run(written).await, "A draft");

    // What is copied to the clipboard and written to a file.
    browser
        .run(
            "window.taken = [];
             Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (text) => { taken.push(text); } } });
             URL.createObjectURL = (blob) => { blob.text().then((text) => taken.push(text)); return 'blob:x'; };
             HTMLAnchorElement.prototype.click = function () { taken.push(this.download); };",
        )
        .await;
    click(&browser, ".code button").await;
    browser.shows("thread", "Copied").await;
    click(&browser, ".message:last-child .actions button").await;
    click(&browser, "#export").await;
    let taken = until(&browser, "taken.length === 4 && taken").await;
    let answer = "Because:\n\n```sh\nls -l\n```\n";
    let file =
        format!("# Why is the sky blue?\n\n## You\n\nWhy is the sky blue?\n\n## Hob (m)\n\n{answer}\n");
    assert_eq!(taken, json!(["ls -l", answer, "why-is-the-sky-blue.md", file]));
}

#[tokio::test]
async fn an_answer_that_another_tab_receives_does_not_look_broken() {
    let hold = Hold::new();
    let held = hold.clone();
    let asked = AtomicUsize::new(0);
    let fake = FakeServer::start(move |request| {
        if request.method == "GET" {
            return models();
        }
        match asked.fetch_add(1, Ordering::Relaxed) {
            0 => Reply::sse(words("It is bl")).then_held(&held, words("ue.") + FINISH),
            _ => Reply::sse(words("Because")).then_silence(),
        }
    })
    .await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    ask(&browser, "What colour is the sky?").await;
    browser.shows("thread", "It is bl").await;
    let address = browser.run("return location.href").await.as_str().unwrap().to_owned();

    let writing = browser.open_tab().await;
    browser.go(&address).await;
    browser.shows("pulse", "ready").await;
    browser.shows("thread", "Being answered in another tab.").await;
    let again = "return [...document.querySelectorAll('.message button')].filter((one) => one.checkVisibility()).map((one) => one.textContent)";
    assert_eq!(browser.run(again).await, json!(["Copy"]), "of the question");
    ask(&browser, "And at night?").await;
    browser.shows("hint", "being answered in another tab").await;
    assert_accessible(&browser, "with an answer of another tab").await;
    hold.release();
    becomes(&browser, "complete").await;
    browser.shows("thread", "It is blue.").await;

    // The other tab continues, is visible here, and closes.
    let watching = browser.turn_to(writing).await;
    ask(&browser, "Why?").await;
    browser.shows("thread", "Because").await;
    let writing = browser.turn_to(watching).await;
    browser.shows("thread", "Being answered in another tab.").await;
    let watching = browser.turn_to(writing).await;
    browser.go(&server.url("/dashboard")).await;
    browser.turn_to(watching).await;
    becomes(&browser, "broken").await;
    browser.shows("thread", "The page was closed before the answer ended.").await;
    let buttons = browser.run(again).await;
    assert!(buttons.as_array().unwrap().contains(&json!("Retry")), "{buttons}");
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn full_browser_storage_is_reported_and_the_chat_continues() {
    let server = TestServer::start(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    browser
        .run(
            "for (let size = 1 << 22, number = 0; size >= 1; ) {
                 try { localStorage.setItem(`filler ${number++}`, 'x'.repeat(size)); } catch { size = Math.floor(size / 2); }
             }",
        )
        .await;
    ask(&browser, "Is there room?").await;
    becomes(&browser, "complete").await;
    browser.shows("full", "storage is full").await;
    browser.shows("thread", "hi").await;
    browser.run("for (const key of Object.keys(localStorage)) if (key.startsWith('filler')) localStorage.removeItem(key)").await;
    ask(&browser, "And now?").await;
    until(&browser, "document.querySelectorAll('[data-state=complete]').length === 2").await;
    assert_eq!(browser.text("full").await, "");
    assert_eq!(count(&browser, "#list li").await, 1);
}
