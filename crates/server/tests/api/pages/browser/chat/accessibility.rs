//! The chat page is accessible, on every screen.

use std::sync::Arc;

use hob_core::{Delta, FinishReason};
use hob_testkit::ScriptedEngine;

use serde_json::json;

use super::{ESCAPE, ask, ask_and_wait, becomes, page_at, press_button, server_for};
use crate::pages::browser::axe::{assert_accessible, assert_accessible_on_all_screens};
use crate::pages::browser::chromium::Device;

#[tokio::test]
async fn the_page_passes_the_accessibility_check() {
    let text = "## Why\n\nA paragraph with `code`, a [link](https://example.org) and **weight**.\n\n\
        ```rust\nlet a_line_that_is_longer_than_any_screen = \"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\";\n```\n\n\
        | a | rather | wide | table | with | many | columns | and | more | of | them |\n|-|-|-|-|-|-|-|-|-|-|-|\n| 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 |\n\n\
        > quoted\n\n- [x] done\n- [ ] open\n\nAWordThatHasNoPlaceToBreakAWordThatHasNoPlaceToBreakAWordThatHasNoPlaceToBreakAWordThatHasNoPlaceToBreak";
    let engine = ScriptedEngine::new(move |_| {
        vec![
            Ok(Delta::Reasoning { choice: 0, text: "Let me think.".into() }),
            Ok(Delta::text(text)),
            Ok(Delta::Finish { choice: 0, reason: FinishReason::Length }),
            Ok(Delta::Done { usage: None }),
        ]
    });
    let long = "a-very-long-name-of-a-model-that-somebody-made/at-home-Q4_K_M.gguf";
    let server = server_for(Arc::new(engine.with_models(&[long]))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    assert_accessible(&browser, "empty").await;
    ask(&browser, "Why? AndAQuestionThatHasNoPlaceToBreakAndAQuestionThatHasNoPlaceToBreakAndAQuestionThatHasNoPlaceToBreak").await;
    becomes(&browser, "cut").await;
    browser.shows("thread", "Cut here: the answer reached its length limit.").await;
    assert_accessible_on_all_screens(&browser).await;

    browser.click("#settings-open").await;
    browser.shows("settings", "System prompt").await;
    assert_accessible(&browser, "the settings on a phone").await;
    press_button(&browser, "#settings", "Done").await;

    // On a phone a button opens the list, and Escape closes it.
    let put_away = "getComputedStyle(document.getElementById('side')).visibility === 'hidden'";
    browser.until(put_away).await;
    browser.click("#menu").await;
    browser.shows("list", "Why?").await;
    assert_accessible(&browser, "the list on a phone").await;
    browser.press(ESCAPE).await;
    browser.until(put_away).await;
    assert_eq!(browser.run("return document.activeElement.id").await, "menu");
}

#[tokio::test]
async fn hidden_buttons_cannot_be_touched() {
    let server = server_for(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    for question in ["One", "Two"] {
        browser.click("#new").await;
        ask_and_wait(&browser, question).await;
    }
    browser.until("document.querySelectorAll('#list li').length === 2").await;
    let look = "const { opacity, pointerEvents } = getComputedStyle(document.querySelector('#list li:last-child button'));
        return [opacity, pointerEvents]";
    // A tablet: wide, and without a mouse.
    browser.devtools("Emulation.setTouchEmulationEnabled", json!({ "enabled": true })).await;
    browser.until("matchMedia('(hover: none)').matches").await;
    assert_eq!(browser.run(look).await, json!(["1", "auto"]));
    assert_accessible(&browser, "on a tablet").await;
}
