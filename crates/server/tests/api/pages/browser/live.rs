//! Pages learn of changes as they happen.

use serde_json::json;

use super::chromium::{Browser, Device};
use super::recording_server::RecordingServer;
use crate::admin::usage::TeamParts;
use crate::fixtures::loopback_config;
use crate::key_fixtures::post;

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
