//! The settings page in a browser.

use hob_keys::KeyRole;
use serde_json::json;

use super::axe::assert_accessible_on_all_screens;
use super::chromium::{Browser, Device};
use crate::admin::settings::{SettingsServer, TEXT};

const ENTER: &str = "\u{e007}";

async fn page_at(server: &SettingsServer, device: Device) -> Browser {
    let browser = Browser::open(device).await;
    browser.go(&server.http.url("/settings")).await;
    browser.shows("found", "settings.").await;
    browser
}

/// Enters a value into the field of a key.
async fn enter(browser: &Browser, key: &str, value: &str) {
    browser
        .run(&format!(
            "const field = document.getElementById('field-{key}'); field.value = {value:?};
             field.dispatchEvent(new Event('input', {{ bubbles: true }}))"
        ))
        .await;
}

/// Enters a value into the field of a key, and saves it.
async fn save(browser: &Browser, key: &str, value: &str) {
    enter(browser, key, value).await;
    browser.run(&format!("document.getElementById('field-{key}').form.requestSubmit()")).await;
}

async fn change_a_value_on(device: Device) {
    let server = SettingsServer::start(&[]).await;
    let browser = page_at(&server, device).await;
    browser.shows("setting-memory.chunk_size", "from the file").await;
    browser.shows("setting-server.api_key", "set, not shown").await;

    save(&browser, "memory.chunk_size", "large").await;
    browser.shows("fault-memory.chunk_size", "expected a whole number").await;
    assert_eq!(browser.run("return document.activeElement.id").await, "field-memory.chunk_size");
    assert_eq!(server.text(), TEXT);

    save(&browser, "memory.chunk_size", "300").await;
    browser.shows("restart", "memory.chunk_size").await;
    assert_eq!(server.text(), TEXT.replace("= 256", "= 300"));
    browser.until("document.getElementById('field-memory.chunk_size').value === '300'").await;

    save(&browser, "telemetry.energy", "false").await;
    browser.shows("setting-telemetry.energy", "from the file").await;
    assert!(server.text().contains("energy = false"), "{}", server.text());
    browser.click("[id='setting-telemetry.energy'] button:nth-of-type(3)").await;
    let origin = "document.querySelector(\"[id='setting-telemetry.energy'] .origin\").dataset.source";
    browser.until(&format!("{origin} === 'default'")).await;
    assert!(!server.text().contains("energy"), "{}", server.text());
    browser.assert_fits_the_screen("settings").await;
}

#[tokio::test]
async fn a_value_is_changed_on_a_desktop_and_the_file_keeps_its_comments() {
    change_a_value_on(Device::DESKTOP).await;
}

#[tokio::test]
async fn a_value_is_changed_on_a_phone_and_the_file_keeps_its_comments() {
    change_a_value_on(Device::PHONE).await;
}

#[tokio::test]
async fn what_a_variable_sets_and_what_protects_the_machine_has_no_field() {
    let server = SettingsServer::start(&[("HOB_DATABASE_URL", "postgres://db/hob")]).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    browser.shows("setting-database.url", "Set by the variable HOB_DATABASE_URL").await;
    browser.shows("setting-server.host", "edit the file on the machine that runs Hob").await;
    for key in ["database.url", "server.host", "server.api_key", "mcp.servers"] {
        let field = browser.run(&format!("return document.getElementById('field-{key}')")).await;
        assert!(field.is_null(), "{key}");
    }
    let page = browser.run("return document.documentElement.outerHTML").await;
    for secret in ["s3cret", "postgres://db"] {
        assert!(!page.as_str().unwrap().contains(secret), "{secret}");
    }
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_search_finds_settings_by_name_description_and_value() {
    let server = SettingsServer::start(&[]).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    browser.run("document.getElementById('find').focus()").await;
    browser.press("passage tokens").await;
    browser.shows("found", " of ").await;
    assert_ne!(browser.text("setting-memory.chunk_size").await, "");
    assert_eq!(browser.text("setting-server.port").await, "");
    assert_eq!(browser.text("section-server").await, "");
    browser.run("document.getElementById('find').value = ''").await;
    browser.click("#only-set").await;
    browser.shows("found", "2 of ").await;
    browser.run("document.getElementById('find').focus()").await;
    browser.press("no such setting").await;
    browser.shows("found", "Search for other words, or clear the search.").await;
}

#[tokio::test]
async fn a_change_elsewhere_appears_without_a_reload() {
    let server = SettingsServer::start(&[]).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    browser.shows("connection", "connected").await;
    let change = json!({ "settings": { "memory.chunk_size": 300 } });
    let request = server.http.client.patch(server.http.url("/v1/settings")).json(&change);
    assert_eq!(request.send().await.unwrap().status(), 200);
    browser.until("document.getElementById('field-memory.chunk_size').value === '300'").await;
}

const CHUNK_SIZE: &str = "return document.getElementById('field-memory.chunk_size').value";

#[tokio::test]
async fn what_is_being_entered_stays_when_another_setting_is_saved() {
    let server = SettingsServer::start(&[]).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    enter(&browser, "memory.chunk_size", "300").await;
    save(&browser, "telemetry.energy", "false").await;
    browser.shows("setting-telemetry.energy", "from the file").await;
    assert_eq!(browser.run(CHUNK_SIZE).await, "300");
    assert!(server.text().contains("chunk_size = 256"), "{}", server.text());
    // It can still be saved.
    browser.click("[id='setting-memory.chunk_size'] .go").await;
    browser.shows("restart", "memory.chunk_size").await;
    assert!(server.text().contains("chunk_size = 300"), "{}", server.text());
    browser.until("!isEditing()").await;
}

#[tokio::test]
async fn what_is_being_entered_stays_when_settings_arrive() {
    let server = SettingsServer::start(&[]).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    browser.hold_answers("GET", "v1/settings").await;
    browser.run("load()").await;
    browser.an_answer_is_held().await;
    browser.run("document.getElementById('field-memory.chunk_size').focus()").await;
    browser.press("0").await;
    let entered = browser.run(CHUNK_SIZE).await;
    assert_ne!(entered, "256");
    browser.release_answers().await;
    assert_eq!(browser.run(CHUNK_SIZE).await, entered);
    assert_eq!(browser.run("return document.activeElement.id").await, "field-memory.chunk_size");
}

#[tokio::test]
async fn settings_that_arrive_late_do_not_bring_an_older_value_back() {
    let server = SettingsServer::start(&[]).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    browser.hold_answers("GET", "v1/settings").await;
    browser.run("load()").await;
    browser.an_answer_is_held().await;
    save(&browser, "memory.chunk_size", "300").await;
    // The page has loaded them again.
    browser
        .until("document.getElementById('said').textContent.startsWith('memory.chunk_size is saved')")
        .await;
    browser.release_answers().await;
    assert_eq!(browser.run(CHUNK_SIZE).await, "300");
}

#[tokio::test]
async fn a_member_reads_one_sentence() {
    let server = SettingsServer::start(&[]).await;
    let member = server.team.create("ana", KeyRole::Member, json!({})).await;
    let owner = server.team.create("boss", KeyRole::Owner, json!({})).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    browser.run(&format!("sessionStorage.setItem('hob-api-key', {member:?})")).await;
    browser.reload().await;
    browser.shows("denied", "This page is for the owner").await;
    assert_eq!(browser.text("settings").await, "");
    browser.run("document.getElementById('key').focus()").await;
    browser.press(&format!("{owner}{ENTER}")).await;
    browser.shows("found", "settings.").await;
}

#[tokio::test]
async fn the_page_passes_the_accessibility_check() {
    let server = SettingsServer::start(&[]).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    save(&browser, "memory.chunk_size", "large").await;
    browser.shows("fault-memory.chunk_size", "expected").await;
    assert_accessible_on_all_screens(&browser).await;
}
