//! The list of conversations.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hob_app::AskService;
use hob_conversations::{NewChat, ResponseOwner, SavedSettings};
use hob_testkit::ScriptedEngine;
use serde_json::{Value, json};

use super::{ENTER, choose_in_list, count, page_at, saving_chats, server_for};
use crate::fixtures::loopback_config;
use crate::pages::browser::axe::assert_accessible;
use crate::pages::browser::chromium::{Browser, Device};
use crate::support::{TestServer, plain_parts};

async fn create_chats(server: &TestServer, titles: impl IntoIterator<Item = String>) {
    for title in titles {
        let body = json!({ "title": title });
        let made = server.client.post(server.url("/v1/chats")).json(&body).send().await.unwrap();
        assert_eq!(made.status(), 201);
    }
}

async fn titles(browser: &Browser) -> Value {
    browser.run("return [...document.querySelectorAll('#list a span')].map((one) => one.textContent)").await
}

fn are(titles: &[&str]) -> String {
    let titles = Value::from(titles.to_vec()).to_string();
    format!(
        "JSON.stringify([...document.querySelectorAll('#list a span')].map((one) => one.textContent)) === {titles:?}"
    )
}

#[tokio::test]
async fn conversations_are_searched_renamed_and_pinned() {
    let server = server_for(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    create_chats(&server, ["Beans", "Sky", "Birthday"].map(str::to_owned)).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    browser.until(&are(&["Birthday", "Sky", "Beans"])).await;

    browser.click("#list li:last-child button").await;
    assert_accessible(&browser, "with the menu").await;
    assert_eq!(browser.run("return document.activeElement.textContent").await, "Pin");
    browser.press(ENTER).await;
    browser.until(&are(&["Beans", "Birthday", "Sky"])).await;
    browser.shows("list", "Pinned").await;

    choose_in_list(&browser, "li:last-child", "Rename").await;
    browser.shows("ask", "Rename conversation").await;
    browser.run("document.getElementById('ask-input').value = ''").await;
    browser.press(ENTER).await;
    browser.shows("ask-fault", "Enter a name.").await;
    browser.press(&format!("Why it is blue{ENTER}")).await;
    browser.shows("list", "Why it is blue").await;

    browser.run("document.getElementById('search').focus()").await;
    browser.press("blue").await;
    browser.until(&are(&["Why it is blue"])).await;
    browser.press("berry").await;
    browser.shows("list-note", "No conversation contains \"blueberry\".").await;
    assert_eq!(count(&browser, "#list li").await, 0);
}

#[tokio::test]
async fn a_long_list_is_loaded_while_the_reader_scrolls() {
    let server = server_for(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    create_chats(&server, (0..120).map(|number| format!("Chat {number}"))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    browser.shows("list", "Chat 119").await;
    let scroll = "const list = document.getElementById('list-scroll'); list.scrollTop = list.scrollHeight";
    // Each step loads a page, and the last row is that of the oldest conversation.
    browser.until(&format!("({{ it() {{ {scroll}; return document.getElementById('list').innerText.includes('Chat 0\\n'); }} }}).it()")).await;
    assert_eq!(browser.run("return listed.items.length").await, 120);
    let shown = titles(&browser).await;
    assert!(shown.as_array().unwrap().len() < 60, "only what is visible has nodes: {shown}");
    assert_accessible(&browser, "at the end of the list").await;
}

/// What a list of ten thousand costs: nodes, wherever the reader is.
#[tokio::test]
async fn a_list_of_ten_thousand_conversations_has_few_nodes() {
    let server = server_for(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    // A stream that opens later would load the list again.
    browser.until("liveStream.isOpen").await;
    let measure = "const done = arguments[0];
        // A list that is under way does not count.
        clearTimeout(refreshTimer);
        listed.turn += 1;
        const updated_at = new Date().toISOString();
        listed.items = Array.from({ length: 10_000 }, (_, number) => ({ id: `x${number}`, title: `Chat ${number}`, pinned: false, updated_at }));
        showList();
        const list = document.getElementById('list-scroll');
        const seen = [];
        const frame = () => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
        (async () => {
            for (const part of [0, 0.25, 0.5, 0.75, 1]) {
                list.scrollTop = part * (list.scrollHeight - list.clientHeight);
                await frame();
                const middle = list.getBoundingClientRect();
                const row = document.elementFromPoint(middle.x + 40, middle.y + middle.height / 2)?.closest('li');
                const wanted = Math.floor((list.scrollTop + middle.height / 2) / 52);
                seen.push([document.querySelectorAll('#list li').length < 100, row?.ariaPosInSet === String(wanted + 1)]);
            }
            return seen;
        })().then(done);";
    assert_eq!(browser.run_async(measure).await, json!(vec![[true, true]; 5]));
}

#[tokio::test]
async fn ten_thousand_saved_conversations_are_listed_by_pages_and_found_by_words() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    let parts = saving_chats(Arc::new(AskService::new(plain_parts(engine))));
    let chats = parts.chats.clone().unwrap();
    let created = tokio::task::spawn_blocking(move || {
        for number in 0..10_000 {
            let chat =
                NewChat { title: Some(format!("Chat {number} of many")), settings: SavedSettings::default() };
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + number);
            chats.create(&ResponseOwner::owner(), &chat, at).unwrap().expect("room for it");
        }
    });
    created.await.unwrap();
    let server = TestServer::start_parts(parts, loopback_config()).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    browser.shows("list", "Chat 9999 of many").await;
    let scroll = "({ it() { const list = document.getElementById('list-scroll'); list.scrollTop = list.scrollHeight; \
        return listed.items.length >= 300; } }).it()";
    browser.until(scroll).await;
    assert!(titles(&browser).await.as_array().unwrap().len() < 100, "only what is visible has nodes");
    browser.run("document.getElementById('search').focus()").await;
    browser.press("1234").await;
    browser.until(&are(&["Chat 1234 of many"])).await;
}
