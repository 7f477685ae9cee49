//! The channels page in a browser.

use std::sync::Arc;

use hob_app::AskService;
use hob_channels::whatsapp::{WhatsappInstaller, WhatsappLinking, WhatsappProgram};
use hob_config::Environment;
use hob_keys::KeyRole;
use hob_server::{ServerParts, ServerSettings};
use hob_testkit::ScriptedEngine;
use serde_json::json;
use tempfile::TempDir;

use super::axe::{assert_accessible, assert_accessible_on_all_screens};
use super::chromium::{Browser, Device};
use crate::admin::channel_details::MessageServer;
use crate::admin::usage::TeamParts;
use crate::fixtures::loopback_config;
use crate::support::{TestServer, plain_parts};

/// Text that looks like markup.
const HOSTILE: &str = "<img src=x onerror=\"document.title='broken in'\"><b>bold</b>";

async fn enter(browser: &Browser, field: &str, text: &str) {
    browser.run(&format!("document.querySelector('#send-form [name={field}]').focus()")).await;
    browser.press(text).await;
}

/// Reads the state, sends a test, and gets a message.
async fn use_channels_on(device: Device) {
    let server = MessageServer::start().await;
    let browser = Browser::open(device).await;
    browser.go(&server.http.url("/channels")).await;
    browser.shows("count", "1 of 1 channel connected").await;
    assert!(!browser.text("channels").await.contains("not connected"));
    browser.shows("messages", "when is dinner?").await;
    browser.until("document.getElementById('connection-text').textContent === 'connected'").await;
    let trusted = browser.text("trust-card").await;
    for text in ["the agent simple", "telegram:ann", "may act", "slack:ben", "may be read"] {
        assert!(trusted.contains(text), "{text}: {trusted}");
    }
    browser.click("#send-card summary").await;
    browser.run("document.getElementById('send-form').requestSubmit()").await;
    browser.shows("send-fault", "channel is empty").await;
    assert_eq!(browser.run("return document.activeElement.name").await, json!("channel"));
    enter(&browser, "conversation_id", "family").await;
    enter(&browser, "channel", "telegram").await;
    // The list of suggestions may be open, and would take the key.
    browser.run("document.getElementById('send-form').requestSubmit()").await;
    browser.shows("notice", "The message to telegram is sent.").await;
    browser.shows("messages", "A test from Hob.").await;
    assert_eq!(server.gateway.received(1).await[0]["content"], json!("A test from Hob."));

    server.gateway.push(message_saying(HOSTILE));
    browser.shows("messages", HOSTILE).await;
    browser.shows("messages", "Hob to cleo").await;
    assert_eq!(browser.run("return document.querySelectorAll('main img, main b').length").await, json!(0));
    assert_eq!(browser.run("return document.title").await, json!("Hob: channels"));
    browser.assert_fits_the_screen(&format!("{device:?}")).await;
}

/// A message of a sender, as the gateway sends it.
fn message_saying(content: &str) -> String {
    json!({ "channel": "slack", "sender": "cleo", "content": content, "message_id": "m1", "conversation_id": "c1" })
        .to_string()
}

#[tokio::test]
async fn messages_that_come_late_do_not_hide_a_newer_one() {
    let server = MessageServer::start().await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/channels")).await;
    browser.shows("messages", "when is dinner?").await;
    browser.shows("connection", "connected").await;
    browser.hold_answers("GET", "v1/channels/messages").await;
    browser.run("load()").await;
    browser.an_answer_is_held().await;
    server.gateway.push(message_saying("where are you?"));
    browser.shows("messages", "where are you?").await;
    browser.release_answers().await;
    let shown = browser.text("messages").await;
    assert!(shown.contains("where are you?"), "{shown}");
}

#[tokio::test]
async fn a_message_does_not_take_the_focus_from_a_new_sender() {
    let server = MessageServer::start().await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/channels")).await;
    browser.shows("waiting", "ABCD-EFGH").await;
    browser.shows("connection", "connected").await;
    browser.run("document.querySelector('#waiting button').focus()").await;
    server.gateway.push(message_saying("where are you?"));
    browser.shows("messages", "where are you?").await;
    assert_eq!(browser.run("return document.activeElement.textContent").await, json!("Approve"));
}

#[tokio::test]
async fn messages_are_read_and_a_test_is_sent_on_a_desktop() {
    use_channels_on(Device::DESKTOP).await;
}

#[tokio::test]
async fn messages_are_read_and_a_test_is_sent_on_a_phone() {
    use_channels_on(Device::PHONE).await;
}

/// A server without channels whose bridge to WhatsApp shows a code until the file `scanned` is there.
async fn linkable() -> (TestServer, TempDir) {
    let node = std::env::var("HOB_TEST_NODE")
        .expect("$HOB_TEST_NODE is not set: run this with './dev test', which finds node");
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("bridge.mjs");
    let body = "import { existsSync } from 'node:fs';
        const tell = (event) => process.stdout.write(JSON.stringify(event) + '\\n');
        tell({ type: 'qr', data: '2@code' });
        const waiting = setInterval(() => {
          if (!existsSync(new URL('scanned', import.meta.url).pathname)) return;
          clearInterval(waiting);
          tell({ type: 'status', status: 'connected' });
        }, 10);
        process.stdin.on('data', () => process.exit(0)).on('end', () => process.exit(0));";
    std::fs::write(&script, body).unwrap();
    let installer = WhatsappInstaller::new(directory.path().join("installed"));
    std::fs::create_dir(&installer.directory).unwrap();
    // Its packages count as installed.
    let lock_file = include_str!("../../../../../../bridges/whatsapp/package-lock.json");
    std::fs::write(installer.directory.join(".complete"), lock_file).unwrap();
    let auth_dir = directory.path().join("session");
    let program = WhatsappProgram { node: node.into(), script, auth_dir };
    let system = Arc::new(AskService::new(plain_parts(Arc::new(ScriptedEngine::saying(&["hi"])))));
    let linking = Some(Arc::new(WhatsappLinking::new(program, installer)));
    let home = directory.path().as_os_str().to_owned();
    let environment: Environment = [("HOB_HOME", home)].into_iter().collect();
    let settings = Some(Arc::new(ServerSettings::new(environment)));
    let parts = ServerParts { linking, settings, ..ServerParts::from(system) };
    (TestServer::start_parts(parts, loopback_config()).await, directory)
}

#[tokio::test]
async fn without_channels_the_page_leads_to_a_linked_account() {
    let (server, directory) = linkable().await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url("/channels")).await;
    browser.shows("empty", "link an account below").await;
    assert_eq!(browser.text("trust-card").await, "");
    browser.click("#link-start").await;
    browser.shows("link-text", "scan this code").await;
    let drawn = "const path = document.querySelector('#link-code path'); return path.getBBox().width > 20";
    assert_eq!(browser.run(drawn).await, json!(true));
    assert_accessible_on_all_screens(&browser).await;
    browser.click("#link-cancel").await;
    browser.shows("link-start", "Link an account").await;
    assert_eq!(browser.text("link-code").await, "");
    browser.click("#link-start").await;
    browser.shows("link-text", "scan this code").await;
    std::fs::write(directory.path().join("scanned"), "").unwrap();
    browser.shows("link-text", "An account is linked. Turn WhatsApp on").await;
    assert_accessible(&browser, "with a linked account").await;
    browser.click("#link-enable").await;
    browser.shows("link-text", "WhatsApp is turned on in config.toml. Hob connects now").await;
    let written = std::fs::read_to_string(directory.path().join("config.toml")).unwrap();
    assert_eq!(written, "[channel.whatsapp]\nenabled = true\n");
    assert_eq!(browser.text("link-enable").await, "");
    assert_eq!(
        (browser.text("link-start").await, browser.text("link-cancel").await),
        (String::new(), String::new())
    );
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn an_older_state_does_not_hide_the_code_of_an_account() {
    let (server, _directory) = linkable().await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url("/channels")).await;
    browser.shows("link-start", "Link an account").await;
    browser.hold_answers("GET", "v1/channels/whatsapp").await;
    browser.run("loadLink()").await;
    browser.an_answer_is_held().await;
    browser.click("#link-start").await;
    browser.shows("link-text", "scan this code").await;
    browser.release_answers().await;
    assert_eq!(browser.text("link-start").await, "");
    let shown = browser.text("link-text").await;
    assert!(shown.contains("scan this code"), "{shown}");
    browser.click("#link-cancel").await;
    browser.shows("link-start", "Link an account").await;
}

#[tokio::test]
async fn a_member_reads_one_sentence_on_the_channels_page() {
    let team = TeamParts::open();
    let member = team.create("ana", KeyRole::Member, json!({})).await;
    let server = team.start(loopback_config()).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url("/channels")).await;
    browser.shows("empty", "No channel yet").await;
    browser.run(&format!("sessionStorage.setItem('hob-api-key', {member:?})")).await;
    browser.reload().await;
    browser.shows("denied", "This page is for the owner: open it on the machine that runs Hob").await;
    assert_eq!(browser.text("content").await, "");
}

#[tokio::test]
async fn the_channels_page_passes_the_accessibility_check() {
    let server = MessageServer::start().await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/channels")).await;
    browser.shows("messages", "when is dinner?").await;
    browser.click("#send-card summary").await;
    assert_accessible_on_all_screens(&browser).await;
}

#[tokio::test]
async fn only_a_linked_account_can_be_turned_on() {
    let (server, directory) = linkable().await;
    let request = server.client.put(server.url("/v1/channels/whatsapp"));
    let refused = request.send().await.unwrap();
    assert_eq!(refused.status(), 400);
    assert!(!directory.path().join("config.toml").exists());
}
