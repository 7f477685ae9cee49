//! The page of tasks in a browser.

use std::sync::Arc;

use hob_config::ServerConfig;
use hob_core::Engine;
use hob_keys::KeyRole;
use hob_testkit::{Outside, ScriptedEngine};
use serde_json::{Value, json};

use super::axe::{assert_accessible, assert_accessible_on_all_screens};
use super::chromium::{Browser, Device};
use crate::admin::tasks::TaskServer;
use crate::fixtures::{loopback_config, parts};
use crate::key_fixtures::{create_key, get, key_parts, key_service, post};
use crate::support::TestServer;

/// Sets a field of the form, as a user does.
async fn set(browser: &Browser, field: &str, value: &str) {
    let set = format!(
        "const field = document.querySelector('#create-form [name={field}]'); field.value = {}; \
         field.dispatchEvent(new Event('input', {{ bubbles: true }})); field.dispatchEvent(new Event('change', {{ bubbles: true }}));",
        json!(value)
    );
    browser.run(&set).await;
}

fn task(prompt: &str) -> Value {
    json!({ "prompt": prompt, "schedule_type": "cron", "schedule_value": "0 9 * * *", "timezone": "UTC" })
}

/// The id of the only task.
async fn only_id(server: &TestServer) -> String {
    let (_, list) = get(server, "/v1/tasks", "").await;
    assert_eq!(list["tasks"].as_array().unwrap().len(), 1, "{list}");
    list["tasks"][0]["id"].as_str().unwrap().to_owned()
}

async fn use_tasks_on(device: Device) {
    let server = TaskServer::open().await;
    let browser = Browser::open(device).await;
    browser.go(&server.http.url("/tasks")).await;
    browser.shows("empty", "No tasks yet").await;
    browser.until("liveStream.isOpen").await;
    browser.click("#create summary").await;
    browser.until("document.querySelectorAll('#preview li').length === 5").await;
    browser.shows("preview", "09:00 UTC").await;
    set(&browser, "schedule_type", "once").await;
    browser.until("document.querySelectorAll('#preview li').length === 1").await;
    set(&browser, "schedule_type", "interval").await;
    set(&browser, "every", "2").await;
    browser.until("document.querySelectorAll('#preview li').length === 5").await;
    set(&browser, "schedule_type", "every").await;
    set(&browser, "words", "daily 6:15").await;
    browser.shows("preview", "06:15 UTC").await;
    set(&browser, "words", "dayly 6:15").await;
    browser.shows("preview-fault", "Did you mean 'daily 6:15'?").await;
    set(&browser, "schedule_type", "cron").await;
    set(&browser, "cron", "30 7 * * *").await;
    set(&browser, "timezone", "Europe/Berlin").await;
    browser.shows("preview", "07:30 Europe/Berlin").await;
    browser.until("document.querySelector('#create-form [name=channel]').options.length === 2").await;
    set(&browser, "prompt", "Say hello.").await;
    set(&browser, "agent", "none").await;
    set(&browser, "model", "qwen3:8b").await;
    set(&browser, "channel", "telegram").await;
    set(&browser, "retries", "1").await;
    browser.assert_fits_the_screen(&format!("the form, {device:?}")).await;
    browser.click("#create-form [type=submit]").await;
    browser.shows("list", "Say hello.").await;
    for shown in [
        "every day at 07:30",
        "30 7 * * *, Europe/Berlin",
        "07:30 Europe/Berlin",
        "qwen3:8b",
        "telegram",
        "active",
    ] {
        browser.shows("list", shown).await;
    }
    assert_eq!(browser.text("empty").await, "");
    let id = only_id(&server.http).await;
    browser.until(&format!("document.activeElement.dataset.action === 'title {id}'")).await;

    browser.press_action(&format!("log {id}")).await;
    browser.shows(&format!("log-{id}"), "It has not run yet").await;
    browser.press_action(&format!("run now {id}")).await;
    browser.shows(&format!("log-{id}"), "succeeded").await;
    browser.shows(&format!("log-{id}"), "Hello").await;
    browser.shows(&format!("log-{id}"), "delivered to telegram").await;
    browser.shows(&format!("log-{id}"), "took").await;
    browser.press_action(&format!("pause {id}")).await;
    browser.shows("list", "paused").await;
    browser.until(&format!("document.activeElement.dataset.action === 'resume {id}'")).await;
    browser.press_action(&format!("resume {id}")).await;
    browser.until(&format!("document.activeElement.dataset.action === 'pause {id}'")).await;
    // What another caller does is shown without a reload.
    let (status, other) = post(&server.http, "/v1/tasks", "", task("Of another caller.")).await;
    assert_eq!(status, 201, "{other}");
    browser.shows("list", "Of another caller.").await;
    browser.shows("count", "2 active tasks").await;
    browser.assert_fits_the_screen(&format!("{device:?}")).await;
    for id in [&id, other["id"].as_str().unwrap()] {
        browser.press_action(&format!("delete {id}")).await;
        browser.shows("ask-title", "Delete the task?").await;
        browser.click("#ask-yes").await;
        browser.until(&format!("document.getElementById('task-{id}') === null")).await;
    }
    browser.shows("empty", "No tasks yet").await;
    // The schedule that cannot be read.
    let complaints = browser.complaints().await;
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    assert!(complaints[0].contains("/v1/tasks/preview"), "{complaints:?}");
}

#[tokio::test]
async fn a_task_is_created_run_and_deleted_on_a_desktop() {
    use_tasks_on(Device::DESKTOP).await;
}

#[tokio::test]
async fn a_task_is_created_run_and_deleted_on_a_phone() {
    use_tasks_on(Device::PHONE).await;
}

#[tokio::test]
async fn a_task_with_a_name_is_shown_by_it() {
    let server = TaskServer::open().await;
    let mut named = task("Summarize the news.");
    named["metadata"] = json!({ "name": "briefing" });
    assert_eq!(post(&server.http, "/v1/tasks", "", named).await.0, 201);
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/tasks")).await;
    browser.shows("list", "Summarize the news.").await;
    assert_eq!(browser.run("return document.querySelector('#list h3').textContent").await, "briefing");
}

#[tokio::test]
async fn a_log_that_comes_late_does_not_hide_a_newer_one() {
    let server = TaskServer::open().await;
    assert_eq!(post(&server.http, "/v1/tasks", "", task("Say hello.")).await.0, 201);
    let id = only_id(&server.http).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/tasks")).await;
    browser.shows("list", "Say hello.").await;
    browser.until("liveStream.isOpen").await;
    browser.hold_answers("GET", &format!("v1/tasks/{id}/logs")).await;
    browser.press_action(&format!("log {id}")).await;
    browser.an_answer_is_held().await;
    browser.press_action(&format!("run now {id}")).await;
    let log = format!("log-{id}");
    browser.shows(&log, "succeeded").await;
    browser.release_answers().await;
    let shown = browser.text(&log).await;
    assert!(shown.contains("succeeded"), "{shown}");
}

#[tokio::test]
async fn choices_that_come_late_do_not_replace_the_chosen_model() {
    let server = TaskServer::open().await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/tasks")).await;
    browser.shows("empty", "No tasks yet").await;
    browser.hold_answers("GET", "v1/models").await;
    browser.click("#create summary").await;
    browser.an_answer_is_held().await;
    // The form is closed and opened again.
    browser.click("#create summary").await;
    browser.run_async("requestAnimationFrame(() => requestAnimationFrame(() => arguments[0]()))").await;
    browser.click("#create summary").await;
    browser.until("document.querySelector('#create-form [name=channel]').options.length === 2").await;
    set(&browser, "model", "qwen3:8b").await;
    set(&browser, "channel", "telegram").await;
    browser.release_answers().await;
    let chosen = "return ['model', 'channel'].map((name) => document.querySelector(`#create-form [name=${name}]`).value)";
    assert_eq!(browser.run(chosen).await, json!(["qwen3:8b", "telegram"]));
}

#[tokio::test]
async fn what_is_wrong_with_a_task_is_said_at_its_field() {
    let server = TaskServer::open().await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/tasks")).await;
    browser.shows("empty", "No tasks yet").await;
    browser.click("#create summary").await;
    browser.until("document.querySelectorAll('#preview li').length === 5").await;
    set(&browser, "cron", "at nine").await;
    browser.shows("preview-fault", "'at nine' is not a cron expression").await;
    let is_marked = "document.querySelector('#create-form [name=cron]').ariaInvalid === 'true'";
    browser.until(is_marked).await;
    assert_eq!(browser.text("preview").await, "");
    set(&browser, "cron", "@daily").await;
    browser.until("document.querySelectorAll('#preview li').length === 5").await;
    assert_eq!(browser.text("preview-fault").await, "");
    browser.click("#create-form [type=submit]").await;
    browser.shows("create-fault", "the prompt is empty").await;
    browser.until("document.activeElement.name === 'prompt'").await;
    set(&browser, "prompt", "p").await;
    set(&browser, "timeout", "0").await;
    browser.click("#create-form [type=submit]").await;
    browser.shows("create-fault", "between 1 and 86400 seconds").await;
    browser.until("document.activeElement.name === 'timeout'").await;
    let (_, list) = get(&server.http, "/v1/tasks", "").await;
    assert_eq!(list["tasks"], json!([]));
}

#[tokio::test]
async fn a_member_sees_its_own_tasks_and_a_stranger_one_sentence() {
    let network = Outside::find();
    let home = tempfile::tempdir().unwrap();
    let keys = key_service();
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]).with_models(&["m"])) as Arc<dyn Engine>;
    let server = TestServer::start_parts(key_parts(&home, &keys, parts(engine)), loopback_config()).await;
    let ana = create_key(&keys, "ana", KeyRole::Member, json!({})).await;
    assert_eq!(post(&server, "/v1/tasks", "", task("Of the owner.")).await.0, 201);
    assert_eq!(post(&server, "/v1/tasks", &ana, task("Of the member.")).await.0, 201);
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url("/tasks")).await;
    browser.shows("list", "Of the owner.").await;
    browser.run(&format!("sessionStorage.setItem('hob-api-key', {ana:?})")).await;
    browser.reload().await;
    browser.shows("list", "Of the member.").await;
    assert!(!browser.text("list").await.contains("Of the owner."));

    let open = ServerConfig { host: "0.0.0.0".into(), port: 0, ..ServerConfig::default() };
    let home = tempfile::tempdir().unwrap();
    let engine = Arc::new(ScriptedEngine::saying(&["hi"])) as Arc<dyn Engine>;
    let mut stranger = TestServer::start_parts(key_parts(&home, &key_service(), parts(engine)), open).await;
    stranger.address.set_ip(network.address());
    browser.go(&stranger.url("/tasks")).await;
    browser.shows("denied", "This page is for the owner and for members").await;
    assert_eq!(browser.text("tasks").await, "");
}

#[tokio::test]
async fn hostile_prompts_and_answers_are_shown_as_text() {
    const HOSTILE: &str = "<img src=x onerror=\"document.title='broken in'\"><b>bold</b>";
    let home = tempfile::tempdir().unwrap();
    let engine = Arc::new(ScriptedEngine::saying(&[HOSTILE]).with_models(&["m"])) as Arc<dyn Engine>;
    let server =
        TestServer::start_parts(key_parts(&home, &key_service(), parts(engine)), loopback_config()).await;
    assert_eq!(post(&server, "/v1/tasks", "", task(HOSTILE)).await.0, 201);
    let id = only_id(&server).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url("/tasks")).await;
    browser.shows("list", HOSTILE).await;
    browser.until("liveStream.isOpen").await;
    browser.press_action(&format!("run now {id}")).await;
    browser.shows(&format!("log-{id}"), HOSTILE).await;
    assert_eq!(browser.run("return document.querySelectorAll('main img, main b').length").await, json!(0));
    assert_eq!(browser.run("return document.title").await, json!("Hob: tasks"));
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn the_page_passes_the_accessibility_check() {
    let server = TaskServer::open().await;
    assert_eq!(
        post(&server.http, "/v1/tasks", "", task(&"A long prompt without an end. ".repeat(30))).await.0,
        201
    );
    let id = only_id(&server.http).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/tasks")).await;
    browser.shows("list", "A long prompt").await;
    browser.until("liveStream.isOpen").await;
    browser.press_action(&format!("run now {id}")).await;
    browser.shows(&format!("log-{id}"), "Hello").await;
    browser.click("#create summary").await;
    browser.until("document.querySelectorAll('#preview li').length === 5").await;
    assert_accessible_on_all_screens(&browser).await;
    browser.press_action(&format!("delete {id}")).await;
    browser.shows("ask-title", "Delete the task?").await;
    assert_accessible(&browser, "a question").await;
}
