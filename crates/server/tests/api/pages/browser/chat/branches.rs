//! Edited messages and repeated questions are branches of a conversation.

use std::sync::Arc;

use hob_testkit::ScriptedEngine;
use serde_json::json;

use super::{
    ENTER, ESCAPE, ask_and_wait, count, only_chat, page_at, press_button, script_errors, server_for, settled,
    write,
};
use crate::pages::browser::axe::assert_accessible;
use crate::pages::browser::chromium::Device;

#[tokio::test]
async fn an_edited_question_is_a_branch() {
    let engine = Arc::new(ScriptedEngine::saying(&["Because."]));
    let server = server_for(Arc::clone(&engine) as _).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    ask_and_wait(&browser, "Why is the sky gren?").await;
    ask_and_wait(&browser, "Go on").await;
    let edit_first = ".user:first-child .actions";
    press_button(&browser, edit_first, "Edit").await;
    browser.shows("editing", "Editing a question").await;
    browser.press(ESCAPE).await;
    assert_eq!(browser.text("editing").await, "");

    // The draft returns when editing ends.
    let written = "return document.getElementById('question').value";
    write(&browser, "A draft").await;
    press_button(&browser, edit_first, "Edit").await;
    assert_eq!(browser.run(written).await, "Why is the sky gren?");
    browser.press(ESCAPE).await;
    assert_eq!(browser.run(written).await, "A draft");
    press_button(&browser, edit_first, "Edit").await;
    write(&browser, &format!("{}blue?{ENTER}", "\u{e003}".repeat(5))).await;
    browser.shows("thread", "Why is the sky blue?").await;
    settled(&browser).await;
    assert_eq!(count(&browser, ".message").await, 2);
    assert_eq!(engine.requests().pop().unwrap().messages.len(), 1);
    assert_eq!(browser.run(written).await, "A draft");
    browser.shows("thread", "2 of 2").await;
    assert_accessible(&browser, "with branches").await;

    // The other branch is still whole, and the server remembers which one is shown.
    browser.click("[aria-label='Previous branch']").await;
    browser.shows("thread", "Go on").await;
    browser.shows("thread", "1 of 2").await;
    assert_eq!(browser.run("return document.activeElement.ariaLabel").await, "Next branch");
    settled(&browser).await;
    browser.reload().await;
    browser.shows("thread", "Go on").await;
    browser.shows("thread", "1 of 2").await;
    let parents: Vec<_> = only_chat(&server).await["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| (turn["question"]["text"].clone(), turn["parent"].is_null()))
        .collect();
    assert_eq!(
        parents,
        [
            (json!("Why is the sky gren?"), true),
            (json!("Go on"), false),
            (json!("Why is the sky blue?"), true)
        ]
    );
    assert_eq!(script_errors(&browser).await, Vec::<String>::new());
}

#[tokio::test]
async fn an_edited_answer_is_a_branch_and_the_model_gets_it() {
    let engine = Arc::new(ScriptedEngine::saying(&["Green."]));
    let server = server_for(Arc::clone(&engine) as _).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    ask_and_wait(&browser, "What colour is the sky?").await;
    press_button(&browser, ".message:last-child .actions", "Edit").await;
    browser.shows("editing", "Editing an answer").await;
    assert_eq!(browser.text("send").await, "Save");
    write(&browser, &format!("{}Blue.{ENTER}", "\u{e003}".repeat(6))).await;
    browser.shows("thread", "2 of 2").await;
    browser.shows("thread", "Blue.").await;
    settled(&browser).await;
    assert_eq!(engine.requests().len(), 1, "no model is asked");
    assert_eq!(only_chat(&server).await["data"][1]["answer"]["text"], "Blue.");

    ask_and_wait(&browser, "Why?").await;
    let heard: Vec<String> =
        engine.requests()[1].messages.iter().map(|message| message.content.text().to_string()).collect();
    assert_eq!(heard, ["What colour is the sky?", "Blue.", "Why?"]);
}

#[tokio::test]
async fn a_question_is_asked_again_of_another_model() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]).with_models(&["small", "large"]));
    let server = server_for(Arc::clone(&engine) as _).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    ask_and_wait(&browser, "Hello").await;
    press_button(&browser, ".message:last-child .actions", "Retry with…").await;
    press_button(&browser, "#choices-menu", "large").await;
    browser.shows("thread", "2 of 2").await;
    settled(&browser).await;
    assert_eq!(engine.requests()[1].model, "large");
    let by = "document.querySelector('.message:last-child .model').textContent";
    browser.until(&format!("{by} === 'large'")).await;
    // The model of the conversation stays.
    assert_eq!(browser.run("return document.getElementById('model').value").await, "default");
}

#[tokio::test]
async fn answers_are_copied_and_the_shown_branch_is_exported() {
    let engine = Arc::new(ScriptedEngine::saying(&["Because:\n\n```sh\nls -l\n```\n"]));
    let server = server_for(engine).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    ask_and_wait(&browser, "Why is the sky blue?").await;
    browser
        .run(
            "window.taken = [];
             Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (text) => { taken.push(text); } } });
             URL.createObjectURL = (blob) => { blob.text().then((text) => taken.push(text)); return 'blob:x'; };
             HTMLAnchorElement.prototype.click = function () { taken.push(this.download); };",
        )
        .await;
    browser.click(".code button").await;
    browser.shows("thread", "Copied").await;
    press_button(&browser, ".message:last-child .actions", "Copy").await;
    browser.click("#export").await;
    let taken = browser.until("taken.length === 4 && taken").await;
    let answer = "Because:\n\n```sh\nls -l\n```\n";
    let file =
        format!("# Why is the sky blue?\n\n## You\n\nWhy is the sky blue?\n\n## Hob (m)\n\n{answer}\n");
    assert_eq!(taken, json!(["ls -l", answer, "why-is-the-sky-blue.md", file]));
}
