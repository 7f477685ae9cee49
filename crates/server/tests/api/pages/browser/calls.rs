//! The table of calls on the activity page.

use std::time::{Duration, SystemTime};

use hob_core::FinishReason;
use hob_keys::KeyRole;
use hob_telemetry::{CallDetails, Inference, InferenceEnd};
use serde_json::json;

use super::axe::assert_accessible_on_all_screens;
use super::chromium::{Browser, Device};
use crate::admin::savings::call;
use crate::admin::usage::TeamParts;
use crate::fixtures::loopback_config;
use crate::key_fixtures::post;

/// Text that looks like markup.
const HOSTILE: &str = "<img src=x onerror=\"document.title='broken in'\"><b>bold</b>";

/// Sixty calls of two keys, of which two failed.
fn record_calls(team: &TeamParts) {
    let now = SystemTime::now();
    let calls: Vec<Inference> = (0..60_u64)
        .map(|number| {
            let ending = match number % 30 {
                7 => InferenceEnd::Failed(format!("{HOSTILE} {number}")),
                _ => InferenceEnd::Complete(FinishReason::Stop),
            };
            Inference {
                started: now - Duration::from_secs(number),
                run: format!("run-{number}").into(),
                key: Some(if number < 55 { "ana" } else { "ben" }.into()),
                details: CallDetails {
                    request_id: Some(format!("req-{number}").into()),
                    route: Some("/v1/chat/completions"),
                    queued: Some(Duration::from_millis(3)),
                    host: Some("http://10.0.0.7:8000".into()),
                },
                ..call(Some(1_500_000), Some(ending))
            }
        })
        .collect();
    team.record.store().unwrap().record_batch(&calls, team.record.prices()).unwrap();
}

/// Enters text into a filter, as by hand.
async fn filter(browser: &Browser, name: &str, text: &str) {
    let script = format!(
        "const input = document.querySelector('#call-form [name={name}]');
         if (input.type === 'checkbox') input.checked = true; else input.value = {text:?};
         input.dispatchEvent(new Event('change', {{ bubbles: true }}));"
    );
    browser.run(&script).await;
}

/// Waits until the table has this many rows.
async fn has_rows(browser: &Browser, count: usize) {
    let wait = "const done = arguments[0];
        const look = () => { if (document.querySelectorAll('#call-rows tr').length === {count}) done(); else setTimeout(look, 20); };
        look();";
    browser.run_async(&wait.replace("{count}", &count.to_string())).await;
}

async fn read_calls_on(device: Device) {
    let team = TeamParts::open();
    record_calls(&team);
    let server = team.start(loopback_config()).await;
    let browser = Browser::open(device).await;
    browser.go(&server.url("/dashboard")).await;
    browser.shows("call-rows", "req-0").await;
    let first = "return [...document.querySelectorAll('#call-rows tr:first-child td')].slice(1).map((cell) => cell.innerText.replaceAll('\u{a0}', ' '))";
    assert_eq!(
        browser.run(first).await,
        json!([
            "stop",
            "qwen3:8b\nollama · http://10.0.0.7:8000",
            "ana",
            "/v1/chat/completions",
            "req-0\nrun-0",
            "10",
            "5\n250/s",
            "–",
            "20 ms",
            "3 ms",
            "1.5 J",
            "–"
        ])
    );
    browser.shows("call-note", "Page 1.").await;
    browser.run("document.getElementById('call-older').click()").await;
    browser.shows("call-rows", "req-59").await;
    has_rows(&browser, 10).await;
    assert_eq!(browser.text("call-older").await, "");
    browser.run("document.getElementById('call-newer').click()").await;
    browser.shows("call-rows", "req-0").await;

    filter(&browser, "outcome", "").await;
    has_rows(&browser, 2).await;
    let shown = browser.text("call-rows").await;
    assert!(shown.contains("req-7") && shown.contains("req-37") && shown.contains(HOSTILE), "{shown}");
    filter(&browser, "key", "ben").await;
    browser.shows("call-note", "No call matches.").await;
    assert_eq!(browser.run("return document.querySelectorAll('main img, main b').length").await, json!(0));
    browser.assert_fits_the_screen(&format!("{device:?}")).await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn calls_are_read_in_pages_and_filtered_on_a_desktop() {
    read_calls_on(Device::DESKTOP).await;
}

#[tokio::test]
async fn calls_are_read_in_pages_and_filtered_on_a_phone() {
    read_calls_on(Device::PHONE).await;
}

#[tokio::test]
async fn a_double_click_turns_one_page() {
    let team = TeamParts::open();
    record_calls(&team);
    let server = team.start(loopback_config()).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url("/dashboard")).await;
    browser.shows("call-rows", "req-0").await;
    let click_twice = "const button = document.getElementById('{id}'); button.click(); button.click()";
    browser.run(&click_twice.replace("{id}", "call-older")).await;
    browser.shows("call-rows", "req-59").await;
    browser.shows("call-note", "Page 2.").await;
    browser.run(&click_twice.replace("{id}", "call-newer")).await;
    browser.shows("call-rows", "req-0").await;
    browser.shows("call-note", "Page 1.").await;

    // The next page is not known until the calls of a filter have arrived.
    browser.hold_answers("GET", "v1/calls").await;
    filter(&browser, "key", "ben").await;
    browser.an_answer_is_held().await;
    browser.run("document.getElementById('call-older').click()").await;
    has_rows(&browser, 5).await;
    browser.shows("call-note", "Page 1.").await;
}

#[tokio::test]
async fn a_call_appears_by_itself_with_its_request_id() {
    let team = TeamParts::open();
    record_calls(&team);
    let server = team.start(loopback_config()).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url("/dashboard")).await;
    browser.shows("call-rows", "req-0").await;
    browser.until("liveStream.isOpen").await;
    let question = json!({ "model": "qwen3:8b", "messages": [{ "role": "user", "content": "hi" }] });
    let request =
        server.client.post(server.url("/v1/chat/completions")).header("x-request-id", "the-new-one");
    assert_eq!(request.json(&question).send().await.unwrap().status(), 200);
    browser.shows("call-rows", "the-new-one").await;
}

#[tokio::test]
async fn a_call_before_the_stream_is_open_appears_when_it_opens() {
    let team = TeamParts::open();
    record_calls(&team);
    let server = team.start(loopback_config()).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.hold_requests_of_next_page("pages/live").await;
    browser.go(&server.url("/dashboard")).await;
    browser.shows("call-rows", "req-0").await;
    let details = CallDetails { request_id: Some("the-new-one".into()), ..CallDetails::default() };
    let late = Inference { details, ..call(None, None) };
    team.record.store().unwrap().record_batch(&[late], team.record.prices()).unwrap();
    browser.release_requests().await;
    browser.shows("call-rows", "the-new-one").await;
}

#[tokio::test]
async fn a_member_sees_its_own_calls_and_no_savings() {
    let team = TeamParts::open();
    let member = team.create("ben", KeyRole::Member, json!({})).await;
    record_calls(&team);
    let server = team.start(loopback_config()).await;
    let question = json!({ "model": "qwen3:8b", "messages": [{ "role": "user", "content": "hi" }] });
    assert_eq!(post(&server, "/v1/chat/completions", &member, question).await.0, 200);
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url("/dashboard")).await;
    browser.run(&format!("sessionStorage.setItem('hob-api-key', {member:?})")).await;
    browser.reload().await;
    browser.shows("call-rows", "req-59").await;
    let keys = "return [...new Set([...document.querySelectorAll('#call-rows td:nth-child(4)')].map((cell) => cell.innerText))]";
    assert_eq!(browser.run(keys).await, json!(["ben"]));
    assert!(!browser.text("call-rows").await.contains("10.0.0.7"));
    let hidden =
        [browser.text("figures").await, browser.text("call-key").await, browser.text("notice").await];
    assert_eq!(hidden, ["", "", ""]);

    browser.shows("connection", "connected").await;
    browser.until("liveStream.isOpen").await;
    let question = json!({ "model": "qwen3:8b", "messages": [{ "role": "user", "content": "hi" }] });
    let request = server.client.post(server.url("/v1/chat/completions")).bearer_auth(&member);
    let request = request.header("x-request-id", "the-members-own");
    assert_eq!(request.json(&question).send().await.unwrap().status(), 200);
    browser.shows("call-rows", "the-members-own").await;
}

#[tokio::test]
async fn the_table_of_calls_passes_the_accessibility_check() {
    let team = TeamParts::open();
    record_calls(&team);
    let server = team.start(loopback_config()).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url("/dashboard")).await;
    browser.shows("call-rows", "req-0").await;
    assert_accessible_on_all_screens(&browser).await;
}
