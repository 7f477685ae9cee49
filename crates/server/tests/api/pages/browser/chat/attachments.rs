//! Files and pictures of a question.

use std::sync::Arc;

use hob_testkit::{FakeServer, Reply, ScriptedEngine};
use serde_json::{Value, json};

use super::{
    ENTER, ESCAPE, ask_and_wait, count, only_chat, page_at, press_button, server_for, settled, write,
};
use crate::pages::browser::axe::assert_accessible;
use crate::pages::browser::chromium::{Browser, Device};

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Drops files on the page: names, types, and contents in Base64.
async fn drop_files(browser: &Browser, files: &[(&str, &str, &str)]) {
    let drop = "const transfer = new DataTransfer();
        for (const [name, type, content] of {files}) {
            transfer.items.add(new File([Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0))], name, { type }));
        }
        document.getElementById('composer').dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }));";
    browser.run(&drop.replace("{files}", &json!(files).to_string())).await;
}

#[tokio::test]
async fn a_dropped_file_is_read_and_goes_to_the_model() {
    let engine = Arc::new(ScriptedEngine::saying(&["It says 42."]));
    let server = server_for(Arc::clone(&engine) as _).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    // "The answer is 42 <b>.", and zeros.
    drop_files(
        &browser,
        &[
            ("notes.txt", "text/plain", "VGhlIGFuc3dlciBpcyA0MiA8Yj4u"),
            ("zeros.bin", "application/octet-stream", "AAAAAAAAAAA="),
        ],
    )
    .await;
    browser.shows("tray", "notes.txt").await;
    browser.shows("tray", "Up to 8 files of 20 MB").await;
    browser.shows("hint", "zeros.bin").await;
    browser.until("tray.items.length === 1 && tray.items[0].content !== null").await;
    assert_accessible(&browser, "with a file").await;
    ask_and_wait(&browser, "What does it say?").await;
    assert_eq!(browser.text("tray").await, "");
    let heard = engine.requests().pop().unwrap().messages.pop().unwrap().content.text().to_string();
    assert_eq!(
        heard,
        "File notes.txt:\n\nThe answer is 42 <b>.\n\nEnd of file notes.txt.\n\nWhat does it say?"
    );
    let file = hob_core::message::file_text("notes.txt", "The answer is 42 <b>.");
    assert!(heard.starts_with(&file), "the page and the server mark files alike");
    let saved = &only_chat(&server).await["data"][0]["question"];
    let file = json!({ "name": "notes.txt", "kind": "text", "content": "The answer is 42 <b>." });
    assert_eq!(*saved, json!({ "text": "What does it say?", "attachments": [file] }));
    browser.click(".user .chips button").await;
    browser.shows("passage", "The answer is 42 <b>.").await;
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_gone_after_an_edit() {
    let server = server_for(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    ask_and_wait(&browser, "Hello").await;
    browser.hold_answers("POST", "pages/document").await;
    drop_files(&browser, &[("zeros.bin", "application/octet-stream", "AAAAAAAAAAA=")]).await;
    browser.an_answer_is_held().await;
    press_button(&browser, ".user:first-child .actions", "Edit").await;
    browser.shows("editing", "Editing a question").await;
    browser.release_answers().await;
    browser.shows("hint", "zeros.bin").await;
    browser.press(ESCAPE).await;
    browser.until("document.getElementById('editing').hidden").await;
    assert_eq!(count(&browser, "#tray-list li").await, 0);
}

#[tokio::test]
async fn a_picture_goes_only_to_a_model_that_sees() {
    let fake = FakeServer::start(|request| match request.method.as_str() {
        "GET" => Reply::json(200, r#"{"object":"list","data":[{"id":"m"}]}"#),
        _ => Reply::sse(super::words("A dot.") + crate::support::FINISH),
    })
    .await;
    let server = server_for(crate::support::engine_at(&fake, hob_engines::Style::VLLM)).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    // The page asks for no models any more, which would replace these.
    browser.until("liveStream.isOpen").await;
    browser.run_async("watch.look().then(arguments[0])").await;
    let blind = "takeModels([{ id: 'm', default: true, capabilities: { vision: false } }, { id: 'eye', capabilities: { vision: true } }])";
    browser.run(blind).await;
    drop_files(&browser, &[("dot.png", "image/png", PNG)]).await;
    browser.shows("hint", "The default model does not read pictures. Choose a model that does: eye.").await;
    assert_eq!(count(&browser, "#tray-list li").await, 0);

    // This engine does not say what its model can do.
    browser.run("takeModels([{ id: 'm', default: true }])").await;
    drop_files(&browser, &[("dot.png", "image/png", PNG)]).await;
    browser.shows("tray", "does not say whether this model reads pictures").await;
    write(&browser, &format!("What is it?{ENTER}")).await;
    browser.shows("thread", "A dot.").await;
    settled(&browser).await;
    assert_eq!(count(&browser, ".user img[alt='dot.png']").await, 1);
    assert_accessible(&browser, "with a picture").await;
    let asked = fake.requests().into_iter().rfind(|request| request.method == "POST").unwrap();
    let sent: Value = serde_json::from_slice(&asked.body).unwrap();
    let picture =
        json!({ "type": "image_url", "image_url": { "url": format!("data:image/png;base64,{PNG}") } });
    assert_eq!(sent["messages"][0]["content"], json!([{ "type": "text", "text": "What is it?" }, picture]));
}
