//! Two models answer the same question side by side.

use std::sync::Arc;

use hob_core::{Delta, FinishReason};
use hob_testkit::ScriptedEngine;
use serde_json::json;

use super::{ask, ask_and_wait, count, only_chat, page_at, press_button, select, server_for, settled};
use crate::pages::browser::axe::assert_accessible;
use crate::pages::browser::chromium::Device;

#[tokio::test]
async fn two_models_are_compared_and_one_continues() {
    let engine = ScriptedEngine::new(|request| {
        vec![
            Ok(Delta::text(format!("I am {}.", request.model))),
            Ok(Delta::Finish { choice: 0, reason: FinishReason::Stop }),
            Ok(Delta::Done { usage: None }),
        ]
    });
    let engine = Arc::new(engine.with_models(&["small", "large"]));
    let server = server_for(Arc::clone(&engine) as _).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    select(&browser, "model", "small").await;
    select(&browser, "second", "large").await;
    ask_and_wait(&browser, "Who are you?").await;
    let texts = "return [...document.querySelectorAll('.pair .answer')].map((one) => one.textContent.trim())";
    assert_eq!(browser.run(texts).await, json!(["I am small.", "I am large."]));
    assert_accessible(&browser, "two answers").await;
    let places = "return [...document.querySelectorAll('.pair .message')].map((one) => one.getBoundingClientRect()).reduce((a, b) => [b.x > a.x, b.y > a.y])";
    assert_eq!(browser.run(places).await, json!([true, false]), "side by side");
    browser.set_device(Device::PHONE).await;
    assert_eq!(browser.run(places).await, json!([false, true]), "one below the other");
    browser.assert_fits_the_screen("two answers").await;
    browser.set_device(Device::DESKTOP).await;

    ask(&browser, "Go on").await;
    browser.shows("hint", "Choose the one to continue with.").await;
    press_button(&browser, ".pair .message:last-child", "Continue with this one").await;
    assert_eq!(count(&browser, ".pair").await, 0);
    browser.shows("thread", "2 of 2").await;
    select(&browser, "second", "").await;
    browser.run("setQuestion('')").await;
    ask_and_wait(&browser, "Go on").await;
    let heard: Vec<String> = engine
        .requests()
        .pop()
        .unwrap()
        .messages
        .iter()
        .map(|message| message.content.text().to_string())
        .collect();
    assert_eq!(heard, ["Who are you?", "I am large.", "Go on"]);

    // Both answers are saved as branches.
    settled(&browser).await;
    let chat = only_chat(&server).await;
    let saved: Vec<_> =
        chat["data"].as_array().unwrap().iter().map(|turn| turn["answer"]["text"].clone()).collect();
    assert_eq!(saved, [json!("I am small."), json!("I am large."), json!("I am small.")]);
}
