//! Conversations are saved on the server, shown in every tab, and deleted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hob_core::Role;
use hob_engines::Style;
use hob_testkit::{FakeServer, Hold, Reply, ScriptedEngine};
use serde_json::{Value, json};

use super::{
    ask, ask_and_wait, becomes, choose_in_list, count, get, only_chat, page_at, script_errors, server_for,
    words,
};
use crate::pages::browser::axe::assert_accessible;
use crate::pages::browser::chromium::{Browser, Device};
use crate::support::{FINISH, TestServer, engine_at, models};

#[tokio::test]
async fn conversations_survive_a_reload_and_can_be_deleted() {
    let engine = Arc::new(ScriptedEngine::saying(&["Because of ", "*air*."]));
    let server = server_for(Arc::clone(&engine) as _).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    ask_and_wait(&browser, "Why is the sky blue?").await;
    ask_and_wait(&browser, "And the sea?").await;
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
    browser.until("document.querySelectorAll('.answer em').length === 2").await;

    browser.click("#new").await;
    browser.shows("empty", "What is on your mind?").await;
    ask_and_wait(&browser, "Something else").await;
    browser.until("document.querySelectorAll('#list li').length === 2").await;

    // Deletes the older one, restores it, and opens it again.
    choose_in_list(&browser, "li:last-child", "Delete").await;
    browser.shows("undo", "Deleted: Why is the sky blue?").await;
    assert_eq!(count(&browser, "#list li").await, 1);
    browser.click("#undo-button").await;
    browser.shows("thread", "And the sea?").await;
    assert_eq!(count(&browser, "#list li").await, 2);
    // A page that is closed deletes at once.
    choose_in_list(&browser, "li:last-child", "Delete").await;
    browser.reload().await;
    browser.shows("list", "Something else").await;
    browser.until("document.querySelectorAll('#list li').length === 1").await;
    assert_eq!(only_chat(&server).await["title"], "Something else");
    // So does the next question.
    choose_in_list(&browser, "li", "Delete").await;
    ask_and_wait(&browser, "The last one").await;
    assert_eq!(browser.text("undo").await, "");
    browser.until("document.querySelector('#list a span')?.textContent === 'The last one'").await;
    browser.until("document.querySelectorAll('#list li').length === 1").await;
    assert_eq!(only_chat(&server).await["title"], "The last one");
    assert_eq!(script_errors(&browser).await, Vec::<String>::new());
}

#[tokio::test]
async fn the_conversation_that_is_chosen_last_is_shown() {
    let server = server_for(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    ask_and_wait(&browser, "First").await;
    let first = only_chat(&server).await["id"].as_str().unwrap().to_owned();
    browser.click("#new").await;
    ask_and_wait(&browser, "Second").await;
    browser.until("document.querySelectorAll('#list li').length === 2").await;
    browser.hold_answers("GET", &format!("v1/chats/{first}")).await;
    browser.click(&format!("#list a[href='#{first}']")).await;
    browser.an_answer_is_held().await;
    // Back to the one that is shown.
    browser.click("#list a[aria-current=page]").await;
    browser.until("location.hash === `#${chat.id}`").await;
    browser.release_answers().await;
    assert_eq!(browser.text("title").await, "Second");
    browser.shows("thread", "Second").await;
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
    let server = server_for(engine_at(&fake, Style::VLLM)).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    ask(&browser, "What colour is the sky?").await;
    browser.shows("thread", "It is bl").await;
    let address = browser.run("return location.href").await.as_str().unwrap().to_owned();

    let writing = browser.open_tab().await;
    browser.go(&address).await;
    browser.shows("connection", "ready").await;
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
    browser.bring_to_front().await;
    ask(&browser, "Why?").await;
    browser.shows("thread", "Because").await;
    let writing = browser.turn_to(watching).await;
    browser.bring_to_front().await;
    browser.shows("thread", "Being answered in another tab.").await;
    let watching = browser.turn_to(writing).await;
    browser.bring_to_front().await;
    browser.go(&server.url("/dashboard")).await;
    browser.turn_to(watching).await;
    browser.bring_to_front().await;
    becomes(&browser, "failed").await;
    browser.shows("thread", "The page was closed before the answer ended.").await;
    let buttons = browser.run(again).await;
    assert!(buttons.as_array().unwrap().contains(&json!("Retry")), "{buttons}");
    assert_eq!(script_errors(&browser).await, Vec::<String>::new());
}

/// On a narrow screen the list is hidden until its button is pressed.
async fn show_list(browser: &Browser) {
    browser.run("if (document.getElementById('menu').checkVisibility()) openList()").await;
}

async fn tabs_agree_on(device: Device) {
    let server = server_for(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let browser = page_at(&server, device).await;
    ask_and_wait(&browser, "Hello").await;
    let address = browser.run("return location.href").await.as_str().unwrap().to_owned();
    let first = browser.open_tab().await;
    browser.bring_to_front().await;
    browser.set_device(device).await;
    browser.go(&address).await;
    browser.shows("thread", "Hello").await;
    ask_and_wait(&browser, "And more").await;
    show_list(&browser).await;
    choose_in_list(&browser, "li", "Pin").await;
    browser.shows("list", "Pinned").await;

    let second = browser.turn_to(first).await;
    browser.bring_to_front().await;
    browser.shows("thread", "And more").await;
    show_list(&browser).await;
    browser.shows("list", "Pinned").await;
    // Deleted there, it is gone here. The page that is closed deletes at once.
    let first = browser.turn_to(second).await;
    browser.bring_to_front().await;
    choose_in_list(&browser, "li", "Delete").await;
    browser.go(&server.url("/dashboard")).await;
    browser.turn_to(first).await;
    browser.bring_to_front().await;
    browser.shows("empty", "What is on your mind?").await;
    browser.until("document.querySelectorAll('#list li').length === 0").await;
    assert_eq!(get(&server, "/v1/chats").await["data"], json!([]));
}

#[tokio::test]
async fn two_tabs_agree() {
    tabs_agree_on(Device::DESKTOP).await;
}

#[tokio::test]
async fn two_tabs_agree_on_a_phone() {
    tabs_agree_on(Device::PHONE).await;
}

#[tokio::test]
async fn a_turn_before_the_stream_is_open_appears_when_it_opens() {
    let server = server_for(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let post = async |path: &str, body: Value| -> Value {
        server.client.post(server.url(path)).json(&body).send().await.unwrap().json().await.unwrap()
    };
    let chat = post("/v1/chats", json!({ "title": "The sky" })).await;
    let id = chat["id"].as_str().unwrap();
    let turns = format!("/v1/chats/{id}/turns");
    let question = |parent: &Value, text: &str| json!({ "parent": parent, "question": { "text": text, "attachments": [] } });
    let first = post(&turns, question(&Value::Null, "Why is it blue?")).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.hold_requests_of_next_page("pages/live").await;
    browser.go(&server.url(&format!("/#{id}"))).await;
    browser.shows("thread", "Why is it blue?").await;
    browser.shows("list", "The sky").await;
    post(&turns, question(&first["id"], "And at night?")).await;
    post("/v1/chats", json!({ "title": "The sea" })).await;
    browser.release_requests().await;
    browser.shows("thread", "And at night?").await;
    browser.shows("list", "The sea").await;
}

#[tokio::test]
async fn a_turn_that_is_added_while_a_conversation_opens_is_shown() {
    let server = server_for(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let post = async |path: &str, body: Value| -> Value {
        server.client.post(server.url(path)).json(&body).send().await.unwrap().json().await.unwrap()
    };
    let chat = post("/v1/chats", json!({ "title": "The sky" })).await;
    let id = chat["id"].as_str().unwrap();
    let browser = page_at(&server, Device::DESKTOP).await;
    browser.until("liveStream.isOpen").await;
    browser.shows("list", "The sky").await;
    browser.hold_answers("GET", &format!("v1/chats/{id}")).await;
    browser.click(&format!("#list a[href='#{id}']")).await;
    browser.an_answer_is_held().await;
    let lists = browser.run("return listed.turn").await;
    let question = json!({ "parent": null, "question": { "text": "Why is it blue?", "attachments": [] } });
    post(&format!("/v1/chats/{id}/turns"), question).await;
    // The list is loaded again, so the page knows of the change. It looks at the conversation that it shows, which is still another one.
    browser.until(&format!("listed.turn > {lists}")).await;
    browser.run_async("setTimeout(arguments[0], 3 * REFRESH_MS)").await;
    browser.release_answers().await;
    browser.shows("thread", "Why is it blue?").await;
}

#[tokio::test]
async fn a_conversation_that_cannot_be_saved_says_so_and_continues() {
    // Without a store of chats.
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    let server = TestServer::start(Arc::clone(&engine) as _).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    ask_and_wait(&browser, "Is it saved?").await;
    browser.shows("not-saved", "This conversation is not saved:").await;
    browser.shows("thread", "hi").await;
    assert_accessible(&browser, "not saved").await;
    ask_and_wait(&browser, "And now?").await;
    assert_eq!(engine.requests().pop().unwrap().messages.len(), 3);
    assert_eq!(count(&browser, "#list li").await, 0);
}

#[tokio::test]
async fn an_answer_that_could_not_be_saved_is_saved_later() {
    let engine = Arc::new(ScriptedEngine::saying(&["It is blue."]));
    let server = server_for(Arc::clone(&engine) as _).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    let refuse = "window.isFull = true;
        const real = window.fetch;
        window.fetch = (address, options) => isFull && options?.method === 'PUT'
            ? Promise.resolve(new Response('{\"detail\":\"The disk is full.\"}', { status: 503 }))
            : real(address, options);";
    browser.run(refuse).await;
    ask_and_wait(&browser, "What colour?").await;
    browser.shows("thread", "This answer is not saved: The disk is full. The page tries again.").await;
    browser.run("window.isFull = false").await;
    browser.until("unsaved.size === 0").await;
    assert_eq!(only_chat(&server).await["data"][0]["answer"]["text"], "It is blue.");
    browser.until("!document.getElementById('thread').textContent.includes('not saved')").await;
}
