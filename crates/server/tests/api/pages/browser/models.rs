//! The models page in a browser.

use std::sync::Arc;

use hob_keys::KeyRole;
use hob_testkit::{Hold, Reply, ScriptedEngine};
use serde_json::{Value, json};

use super::axe::{assert_accessible, assert_accessible_on_all_screens};
use super::chromium::{Browser, Device};
use crate::admin::model_files::ModelServer;
use crate::admin::usage::TeamParts;
use crate::fixtures::loopback_config;
use crate::support::{TestServer, WAIT_LIMIT};

const ENTER: &str = "\u{e007}";

const FIRST_STEPS: &str = "{\"status\":\"pulling manifest\"}\n\
    {\"status\":\"pulling abc\",\"digest\":\"sha256:abc\",\"total\":10000000000,\"completed\":4000000000}\n";

/// Searches, downloads and deletes a model.
async fn use_models_on(device: Device) {
    let hold = Hold::new();
    let held = hold.clone();
    let server =
        ModelServer::start(move || Reply::ndjson(FIRST_STEPS).then_held(&held, "{\"status\":\"success\"}\n"))
            .await;
    let browser = Browser::open(device).await;
    browser.go(&server.http.url("/models")).await;
    browser.shows("models", "qwen2:0.5b").await;
    let shown = browser.text("models").await;
    for text in ["in memory", &*server.ollama.url(), "embeddings", "336\u{a0}MB"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    browser.shows("count", "2 models, 1 in memory").await;
    browser.shows("engines", &server.ollama.url()).await;
    browser.shows("found", "qwen3:8b").await;

    browser.run("document.getElementById('query').focus()").await;
    browser.press(&format!("qwen3 tools{ENTER}")).await;
    browser.shows("found", "hf:someone/Tiny-GGUF").await;
    browser.press_action("Download qwen3:8b").await;
    browser.shows("pull-title", "Downloading qwen3:8b").await;
    browser.shows("pull-text", "pulling abc · 3.7\u{a0}GB of 9.3\u{a0}GB").await;
    assert_eq!(browser.run("return document.getElementById('pull-bar').value").await, json!(0.4));
    browser.press_action("Download hf:someone/Tiny-GGUF").await;
    browser.shows("notice", "Another download is in progress").await;
    hold.release();
    browser.shows("pull-title", "qwen3:8b is downloaded").await;
    browser.click("#pull-close").await;
    assert_eq!(browser.text("pull-card").await, "");

    let deletions = || server.ollama.requests().iter().filter(|one| one.path == "/api/delete").count();
    browser.press_action("Delete qwen2:0.5b").await;
    browser.shows("ask-title", "Delete qwen2:0.5b?").await;
    browser.click("#ask-no").await;
    assert_eq!((browser.text("ask").await, deletions()), (String::new(), 0));
    browser.press_action("Delete qwen2:0.5b").await;
    browser.shows("ask-title", "Delete qwen2:0.5b?").await;
    browser.click("#ask-yes").await;
    browser.run_async(
        "const done = arguments[0];
         const look = () => { if (document.getElementById('said').textContent === 'qwen2:0.5b is deleted.') done(); else setTimeout(look, 20); };
         look();",
    )
    .await;
    assert_eq!(deletions(), 1);
    browser.assert_fits_the_screen(&format!("{device:?}")).await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_model_is_found_downloaded_and_deleted_on_a_desktop() {
    use_models_on(Device::DESKTOP).await;
}

#[tokio::test]
async fn a_model_is_found_downloaded_and_deleted_on_a_phone() {
    use_models_on(Device::PHONE).await;
}

#[tokio::test]
async fn only_a_search_of_the_user_is_announced() {
    let server = ModelServer::start(|| Reply::ndjson("{\"status\":\"success\"}\n")).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/models")).await;
    browser.shows("found", "qwen3:8b").await;
    let submit = "document.getElementById('search-form').requestSubmit()";
    let fail = "document.getElementById('query').value = 'qwen3';
        window.realFetch = window.fetch;
        window.fetch = (address, options) => address.startsWith('v1/model-files/search')
            ? Promise.resolve(new Response('{\"detail\":\"The hub is down.\"}', { status: 503 }))
            : realFetch(address, options);";
    browser.run(fail).await;
    browser.run(submit).await;
    browser.shows("search-fault", "The hub is down.").await;
    browser.run("window.fetch = realFetch; say('qwen2:0.5b is deleted.')").await;
    // As after a download.
    browser.run_async("const done = arguments[0]; search().then(() => done());").await;
    browser.shows("found", "hf:someone/Tiny-GGUF").await;
    let said = browser.run("return document.getElementById('said').textContent").await;
    assert_eq!(said, "qwen2:0.5b is deleted.");

    browser.run(submit).await;
    browser.until("/^\\d+ models?$/.test(document.getElementById('said').textContent)").await;
}

#[tokio::test]
async fn a_download_can_be_cancelled_and_one_that_fails_says_why() {
    let server = ModelServer::start(|| Reply::ndjson(FIRST_STEPS).then_silence()).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/models")).await;
    browser.shows("found", "qwen3:8b").await;
    browser.press_action("Download qwen3:8b").await;
    browser.shows("pull-text", "of 9.3\u{a0}GB").await;
    browser.click("#pull-cancel").await;
    browser.shows("pull-title", "The download of qwen3:8b is cancelled").await;
    tokio::time::timeout(WAIT_LIMIT, server.ollama.hung_up(1)).await.expect("the download ends");

    let server = ModelServer::start(|| {
        Reply::ndjson("{\"status\":\"pulling manifest\"}\n{\"error\":\"no such host\"}\n")
    })
    .await;
    browser.go(&server.http.url("/models")).await;
    browser.shows("found", "qwen3:8b").await;
    browser.press_action("Download qwen3:8b").await;
    browser.shows("pull-fault", "no such host").await;
    assert!(browser.text("pull-title").await.contains("is not downloaded"));
}

#[tokio::test]
async fn a_model_becomes_the_default_in_the_settings() {
    let server = ModelServer::start(|| Reply::ndjson("{\"status\":\"success\"}\n")).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/models")).await;
    browser.shows("models", "qwen2:0.5b").await;
    // The first text model of the engine is the default already; the other one makes embeddings.
    server.add_tag("tinyllama:latest");
    let pulled = json!({ "model": "tinyllama", "stream": false });
    let request = server.http.client.post(server.http.url("/api/pull")).json(&pulled);
    assert!(request.send().await.unwrap().status().is_success());
    browser.reload().await;
    browser.shows("models", "tinyllama:latest").await;
    browser.press_action("Use as default tinyllama:latest").await;
    browser.shows("notice", "tinyllama:latest is the default model.").await;
    let written = std::fs::read_to_string(server.home.path().join("config.toml")).unwrap();
    assert!(written.contains("default_model = \"tinyllama:latest\""), "{written}");
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_model_that_is_downloaded_elsewhere_appears_by_itself() {
    let server = ModelServer::start(|| Reply::ndjson("{\"status\":\"success\"}\n")).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/models")).await;
    browser.shows("connection", "connected").await;
    browser.shows("models", "qwen2:0.5b").await;
    server.add_tag("tinyllama:latest");
    let pulled = json!({ "model": "tinyllama", "stream": false });
    let request = server.http.client.post(server.http.url("/api/pull")).json(&pulled);
    assert_eq!(request.send().await.unwrap().status(), 200);
    browser.shows("models", "tinyllama:latest").await;
}

#[tokio::test]
async fn a_list_of_models_that_comes_late_does_not_hide_a_new_model() {
    let server = ModelServer::start(|| Reply::ndjson("{\"status\":\"success\"}\n")).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/models")).await;
    browser.shows("connection", "connected").await;
    browser.shows("models", "qwen2:0.5b").await;
    browser.hold_answers("GET", "v1/model-files").await;
    browser.run("load()").await;
    browser.an_answer_is_held().await;
    server.add_tag("tinyllama:latest");
    let pulled = json!({ "model": "tinyllama", "stream": false });
    let request = server.http.client.post(server.http.url("/api/pull")).json(&pulled);
    assert_eq!(request.send().await.unwrap().status(), 200);
    browser.shows("models", "tinyllama:latest").await;
    browser.release_answers().await;
    let shown = browser.text("models").await;
    assert!(shown.contains("tinyllama:latest"), "{shown}");
}

#[tokio::test]
async fn an_older_list_of_downloads_does_not_hide_a_download() {
    let hold = Hold::new();
    let held = hold.clone();
    let server =
        ModelServer::start(move || Reply::ndjson(FIRST_STEPS).then_held(&held, "{\"status\":\"success\"}\n"))
            .await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/models")).await;
    browser.shows("connection", "connected").await;
    browser.shows("found", "qwen3:8b").await;
    browser.hold_answers("GET", "v1/model-files/downloads").await;
    browser.run("loadDownloads()").await;
    browser.an_answer_is_held().await;
    let request = server.http.client.post(server.http.url("/api/pull")).json(&json!({ "model": "tiny" }));
    let mut pulling = request.send().await.unwrap();
    browser.shows("downloads", "tiny").await;
    browser.release_answers().await;
    let shown = browser.text("downloads").await;
    assert!(shown.contains("tiny"), "{shown}");
    hold.release();
    while pulling.chunk().await.unwrap().is_some() {}
    browser.until("document.getElementById('downloads-section').hidden").await;
}

#[tokio::test]
async fn the_list_does_not_change_behind_a_question() {
    let server = ModelServer::start(|| Reply::ndjson("{\"status\":\"success\"}\n")).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/models")).await;
    browser.shows("connection", "connected").await;
    browser.shows("models", "qwen2:0.5b").await;
    browser.run("document.querySelector('[data-action=\"Delete qwen2:0.5b\"]').focus()").await;
    browser.press_action("Delete qwen2:0.5b").await;
    browser.shows("ask-title", "Delete qwen2:0.5b?").await;
    browser.run("window.card = document.querySelector('#models li')").await;
    browser
        .run("const real = loadAfterDialogs; loadAfterDialogs = (...load) => { window.changed = true; real(...load); }")
        .await;
    server.add_tag("tinyllama:latest");
    let pulled = json!({ "model": "tinyllama", "stream": false });
    let request = server.http.client.post(server.http.url("/api/pull")).json(&pulled);
    assert_eq!(request.send().await.unwrap().status(), 200);
    browser.until("window.changed").await;
    assert_eq!(browser.run("return window.card.isConnected").await, json!(true));
    browser.click("#ask-no").await;
    browser.shows("models", "tinyllama:latest").await;
    let focused = browser.run("return document.activeElement.dataset.action").await;
    assert_eq!(focused, "Delete qwen2:0.5b");
}

#[tokio::test]
async fn a_download_of_another_page_is_shown_until_it_ends() {
    let hold = Hold::new();
    let held = hold.clone();
    let server =
        ModelServer::start(move || Reply::ndjson(FIRST_STEPS).then_held(&held, "{\"status\":\"success\"}\n"))
            .await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/models")).await;
    browser.shows("connection", "connected").await;
    browser.shows("found", "qwen3:8b").await;
    let request = server.http.client.post(server.http.url("/api/pull")).json(&json!({ "model": "tiny" }));
    let mut pulling = request.send().await.unwrap();
    browser.shows("downloads", "tiny").await;
    browser.shows("downloads", "of 9.3\u{a0}GB").await;
    assert_accessible(&browser, "a download of another page").await;
    // A page that is opened later shows it too.
    browser.reload().await;
    browser.shows("downloads", "tiny").await;
    hold.release();
    while pulling.chunk().await.unwrap().is_some() {}
    browser.until("document.getElementById('downloads-section').hidden").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn without_a_model_the_page_says_what_to_do() {
    let server = TestServer::start(Arc::new(ScriptedEngine::saying(&["hi"]).with_models(&[]))).await;
    let browser = Browser::open(Device::PHONE).await;
    browser.go(&server.url("/models")).await;
    browser.shows("empty", "Choose a model below and download it.").await;
    // This server does not manage models.
    browser.shows("search-fault", "Start it with 'hob serve'").await;
    assert_accessible(&browser, "empty").await;
}

#[tokio::test]
async fn without_an_engine_the_page_says_how_to_get_one() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    engine.set_gone(true);
    let server = TestServer::start(Arc::clone(&engine) as _).await;
    let browser = Browser::open(Device::PHONE).await;
    browser.go(&server.url("/models")).await;
    browser.shows("empty", "No engine answers. Start one").await;
    assert_accessible(&browser, "no engine").await;
    engine.set_gone(false);
    browser.shows("models", "scripted").await;
}

#[tokio::test]
async fn a_member_reads_one_sentence_on_the_models_page() {
    let team = TeamParts::open();
    let member = team.create("ana", KeyRole::Member, json!({})).await;
    let server = team.start(loopback_config()).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url("/models")).await;
    browser.shows("models", "qwen3:8b").await;
    browser.run(&format!("sessionStorage.setItem('hob-api-key', {member:?})")).await;
    browser.reload().await;
    browser.shows("denied", "This page is for the owner: open it on the machine that runs Hob").await;
    assert_eq!(browser.text("content").await, "");
}

#[tokio::test]
async fn names_of_models_are_shown_as_text() {
    const HOSTILE: &str = "<img src=x onerror=\"document.title='broken in'\"><b>bold</b>";
    let server = TestServer::start(Arc::new(ScriptedEngine::saying(&["hi"]).with_models(&[HOSTILE]))).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url("/models")).await;
    browser.shows("models", HOSTILE).await;
    assert_eq!(browser.run("return document.querySelectorAll('main img, main b').length").await, json!(0));
    assert_eq!(browser.run("return document.title").await, Value::from("Hob: models"));
}

#[tokio::test]
async fn the_models_page_passes_the_accessibility_check() {
    let server = ModelServer::start(|| Reply::ndjson(FIRST_STEPS).then_silence()).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/models")).await;
    browser.shows("found", "qwen3:8b").await;
    browser.press_action("Download qwen3:8b").await;
    browser.shows("pull-text", "of 9.3\u{a0}GB").await;
    assert_accessible_on_all_screens(&browser).await;
    browser.click("#pull-cancel").await;
    browser.shows("pull-title", "is cancelled").await;
}
