//! The settings of a conversation, and saved assistants.

use std::sync::Arc;

use hob_core::Role;
use hob_testkit::ScriptedEngine;
use serde_json::json;

use super::{
    ENTER, ask, ask_and_wait, get, only_chat, page_at, press_button, select, server_for, server_with, settled,
};
use crate::fixtures::{calculating, offered, parts};
use crate::pages::browser::axe::assert_accessible;
use crate::pages::browser::chromium::{Browser, Device};

async fn fill(browser: &Browser, id: &str, text: &str) {
    let fill = format!(
        "const field = document.getElementById({id:?}); field.value = {text:?}; field.dispatchEvent(new Event('change'))"
    );
    browser.run(&fill).await;
}

#[tokio::test]
async fn settings_apply_to_the_conversation_and_are_saved_with_it() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    let server = server_for(Arc::clone(&engine) as _).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    browser.click("#settings-open").await;
    fill(&browser, "system", "Be brief.").await;
    fill(&browser, "temperature", "3").await;
    browser.shows("settings-fault", "from 0 to 2").await;
    assert_accessible(&browser, "with a wrong number").await;
    fill(&browser, "temperature", "0.5").await;
    fill(&browser, "max-tokens", "100").await;
    press_button(&browser, "#settings", "Done").await;
    ask_and_wait(&browser, "Hello").await;
    let asked = engine.requests().pop().unwrap();
    assert_eq!(
        (asked.messages[0].role, asked.messages[0].content.text().to_string()),
        (Role::System, "Be brief.".to_owned())
    );
    let expected = json!({
        "model": null, "agent": null, "system": "Be brief.", "temperature": 0.5, "max_tokens": 100,
        "documents": null, "assistant": null,
    });
    assert_eq!(only_chat(&server).await["settings"], expected);
    browser.reload().await;
    browser.shows("thread", "Hello").await;
    assert_eq!(browser.run("return document.getElementById('system').value").await, "Be brief.");
    // Another conversation begins without them.
    browser.click("#new").await;
    assert_eq!(browser.run("return document.getElementById('system').value").await, "");
}

#[tokio::test]
async fn an_older_state_of_the_server_does_not_revert_a_change() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]).with_models(&["small", "large"]));
    let server = server_for(Arc::clone(&engine) as _).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    select(&browser, "model", "large").await;
    ask_and_wait(&browser, "Hello").await;
    // The page loads the conversation again, and the answer arrives after the user has chosen another model.
    let id = only_chat(&server).await["id"].as_str().unwrap().to_owned();
    browser.hold_answers("GET", &format!("v1/chats/{id}")).await;
    browser.run("refreshShown()").await;
    browser.an_answer_is_held().await;
    select(&browser, "model", "small").await;
    browser.release_answers().await;
    browser.run_async("chat.queue.then(arguments[0])").await;
    assert_eq!(
        browser.run("return [document.getElementById('model').value, chat.settings.model]").await,
        json!(["small", "small"])
    );
    ask_and_wait(&browser, "Hello again").await;
    assert_eq!(engine.requests().pop().unwrap().model, "small");
    assert_eq!(only_chat(&server).await["settings"]["model"], "small");
}

#[tokio::test]
async fn a_change_while_the_conversation_is_created_is_saved() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]).with_models(&["small", "large"]));
    let server = server_for(Arc::clone(&engine) as _).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    select(&browser, "model", "large").await;
    browser.hold_answers("POST", "v1/chats").await;
    ask(&browser, "Hello").await;
    browser.an_answer_is_held().await;
    select(&browser, "model", "small").await;
    browser.release_answers().await;
    settled(&browser).await;
    assert_eq!(only_chat(&server).await["settings"]["model"], "small");
    assert_eq!(browser.run("return document.getElementById('model').value").await, "small");
}

#[tokio::test]
async fn a_list_of_assistants_that_comes_late_does_not_hide_a_new_one() {
    let server = server_for(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    browser.hold_answers("GET", "v1/saved-assistants").await;
    browser.run("lookForAssistants()").await;
    browser.an_answer_is_held().await;
    let body = json!({ "name": "Cicero" });
    let request = server.client.post(server.url("/v1/saved-assistants")).json(&body);
    assert_eq!(request.send().await.unwrap().status(), 201);
    browser.run_async("lookForAssistants().then(arguments[0])").await;
    let names = "return [...document.getElementById('assistant').options].map((one) => one.text)";
    assert_eq!(browser.run(names).await, json!(["None", "Cicero"]));
    browser.release_answers().await;
    assert_eq!(browser.run(names).await, json!(["None", "Cicero"]));
}

#[tokio::test]
async fn a_wrong_number_stays_until_the_settings_are_closed() {
    let server = server_for(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    browser.click("#settings-open").await;
    fill(&browser, "temperature", "3").await;
    browser.shows("settings-fault", "from 0 to 2").await;
    // Something else on the page changes.
    browser.run_async("lookForAssistants().then(arguments[0])").await;
    let temperature = "return document.getElementById('temperature').value";
    assert_eq!(browser.run(temperature).await, "3");
    browser.run("document.getElementById('settings').close()").await;
    browser.until("document.getElementById('settings-fault').textContent === ''").await;
    browser.click("#settings-open").await;
    assert_eq!(browser.run(temperature).await, "");
    press_button(&browser, "#settings", "Done").await;
    browser.until("!document.getElementById('settings').open").await;
}

#[tokio::test]
async fn assistants_are_saved_chosen_renamed_and_deleted() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]).with_models(&["small", "large"]));
    let server = server_for(Arc::clone(&engine) as _).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    select(&browser, "model", "large").await;
    browser.click("#settings-open").await;
    fill(&browser, "system", "Answer in Latin.").await;
    browser.shows("settings", "Assistant").await;
    press_button(&browser, "#settings", "Save as new…").await;
    browser.press(&format!("Cicero{ENTER}")).await;
    let chosen = "document.getElementById('assistant').selectedOptions[0]?.text";
    browser.until(&format!("{chosen} === 'Cicero'")).await;
    assert_accessible(&browser, "with an assistant").await;
    press_button(&browser, "#settings", "Done").await;

    // In another conversation.
    browser.click("#new").await;
    select(&browser, "model", "small").await;
    browser.click("#settings-open").await;
    let id = get(&server, "/v1/saved-assistants").await["data"][0]["id"].as_str().unwrap().to_owned();
    select(&browser, "assistant", &id).await;
    press_button(&browser, "#settings", "Done").await;
    ask_and_wait(&browser, "Hello").await;
    let asked = engine.requests().pop().unwrap();
    assert_eq!(
        (asked.model.as_str(), asked.messages[0].content.text().to_string()),
        ("large", "Answer in Latin.".to_owned())
    );

    browser.click("#settings-open").await;
    press_button(&browser, "#settings", "Rename…").await;
    browser.run("document.getElementById('ask-input').value = ''").await;
    browser.press(&format!("Tacitus{ENTER}")).await;
    browser.until(&format!("{chosen} === 'Tacitus'")).await;
    press_button(&browser, "#settings", "Delete…").await;
    browser.shows("ask", "Delete Tacitus?").await;
    browser.click("#ask-yes").await;
    browser.until(&format!("{chosen} === 'None'")).await;
    assert_eq!(get(&server, "/v1/saved-assistants").await["data"], json!([]));
}

#[tokio::test]
async fn a_list_of_agents_that_has_not_changed_is_not_rebuilt() {
    let server = server_with(parts(calculating())).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    browser.until("document.getElementById('agent').options.length > 1").await;
    browser.run("window.option = document.getElementById('agent').options[1]").await;
    browser.run_async("lookForAgents().then(arguments[0])").await;
    assert_eq!(browser.run("return window.option.isConnected").await, true);
}

#[tokio::test]
async fn an_assistant_has_a_choice_of_tools() {
    let engine = calculating();
    let server = server_with(parts(Arc::clone(&engine) as _)).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    browser.until("document.getElementById('agent').options.length > 1").await;
    browser.click("#settings-open").await;
    assert_eq!(browser.text("tools-field").await, "", "without an agent there are no tools");
    select(&browser, "agent", "orchestrator").await;
    browser.shows("tools-field", "All tools").await;
    browser.click("#all-tools").await;
    browser.shows("tools-list", "file_read").await;
    browser.click("#tools-list input[value=file_read]").await;
    assert_accessible(&browser, "with a choice of tools").await;
    press_button(&browser, "#settings", "Save as new…").await;
    browser.press(&format!("Calculator{ENTER}")).await;
    let chosen = "document.getElementById('assistant').selectedOptions[0]?.text";
    browser.until(&format!("{chosen} === 'Calculator'")).await;
    press_button(&browser, "#settings", "Done").await;
    ask_and_wait(&browser, "What is 17 times 23?").await;
    assert_eq!(offered(&engine.requests()[0]), ["calculator"]);
    let saved = get(&server, "/v1/saved-assistants").await;
    assert_eq!(saved["data"][0]["settings"]["tools"], json!(["calculator"]));
}
