//! Conversations that earlier versions kept in the browser.

use std::sync::Arc;

use hob_testkit::ScriptedEngine;
use serde_json::json;

use super::{only_chat, page_at, server_for};
use crate::pages::browser::axe::assert_accessible;
use crate::pages::browser::chromium::Device;

#[tokio::test]
async fn conversations_of_the_browser_are_moved_to_the_server_once() {
    let server = server_for(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    assert_eq!(browser.text("move").await, "");
    let old = json!({ "title": "Why is the sky blue?", "updated": 1, "model": "m", "agent": "", "messages": [
        { "role": "user", "content": "Why is the sky blue?" },
        { "role": "assistant", "content": "Because of air.", "state": "complete", "model": "m" },
        { "role": "user", "content": "And the sea?" },
        { "role": "assistant", "content": "It mir", "state": "running", "alive": 0 },
    ] });
    let keep = format!(
        "localStorage.setItem('hob-chat:x', JSON.stringify({old})); localStorage.setItem('hob-chat:y', '{{')"
    );
    browser.run(&keep).await;
    browser.reload().await;
    browser.shows("move", "Move 1 conversation of this browser to the server").await;
    assert_accessible(&browser, "with conversations to move").await;
    browser.click("#move-button").await;
    browser.shows("hint", "1 conversation moved to the server.").await;
    assert_eq!(browser.text("move").await, "");
    browser.shows("list", "Why is the sky blue?").await;
    assert_eq!(browser.run("return localStorage.getItem('hob-chat:x')").await, json!(null));

    let chat = only_chat(&server).await;
    let turns: Vec<_> = chat["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| json!([turn["question"]["text"], turn["answer"]["text"], turn["answer"]["ending"]]))
        .collect();
    let expected = [
        json!(["Why is the sky blue?", "Because of air.", "complete"]),
        json!(["And the sea?", "It mir", "failed"]),
    ];
    assert_eq!(turns, expected);
    browser.click("#list a").await;
    browser.until("document.querySelectorAll('.message').length === 4").await;
    browser.shows("thread", "The page was closed before the answer ended.").await;
}
