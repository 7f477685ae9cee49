//! The dashboard in a browser.

use hob_config::ServerConfig;
use hob_testkit::{FakeServer, Outside, Reply};
use serde_json::json;

use super::axe::{assert_accessible, assert_accessible_on_all_screens};
use super::chromium::{Browser, Device};
use super::recording_server::RecordingServer;
use crate::admin::savings::call;
use crate::admin::usage::TeamParts;
use crate::fixtures::loopback_config;

/// Text that looks like markup.
const HOSTILE: &str = "<img src=x onerror=\"document.title='broken in'\"><b>bold</b>";

#[tokio::test]
async fn an_empty_dashboard_says_what_to_do_and_updates_by_itself() {
    let server = RecordingServer::open(&["qwen3:8b"]).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.dashboard()).await;
    browser.shows("empty", "hob ask").await;
    browser.shows("connection", "scripted answers").await;
    assert_eq!(browser.text("figures").await, "");

    server.ask_all().await;
    server.ask_all().await;
    // Against the cheapest of the three: 2,000 × $1.75 + 200 × $14 per million.
    browser.shows("saved", "$0.0063").await;
    for (id, text) in [
        ("saved-note", "compared with gpt-5.2"),
        ("calls", "2"),
        ("tokens", "2,200"),
        ("tokens-note", "2,000 read, 200 written"),
        ("latency", "ms"),
        ("first-token", "ms"),
        ("providers", "claude-opus-4.6"),
        ("models", "qwen3:8b"),
        ("recent", "qwen3:8b"),
        ("in-flight", "0"),
        ("queued", "0"),
        ("prices", "Prices as of 15 November 2026"),
    ] {
        browser.shows(id, text).await;
    }
    assert_eq!(browser.text("empty").await, "");
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn energy_has_a_tile_if_it_was_measured() {
    let server = RecordingServer::open(&["qwen3:8b"]).await;
    server.ask_all().await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.dashboard()).await;
    browser.shows("calls", "1").await;
    assert_eq!(browser.text("energy-tile").await, "");
    server.record(&[call(Some(45_000_000_000), None)]);
    browser.shows("energy", "12.5\u{a0}Wh").await;
    assert_eq!(browser.text("energy-note").await, "for 1 call");
    assert_accessible(&browser, "with energy").await;
}

/// A time zone in which it is noon now, so that the day does not end during a test. Its clocks never change.
fn zone_at_noon() -> String {
    let hour = jiff::Timestamp::now().as_second().rem_euclid(86_400) / 3_600;
    // Names of such zones have the opposite sign: `Etc/GMT-2` is two hours ahead.
    match 12 - hour {
        0 => "UTC".to_owned(),
        ahead @ 1.. => format!("Etc/GMT-{ahead}"),
        behind => format!("Etc/GMT+{}", -behind),
    }
}

#[tokio::test]
async fn provider_and_time_span_can_be_chosen_with_the_keyboard() {
    let server = RecordingServer::open(&["qwen3:8b"]).await;
    server.ask_all().await;
    let browser = Browser::open(Device::DARK).await;
    browser.devtools("Emulation.setTimezoneOverride", json!({ "timezoneId": zone_at_noon() })).await;
    browser.go(&server.dashboard()).await;
    browser.shows("saved", "$0.0032").await;

    browser.run("document.querySelector('#providers input:checked').focus()").await;
    // To the right of gpt-5.2.
    browser.press("\u{e014}").await;
    browser.shows("saved-note", "compared with claude-opus-4.6").await;
    browser.shows("saved", "$0.0075").await;

    browser.run("document.querySelector('[role=tab][aria-selected=true]').focus()").await;
    let (left, end) = ("\u{e012}", "\u{e010}");
    for (key, title, points) in [(left, "Today", 24), (end, "The last 30 days", 30)] {
        browser.press(key).await;
        browser.shows("readout", &format!("{title}: 1 answer, 1,000 read, 100 written, worth $0.0075")).await;
        assert_eq!(browser.run("return document.querySelectorAll('#chart g').length").await, points);
    }
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn numbers_follow_the_locale_of_the_browser() {
    let server = RecordingServer::open(&["qwen3:8b"]).await;
    server.ask_all().await;
    let browser = Browser::open(Device { locale: "de-DE", ..Device::DESKTOP }).await;
    browser.go(&server.dashboard()).await;
    browser.shows("saved", "0,0032\u{a0}$").await;
    browser.shows("tokens", "1.100").await;
    browser.shows("prices", "15. November 2026").await;
}

#[tokio::test]
async fn a_lost_server_is_reported_and_the_page_reconnects() {
    let server = RecordingServer::open(&["qwen3:8b"]).await;
    server.ask_all().await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.dashboard()).await;
    browser.shows("calls", "1").await;

    let stopped = server.stop().await;
    browser.shows("notice", "Hob does not answer. These figures are from").await;
    browser.shows("connection", "no connection").await;
    assert_eq!(browser.text("calls").await, "1", "what was known stays");

    let server = stopped.start().await;
    server.ask_all().await;
    browser.shows("calls", "2").await;
    browser.shows("connection", "scripted answers").await;
    assert_eq!(browser.text("notice").await, "");
}

#[tokio::test]
async fn an_error_of_the_page_is_not_reported_as_a_server_error() {
    let server = RecordingServer::open(&[]).await;
    let page = server.http.client.get(server.dashboard()).send().await.unwrap().text().await.unwrap();
    let proxy = FakeServer::start(move |request| match request.path.as_str() {
        "/dashboard" => Reply::new(200, "text/html; charset=utf-8", page.clone()),
        _ => Reply::json(200, r#"{"total_calls":1}"#),
    })
    .await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&format!("{}/dashboard", proxy.url())).await;
    browser.shows("notice", "Error in this page").await;
    let complaints = browser.complaints().await;
    assert!(
        complaints.iter().any(|line| line.contains("TypeError")),
        "the console says more: {complaints:?}"
    );
}

#[tokio::test]
async fn a_stranger_sees_the_totals_but_no_list_of_calls() {
    let network = Outside::find();
    let config = ServerConfig { host: "0.0.0.0".into(), ..ServerConfig::default() };
    let mut server = RecordingServer::open_with(&["qwen3:8b"], config).await;
    server.ask_all().await;
    server.http.address.set_ip(network.address());
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.dashboard()).await;
    browser.shows("calls", "1").await;
    browser.shows("models", "qwen3:8b").await;
    assert_eq!(browser.text("recent-card").await, "");
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn the_owner_sees_the_calls_of_each_key() {
    let team = TeamParts::open();
    let server = team.start(loopback_config()).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url("/dashboard")).await;
    browser.shows("empty", "hob ask").await;
    assert_eq!(browser.text("keys-card").await, "");
    team.record_failures("ana", &["out of memory", HOSTILE, "out of memory"]);
    browser.shows("keys", "out of memory").await;
    let row = "return [...document.querySelectorAll('#keys tr > *')].map((cell) => cell.innerText)";
    let row = browser.run(row).await;
    assert_eq!(row, json!(["ana", "3", "0", "–", "3\nout of memory", "–", "–"]));
    team.record_failures("ben", &[HOSTILE; 4]);
    browser.shows("keys", HOSTILE).await;
    assert_accessible_on_all_screens(&browser).await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_model_name_with_markup_is_shown_as_text() {
    let server = RecordingServer::open(&[HOSTILE]).await;
    server.ask_all().await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.dashboard()).await;
    browser.shows("models", HOSTILE).await;
    browser.shows("recent", HOSTILE).await;
    assert_eq!(browser.run("return document.querySelectorAll('main img, main b').length").await, json!(0));
    assert_eq!(browser.run("return document.title").await, json!("Hob: activity"));
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn the_page_asks_for_the_key_and_keeps_it_in_the_tab() {
    let api_key = Some("s3cret".to_owned().into());
    let server = RecordingServer::open_with(&[], ServerConfig { api_key, ..loopback_config() }).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.dashboard()).await;
    browser.shows("key-form", "needs an API key").await;
    browser.press("wrong\u{e007}").await;
    browser.shows("key-fault", "Wrong API key").await;
    browser.run("document.getElementById('key').focus()").await;
    browser.press("s3cret\u{e007}").await;
    browser.shows("empty", "hob ask").await;
    assert_eq!(browser.text("key-form").await, "");

    browser.go(&server.dashboard()).await;
    browser.shows("empty", "hob ask").await;
    let stored = browser.run("return [sessionStorage.length, localStorage.length, document.cookie]").await;
    assert_eq!(stored, json!([1, 0, ""]));
}

#[tokio::test]
async fn a_key_that_is_entered_while_the_page_asks_is_not_refused() {
    let api_key = Some("s3cret".to_owned().into());
    let server = RecordingServer::open_with(&[], ServerConfig { api_key, ..loopback_config() }).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.dashboard()).await;
    browser.shows("key-form", "needs an API key").await;
    // The page asks again when the user comes back to it.
    browser.hold_answers("GET", "v1/savings").await;
    browser.run("document.dispatchEvent(new Event('visibilitychange'))").await;
    browser.an_answer_is_held().await;
    browser.run("document.getElementById('key').focus()").await;
    browser.press("s3cret\u{e007}").await;
    browser.release_answers().await;
    browser.shows("empty", "hob ask").await;
    assert_eq!(browser.text("key-form").await, "");
}

#[tokio::test]
async fn a_hidden_page_sends_no_requests() {
    let server = RecordingServer::open(&["qwen3:8b"]).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.dashboard()).await;
    browser.shows("empty", "hob ask").await;
    // The event of a tab that moves to the background.
    let hide = |hidden: bool| {
        format!(
            "Object.defineProperty(document, 'hidden', {{ value: {hidden}, configurable: true }});
             document.dispatchEvent(new Event('visibilitychange'));"
        )
    };
    // Waits for a moment without a poll, because a poll sends two requests, one after the other.
    let hide_at_rest = format!(
        "const done = arguments[0];
        const look = () => {{
            if (!liveStream.isOpen || asking) return void setTimeout(look, 20);
            const real = window.fetch;
            window.sent = [];
            window.fetch = (address, options) => {{ sent.push(String(address)); return real(address, options); }};
            {}
            done();
        }};
        look();",
        hide(true)
    );
    browser.run_async(&hide_at_rest).await;
    server.ask_all().await;
    browser.run_async("setTimeout(arguments[0], 6000)").await;
    assert_eq!(browser.run("return sent").await, json!([]));
    browser.run(&hide(false)).await;
    browser.shows("calls", "1").await;
}

#[tokio::test]
async fn the_page_passes_the_accessibility_check() {
    let server = RecordingServer::open(&[
        "qwen3:8b",
        "a-very-long-name-of-a-model-that-somebody-made/at-home-Q4_K_M.gguf",
    ])
    .await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.dashboard()).await;
    browser.shows("empty", "hob ask").await;
    assert_accessible(&browser, "empty").await;
    server.ask_all().await;
    browser.shows("calls", "2").await;
    assert_accessible_on_all_screens(&browser).await;
    server.stop().await;
    browser.shows("notice", "Hob does not answer").await;
    assert_accessible(&browser, "away").await;
}
