//! The navigation and the theme, which all pages have.

use std::sync::Arc;

use hob_config::ServerConfig;
use hob_testkit::ScriptedEngine;
use serde_json::{Value, json};

use super::axe::assert_accessible;
use super::chromium::{Browser, Device};
use crate::admin::usage::TeamParts;
use crate::fixtures::{loopback_config, reached_from_network};
use crate::support::TestServer;

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";

async fn start() -> (TeamParts, TestServer) {
    let team = TeamParts::open();
    let server = team.start(loopback_config()).await;
    (team, server)
}

/// Chooses a theme as a person does with the keyboard or the mouse.
async fn choose_theme(browser: &Browser, theme: &str) {
    browser
        .run(&format!(
            "const select = document.getElementById('theme'); select.value = {theme:?};
             select.dispatchEvent(new Event('change', {{ bubbles: true }}))"
        ))
        .await;
}

/// What the page is painted with: the chosen theme, and whether the ground is dark.
async fn painted(browser: &Browser) -> Value {
    browser
        .run(
            "const [red] = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number);
             return [document.documentElement.dataset.theme ?? null, red < 128]",
        )
        .await
}

#[tokio::test]
async fn every_page_has_the_navigation_and_marks_itself() {
    let (_team, server) = start().await;
    let browser = Browser::open(Device::DESKTOP).await;
    for (path, name) in [
        ("/", "Chat"),
        ("/documents", "Documents"),
        ("/tasks", "Tasks"),
        ("/channels", "Channels"),
        ("/models", "Models"),
        ("/dashboard", "Activity"),
        ("/team", "Team"),
        ("/settings", "Settings"),
    ] {
        browser.go(&server.url(path)).await;
        let marked = "return [...document.querySelectorAll('#nav a[aria-current=page]')].map((link) => link.textContent)";
        assert_eq!(browser.run(marked).await, json!([name]), "{path}");
        let links = browser.text("nav-panel").await;
        for link in ["Chat", "Documents", "Tasks", "Channels", "Models", "Activity", "Team", "Settings"] {
            assert!(links.contains(link), "{path}: {links}");
        }
        browser.until("document.getElementById('connection').dataset.state === 'good'").await;
        let complaints = browser.complaints().await;
        // What this server does not have, it refuses.
        let errors: Vec<_> =
            complaints.into_iter().filter(|line| !line.contains("Failed to load resource")).collect();
        assert_eq!(errors, Vec::<String>::new(), "{path}");
    }
    // A link of the navigation works.
    browser
        .run("[...document.querySelectorAll('#nav a')].find((link) => link.textContent === 'Team').click()")
        .await;
    browser.until("location.pathname === '/team'").await;
    browser.shows("no-keys", "No key yet").await;
    browser.until("document.getElementById('connection-text').textContent === 'connected'").await;
}

#[tokio::test]
async fn a_stranger_reads_one_sentence_on_the_pages_of_the_owner() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    let server = reached_from_network(&engine, ServerConfig::default()).await;
    let browser = Browser::open(Device::DESKTOP).await;
    for path in ["/channels", "/models", "/settings", "/team"] {
        browser.go(&server.url(path)).await;
        browser.shows("denied", "This page is for the owner").await;
        let errors = browser.complaints().await;
        assert!(errors.iter().all(|line| line.contains("Failed to load resource")), "{path}: {errors:?}");
    }
    assert!(engine.requests().is_empty());
}

#[tokio::test]
async fn the_theme_is_kept_and_set_before_anything_is_painted() {
    let (_team, server) = start().await;
    let browser = Browser::open(Device::DESKTOP).await;
    // Notes the theme at the moment when the body begins: nothing is painted before.
    let note = "new MutationObserver(() => {
        if (document.body && window.early === undefined) window.early = document.documentElement.dataset.theme ?? '';
    }).observe(document, { childList: true, subtree: true })";
    browser.run_first_on_next_page(note).await;
    browser.go(&server.url("/team")).await;
    assert_eq!(painted(&browser).await, json!([null, false]), "the system's");
    choose_theme(&browser, "dark").await;
    assert_eq!(painted(&browser).await, json!(["dark", true]));
    for path in ["/team", "/settings", "/"] {
        browser.go(&server.url(path)).await;
        assert_eq!(browser.run("return window.early").await, "dark", "{path}");
        assert_eq!(painted(&browser).await, json!(["dark", true]), "{path}");
        assert_eq!(browser.run("return document.getElementById('theme').value").await, "dark");
    }
    assert_accessible(&browser, "dark by choice").await;
    // The choice comes before the system's, in both directions.
    browser.set_device(Device::DARK).await;
    choose_theme(&browser, "light").await;
    assert_eq!(painted(&browser).await, json!(["light", false]));
    choose_theme(&browser, "").await;
    assert_eq!(painted(&browser).await, json!([null, true]));
    assert_eq!(browser.run("return localStorage.getItem('hob-theme')").await, Value::Null);
}

#[tokio::test]
async fn the_keyboard_reaches_the_content_and_the_navigation() {
    let (_team, server) = start().await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url("/team")).await;
    browser.shows("no-keys", "No key yet").await;
    browser.press(TAB).await;
    assert_eq!(browser.run("return document.activeElement.id").await, "skip");
    browser.press(TAB).await;
    assert_eq!(browser.run("return document.activeElement.textContent").await, "Chat");
    browser.run("document.getElementById('skip').focus()").await;
    browser.press(ENTER).await;
    assert_eq!(browser.run("return document.activeElement.tagName").await, "MAIN");
}

#[tokio::test]
async fn on_a_phone_the_navigation_is_a_menu() {
    let (_team, server) = start().await;
    let browser = Browser::open(Device::PHONE).await;
    browser.go(&server.url("/team")).await;
    browser.shows("no-keys", "No key yet").await;
    assert_eq!(browser.text("nav-panel").await, "");
    browser.assert_fits_the_screen("closed").await;
    browser.run("document.getElementById('nav-open').focus()").await;
    browser.press(ENTER).await;
    browser.shows("nav-panel", "Settings").await;
    let expanded = "return document.getElementById('nav-open').getAttribute('aria-expanded')";
    assert_eq!(browser.run(expanded).await, "true");
    for device in [Device::PHONE, Device { scheme: "dark", ..Device::PHONE }] {
        browser.set_device(device).await;
        assert_accessible(&browser, &format!("the menu, {device:?}")).await;
        browser.assert_fits_the_screen("open").await;
    }
    browser.press(ESCAPE).await;
    assert_eq!(browser.text("nav-panel").await, "");
    assert_eq!(browser.run("return document.activeElement.id").await, "nav-open");
    assert_eq!(browser.run(expanded).await, "false");
}
