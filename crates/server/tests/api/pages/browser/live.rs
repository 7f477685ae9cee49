//! Pages learn of changes as they happen.

use serde_json::json;

use super::chromium::{Browser, Device};
use super::recording_server::RecordingServer;
use crate::admin::usage::TeamParts;
use crate::fixtures::loopback_config;
use crate::key_fixtures::post;
use crate::support::TestServer;

async fn changes_appear_on(device: Device) {
    let team = TeamParts::open();
    let server = team.start(loopback_config()).await;
    let browser = Browser::open(device).await;
    browser.go(&server.url("/team")).await;
    browser.shows("no-keys", "No key yet").await;
    browser.shows("connection", "connected").await;
    assert_eq!(post(&server, "/v1/keys", "", json!({ "name": "ana" })).await.0, 201);
    browser.shows("keys", "ana").await;

    // Also from another tab of the same browser.
    let first = browser.open_tab().await;
    browser.bring_to_front().await;
    browser.set_device(device).await;
    browser.go(&server.url("/team")).await;
    browser.shows("keys", "ana").await;
    browser.run_async("post('v1/keys', { name: 'ben' }).then(() => arguments[0]())").await;
    browser.shows("keys", "ben").await;
    browser.turn_to(first).await;
    browser.bring_to_front().await;
    browser.shows("keys", "ben").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_change_elsewhere_appears_without_a_reload() {
    changes_appear_on(Device::DESKTOP).await;
}

#[tokio::test]
async fn a_change_elsewhere_appears_without_a_reload_on_a_phone() {
    changes_appear_on(Device::PHONE).await;
}

/// Shows a page that is opened before a key is created, and has a stream of changes only after that.
async fn create_a_key_before_the_stream(server: &TestServer, browser: &Browser) {
    browser.go(&server.url("/team")).await;
    browser.shows("no-keys", "No key yet").await;
    assert_eq!(post(server, "/v1/keys", "", json!({ "name": "ana" })).await.0, 201);
}

#[tokio::test]
async fn a_change_before_the_stream_is_open_appears_when_it_opens() {
    let team = TeamParts::open();
    let server = team.start(loopback_config()).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.hold_requests_of_next_page("pages/live").await;
    create_a_key_before_the_stream(&server, &browser).await;
    browser.release_requests().await;
    browser.shows("keys", "ana").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_page_that_is_opened_in_the_background_is_up_to_date_when_it_is_visible() {
    let team = TeamParts::open();
    let server = team.start(loopback_config()).await;
    let browser = Browser::open(Device::DESKTOP).await;
    let hide = "Object.defineProperty(document, 'hidden', { value: true, configurable: true })";
    browser.run_first_on_next_page(hide).await;
    create_a_key_before_the_stream(&server, &browser).await;
    browser.run("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))").await;
    browser.shows("keys", "ana").await;
}

/// Notes what a page asks for, and when its stream of changes is open.
const NOTE_REQUESTS: &str = "{
    const real = window.fetch;
    window.noted = [];
    window.fetch = async (address, options) => {
        const path = String(address).split('?')[0];
        noted.push(path);
        const answer = await real(address, options);
        if (path === 'pages/live') noted.push('open');
        return answer;
    };
}";

#[tokio::test]
async fn every_page_loads_once_when_its_stream_is_open() {
    let team = TeamParts::open();
    let server = team.start(loopback_config()).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.run_first_on_next_page(NOTE_REQUESTS).await;
    let loads_of = |path: &str| {
        format!("noted.slice(noted.indexOf('open')).filter((asked) => asked === {path:?}).length")
    };
    for (page, path) in [
        ("/", "health"),
        ("/documents", "v1/memory/collections"),
        ("/tasks", "v1/tasks"),
        ("/channels", "v1/channels/details"),
        ("/models", "v1/model-files"),
        ("/dashboard", "v1/calls"),
        ("/settings", "v1/settings"),
        ("/team", "v1/keys"),
    ] {
        browser.go(&server.url(page)).await;
        browser.until(&format!("noted.includes('open') && {} > 0", loads_of(path))).await;
    }
    // The next load is that of the next change.
    browser.shows("no-keys", "No key yet").await;
    assert_eq!(post(&server, "/v1/keys", "", json!({ "name": "ana" })).await.0, 201);
    browser.shows("keys", "ana").await;
    assert_eq!(browser.run(&format!("return {}", loads_of("v1/keys"))).await, json!(2));
}

async fn a_connection_mends_on(device: Device) {
    let recording = RecordingServer::open(&["qwen3:8b"]).await;
    let browser = Browser::open(device).await;
    browser.go(&recording.http.url("/team")).await;
    browser.shows("connection", "connected").await;
    let stopped = recording.stop().await;
    browser.shows("connection", "no connection").await;
    let _recording = stopped.start().await;
    browser.shows("connection", "connected").await;
}

#[tokio::test]
async fn a_lost_connection_is_shown_and_mends_itself() {
    a_connection_mends_on(Device::DESKTOP).await;
}

#[tokio::test]
async fn a_lost_connection_is_shown_and_mends_itself_on_a_phone() {
    a_connection_mends_on(Device::PHONE).await;
}
