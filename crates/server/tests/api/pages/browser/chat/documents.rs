//! Answers from the user's documents.

use std::sync::Arc;

use hob_app::startup::memory::{MemoryWiring, open_memory};
use hob_app::{AskService, Databases};
use hob_config::Config;
use hob_memory::MemoryService;
use hob_testkit::ScriptedEngine;
use serde_json::json;
use tempfile::TempDir;

use super::{ESCAPE, ask_and_wait, count, only_chat, page_at, saving_chats};
use crate::fixtures::loopback_config;
use crate::pages::browser::axe::assert_accessible;
use crate::pages::browser::chromium::Device;
use crate::support::{TestServer, plain_parts};

/// A server with a memory.
async fn server_with_memory(engine: &Arc<ScriptedEngine>) -> (TempDir, Arc<MemoryService>, TestServer) {
    let root = tempfile::tempdir().unwrap();
    let database = Databases::in_files(root.path()).memory;
    let memory = open_memory(&Config::default(), root.path(), database, MemoryWiring::default()).unwrap();
    let system = AskService::new(plain_parts(Arc::clone(engine) as _)).with_memory(Arc::clone(&memory));
    let server = TestServer::start_parts(saving_chats(Arc::new(system)), loopback_config()).await;
    (root, memory, server)
}

async fn index(memory: &MemoryService, text: &str) {
    // Nothing in Hob's own directory is ever indexed.
    let documents = tempfile::tempdir().unwrap();
    let path = documents.path().join("gate.txt");
    std::fs::write(&path, text).unwrap();
    memory.index(&path).await.unwrap();
}

#[tokio::test]
async fn an_answer_names_the_passages_it_is_based_on() {
    let engine = Arc::new(ScriptedEngine::saying(&["4711."]));
    let (_root, memory, server) = server_with_memory(&engine).await;
    index(&memory, "The code of the garden gate is 4711 <b>.").await;
    let browser = page_at(&server, Device::DESKTOP).await;
    browser.shows("documents-switch", "My documents").await;
    assert_eq!(browser.run("return document.getElementById('documents').checked").await, true);
    ask_and_wait(&browser, "What is the code of the garden gate?").await;
    let chip = "document.querySelector('.sources button')?.textContent";
    assert_eq!(browser.until(chip).await, "1 gate.txt");
    browser.click(".sources button").await;
    browser.shows("passage", "The code of the garden gate is 4711 <b>.").await;
    assert_accessible(&browser, "with a passage").await;
    browser.press(ESCAPE).await;
    let saved = &only_chat(&server).await["data"][0]["answer"]["sources"];
    assert!(saved[0]["passage"].as_str().unwrap().contains("4711"), "{saved}");
    let got = engine.requests().pop().unwrap();
    assert!(got.messages.iter().any(|message| message.content.text().contains("4711")), "{got:?}");

    // The switch is saved with the conversation.
    browser.click("#documents").await;
    ask_and_wait(&browser, "And without the documents?").await;
    assert_eq!(count(&browser, ".message:last-child .sources li").await, 0);
    assert_eq!(only_chat(&server).await["settings"]["documents"], json!(false));
    let got = engine.requests().pop().unwrap();
    assert!(!got.messages.iter().any(|message| message.content.text().contains("<b>")), "{got:?}");
}

#[tokio::test]
async fn without_documents_there_is_no_switch() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    let (_root, _memory, server) = server_with_memory(&engine).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    ask_and_wait(&browser, "Hello").await;
    assert_eq!(browser.text("documents-switch").await, "");
    assert_eq!(count(&browser, ".sources li").await, 0);
}

#[tokio::test]
async fn an_older_answer_does_not_hide_the_switch() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    let (_root, memory, server) = server_with_memory(&engine).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    browser.hold_answers("GET", "v1/memory/stats").await;
    browser.run("lookForDocuments()").await;
    browser.an_answer_is_held().await;
    index(&memory, "The code of the garden gate is 4711.").await;
    browser.run_async("lookForDocuments().then(arguments[0])").await;
    browser.shows("documents-switch", "My documents").await;
    browser.release_answers().await;
    let shown = browser.text("documents-switch").await;
    assert!(shown.contains("My documents"), "{shown}");
}
