//! The server behind the page: its models, its key, and its failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hob_config::ServerConfig;
use hob_engines::Style;
use hob_testkit::{FakeServer, Reply, ScriptedEngine};
use serde_json::{Value, json};

use super::{ENTER, ask, ask_and_wait, becomes, page_at, press_button, server_for};
use crate::fixtures::loopback_config;
use crate::pages::browser::axe::assert_accessible;
use crate::pages::browser::chromium::{Browser, Device};
use crate::pages::browser::recording_server::RecordingServer;
use crate::support::engine_at;

#[tokio::test]
async fn a_chosen_model_is_not_replaced_when_it_is_removed() {
    // A model that only makes vectors is not offered.
    let engine = ScriptedEngine::saying(&["hi"]).with_models(&["small", "large"]);
    let engine = Arc::new(engine.with_embedding_models(&["minilm"]));
    let server = server_for(Arc::clone(&engine) as _).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    let choose = |model: &str| {
        format!(
            "const choice = document.getElementById('model');
             chooseModel({model:?});
             choice.dispatchEvent(new Event('change'));
             return [...choice.options].map((one) => one.value)"
        )
    };
    assert_eq!(browser.run(&choose("large")).await, json!(["default", "auto", "small", "large"]));
    ask_and_wait(&browser, "Hello").await;
    browser.shows("thread", "large").await;
    assert_eq!(engine.requests()[0].model, "large");

    // With the automatic choice, the page shows the model and the reason.
    browser.run(&choose("auto")).await;
    ask_and_wait(&browser, "Hello again").await;
    let by = browser.run("return document.querySelector('.message:last-child .model').textContent").await;
    let chosen = engine.requests().pop().unwrap().model;
    assert!(by.as_str().unwrap().starts_with(&format!("{chosen} · ")), "{by}");

    browser.run(&choose("gone")).await;
    ask(&browser, "And again").await;
    becomes(&browser, "failed").await;
    browser.shows("thread", "'gone'").await;
    assert_eq!(engine.requests().len(), 2);
}

#[tokio::test]
async fn a_new_model_is_offered_without_a_reload() {
    let known = Arc::new(AtomicUsize::new(1));
    let count = Arc::clone(&known);
    let fake = FakeServer::start(move |_| {
        let ids: Vec<Value> =
            (0..count.load(Ordering::Relaxed)).map(|number| json!({ "id": format!("m{number}") })).collect();
        Reply::json(200, json!({ "object": "list", "data": ids }).to_string())
    })
    .await;
    let server = server_for(engine_at(&fake, Style::VLLM)).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    let offered = |model: &str| {
        format!("[...document.getElementById('model').options].some((one) => one.value === {model:?})")
    };
    browser.until(&offered("m0")).await;
    // The events of returning to the tab and of opening the list. Repeated, because
    // the server asks its engine at most once a second.
    for (model, event) in [
        ("m1", "document.dispatchEvent(new Event('visibilitychange'))"),
        ("m2", "document.getElementById('model').focus(); document.activeElement.blur()"),
    ] {
        known.fetch_add(1, Ordering::Relaxed);
        browser.run(&format!("window.telling = setInterval(() => {{ {event} }}, 500)")).await;
        browser.until(&offered(model)).await;
        browser.run("clearInterval(window.telling)").await;
    }
}

#[tokio::test]
async fn a_list_of_models_that_comes_late_does_not_hide_a_new_model() {
    let known = Arc::new(AtomicUsize::new(1));
    let count = Arc::clone(&known);
    let fake = FakeServer::start(move |_| {
        let ids: Vec<Value> =
            (0..count.load(Ordering::Relaxed)).map(|number| json!({ "id": format!("m{number}") })).collect();
        Reply::json(200, json!({ "object": "list", "data": ids }).to_string())
    })
    .await;
    let server = server_for(engine_at(&fake, Style::VLLM)).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    browser.hold_answers("GET", "v1/models").await;
    browser.run("watch.lookAnew()").await;
    browser.an_answer_is_held().await;
    known.fetch_add(1, Ordering::Relaxed);
    // Repeated, because the server asks its engine at most once a second.
    browser.run("window.telling = setInterval(() => watch.lookAnew(), 500)").await;
    let offered = "[...document.getElementById('model').options].some((one) => one.value === 'm1')";
    browser.until(offered).await;
    browser.run("clearInterval(window.telling)").await;
    browser.release_answers().await;
    assert_eq!(browser.run(&format!("return {offered}")).await, json!(true));
}

#[tokio::test]
async fn a_page_without_the_key_does_not_repeat_requests() {
    let api_key = Some("s3cret".to_owned().into());
    let recording =
        RecordingServer::open_with(&["qwen3:8b"], ServerConfig { api_key, ..loopback_config() }).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&recording.http.url("/")).await;
    browser.shows("connection", "locked").await;
    // The browser lists a request shortly after its answer was read.
    browser
        .until(
            "['/pages/live', '/health', '/v1/models'].every((path) => \
            performance.getEntriesByType('resource').some(({ name }) => name.endsWith(path)))",
        )
        .await;
    let asked =
        "return performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname).sort()";
    let before = browser.run(asked).await;
    assert_eq!(before, json!(["/health", "/pages/live", "/v1/models"]));
    // Longer than the page waits between two attempts.
    browser.run_async("setTimeout(arguments[0], 4000)").await;
    assert_eq!(browser.run(asked).await, before);
    browser.run("document.getElementById('key').focus()").await;
    browser.press(&format!("s3cret{ENTER}")).await;
    browser.shows("connection", "ready").await;
    // What the page asks for when the server answers.
    browser.shows("first-run", "Ask the first question").await;
}

#[tokio::test]
async fn the_page_asks_for_the_key_and_keeps_it_in_the_tab() {
    let api_key = Some("s3cret".to_owned().into());
    let recording =
        RecordingServer::open_with(&["qwen3:8b"], ServerConfig { api_key, ..loopback_config() }).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&recording.http.url("/")).await;
    browser.shows("key-form", "needs an API key").await;
    browser.shows("connection", "locked").await;
    assert_eq!(browser.text("composer").await, "");
    assert_accessible(&browser, "locked").await;
    browser.press(&format!("wrong{ENTER}")).await;
    browser.shows("key-fault", "Wrong API key").await;
    browser.run("document.getElementById('key').focus()").await;
    browser.press(&format!("s3cret{ENTER}")).await;
    browser.shows("connection", "ready").await;
    assert_eq!(browser.text("key-form").await, "");
    ask(&browser, "Hello?").await;
    becomes(&browser, "complete").await;

    browser.reload().await;
    browser.shows("connection", "ready").await;
    // The dashboard uses the same key.
    browser.go(&recording.dashboard()).await;
    browser.shows("calls", "1").await;
    let stored = browser
        .run("return [JSON.stringify(sessionStorage), JSON.stringify(localStorage), document.cookie]")
        .await;
    assert_eq!((&stored[0], &stored[2]), (&json!(r#"{"hob-api-key":"s3cret"}"#), &json!("")));
    assert!(!stored[1].as_str().unwrap().contains("s3cret"), "{stored}");
}

#[tokio::test]
async fn a_link_brings_its_key_along_and_the_address_bar_does_not_keep_it() {
    let api_key = Some("s3cret".to_owned().into());
    let recording =
        RecordingServer::open_with(&["qwen3:8b"], ServerConfig { api_key, ..loopback_config() }).await;
    let browser = Browser::open(Device::PHONE).await;
    browser.go(&recording.http.url("/#key=s3cret")).await;
    browser.shows("connection", "ready").await;
    let state = "return [location.href.split('#').length, sessionStorage.getItem('hob-api-key')]";
    assert_eq!(browser.run(state).await, json!([1, "s3cret"]));
    // Another link does not replace the key of the tab.
    browser.go(&recording.http.url("/#key=other")).await;
    browser.until("location.hash === ''").await;
    assert_eq!(browser.run(state).await, json!([1, "s3cret"]));
    ask(&browser, "Hello?").await;
    becomes(&browser, "complete").await;
}

#[tokio::test]
async fn a_link_with_a_key_needs_consent_where_none_is_needed() {
    let recording = RecordingServer::open(&["qwen3:8b"]).await;
    let browser = page_at(&recording.http, Device::DESKTOP).await;
    let record = "window.paths = [];
        const real = window.fetch;
        window.fetch = (address, options) => { paths.push(String(address)); return real(address, options); };";
    browser.run(record).await;
    for (consent, kept) in [(false, json!(null)), (true, json!("other"))] {
        let follow = format!(
            "window.asked = ''; window.confirm = (text) => {{ window.asked = text; return {consent}; }};
             location.hash = 'key=other'"
        );
        browser.run(&follow).await;
        let asked = browser.until("location.hash === '' && window.asked").await;
        assert!(asked.as_str().unwrap().contains("belong to the account of that key"), "{asked}");
        assert_eq!(browser.run("return sessionStorage.getItem('hob-api-key')").await, kept);
    }
    // It is not mistaken for a conversation, which would bring it into logs.
    assert_eq!(browser.run("return paths.filter((path) => path.includes('other'))").await, json!([]));
}

#[tokio::test]
async fn a_lost_server_is_reported_and_the_page_reconnects() {
    let recording = RecordingServer::open(&["qwen3:8b"]).await;
    let browser = page_at(&recording.http, Device::DESKTOP).await;
    let stopped = recording.stop().await;
    ask(&browser, "Anybody there?").await;
    becomes(&browser, "failed").await;
    browser.shows("thread", "Hob does not answer.").await;
    browser.shows("notice", "Hob does not answer.").await;
    browser.shows("connection", "no connection").await;

    let _recording = stopped.start().await;
    browser.shows("connection", "ready").await;
    assert_eq!(browser.text("notice").await, "");
    press_button(&browser, ".message:last-child .actions", "Retry").await;
    browser.shows("thread", "Hello").await;
    becomes(&browser, "complete").await;
}

#[tokio::test]
async fn a_missing_engine_is_reported_and_the_page_recovers() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    engine.set_healthy(false);
    let server = server_for(Arc::clone(&engine) as _).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url("/")).await;
    browser.shows("notice", "hob doctor").await;
    browser.shows("connection", "no engine").await;
    engine.set_healthy(true);
    browser.shows("connection", "ready").await;
    assert_eq!(browser.text("notice").await, "");
}
