//! The team page in a browser.

use hob_config::ServerConfig;
use hob_keys::{AuditActor, KeyRole};
use hob_testkit::Outside;
use serde_json::{Value, json};

use super::axe::{assert_accessible, assert_accessible_on_all_screens};
use super::chromium::{Browser, Device};
use crate::admin::usage::TeamParts;
use crate::fixtures::loopback_config;
use crate::key_fixtures::{get, post};
use crate::support::TestServer;

const ENTER: &str = "\u{e007}";

/// Enters text into a field of the form.
async fn enter(browser: &Browser, field: &str, text: &str) {
    browser.run(&format!("document.querySelector('#create-form [name={field}]').focus()")).await;
    browser.press(text).await;
}

async fn secret(browser: &Browser) -> String {
    let shown = browser.run("return document.getElementById('secret').value").await;
    shown.as_str().unwrap().to_owned()
}

async fn status_with(server: &TestServer, key: &str) -> u16 {
    get(server, "/v1/models", key).await.0
}

/// Creates, disables, enables, rotates and revokes a key.
async fn use_a_key_on(device: Device) {
    let team = TeamParts::open();
    let server = team.start(loopback_config()).await;
    let browser = Browser::open(device).await;
    browser.go(&server.url("/team")).await;
    browser.shows("no-keys", "No key yet. Create one above").await;

    browser.click("#create summary").await;
    for (field, text) in [
        ("models", "qwen*, auto"),
        ("parallel", "4"),
        ("budgets", "5 USD/month, 200k tokens/day"),
        ("expires", "90d"),
        ("name", "ana"),
    ] {
        enter(&browser, field, text).await;
    }
    browser.press(ENTER).await;
    browser.shows("secret-title", "The secret of ana").await;
    let first = secret(&browser).await;
    assert_eq!(status_with(&server, &first).await, 200);
    // The event of the change can load the keys again, and they are shown a moment after the secret.
    for shown in ["active", "member", "qwen*, auto", "of 5 USD/month", "0 of 200000 tokens/day", "4 at once"]
    {
        browser.shows("card-ana", shown).await;
    }
    browser
        .run(
            "window.taken = [];
             Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (text) => { taken.push(text); } } });",
        )
        .await;
    browser.click("#secret-copy").await;
    browser.until("document.getElementById('said').textContent === 'Copied.'").await;
    assert_eq!(browser.run("return taken").await, json!([first]));
    browser.click("#secret-done").await;
    assert_eq!((browser.text("secret-card").await, secret(&browser).await), (String::new(), String::new()));

    browser.press_action("disable ana").await;
    browser.shows("card-ana", "disabled").await;
    browser.until("document.activeElement.dataset.action === 'enable ana'").await;
    assert_eq!(status_with(&server, &first).await, 401);
    browser.press_action("enable ana").await;
    browser.shows("card-ana", "active").await;
    browser.until("document.activeElement.dataset.action === 'disable ana'").await;

    browser.press_action("rotate ana").await;
    browser.shows("ask-title", "Rotate ana?").await;
    browser.run("document.getElementById('ask-input').value = 'soon'").await;
    browser.click("#ask-yes").await;
    browser.shows("ask-fault", "Enter a number of hours").await;
    browser.run("document.getElementById('ask-input').value = '0'").await;
    browser.click("#ask-yes").await;
    browser.shows("secret-title", "The secret of ana").await;
    let second = secret(&browser).await;
    assert_eq!((status_with(&server, &first).await, status_with(&server, &second).await), (401, 200));

    browser.press_action("revoke ana").await;
    browser.shows("ask-title", "Revoke ana?").await;
    browser.click("#ask-no").await;
    assert_eq!(browser.text("ask").await, "");
    assert_eq!(status_with(&server, &second).await, 200);
    browser.press_action("revoke ana").await;
    browser.shows("ask-title", "Revoke ana?").await;
    browser.click("#ask-yes").await;
    browser.shows("card-ana", "revoked").await;
    assert_eq!(status_with(&server, &second).await, 401);
    browser.shows("changes", "key.revoke ana").await;
    browser.shows("chain", "The log is unbroken: 5 changes.").await;
    browser.assert_fits_the_screen(&format!("{device:?}")).await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_key_is_created_and_changed_on_a_desktop() {
    use_a_key_on(Device::DESKTOP).await;
}

#[tokio::test]
async fn a_key_is_created_and_changed_on_a_phone() {
    use_a_key_on(Device::PHONE).await;
}

#[tokio::test]
async fn what_is_wrong_with_the_form_is_said_at_its_field() {
    let team = TeamParts::open();
    let server = team.start(loopback_config()).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url("/team")).await;
    browser.shows("no-keys", "No key yet").await;
    browser.click("#create summary").await;
    let focused = "return document.activeElement.name";
    enter(&browser, "name", ENTER).await;
    browser.shows("create-fault", "Enter a name.").await;
    enter(&browser, "parallel", &format!("many{ENTER}")).await;
    enter(&browser, "name", &format!("a b{ENTER}")).await;
    browser.shows("create-fault", "Enter a whole number").await;
    assert_eq!(browser.run(focused).await, "parallel");
    browser.run("document.querySelector('#create-form [name=parallel]').value = ''").await;
    enter(&browser, "name", ENTER).await;
    browser.shows("create-fault", "is not a name for a key").await;
    assert_eq!(browser.run(focused).await, "name");
    assert_eq!(team.keys.list().await.unwrap(), []);
}

/// Enters values into the form that changes a key, and sends it.
async fn change(browser: &Browser, values: Value) {
    let script = "const form = document.getElementById('change-form');
        for (const [name, value] of Object.entries({values})) {
          const input = form.elements.namedItem(name);
          if (input.type === 'checkbox') input.checked = value; else input.value = value;
        }
        form.requestSubmit();";
    browser.run(&script.replace("{values}", &values.to_string())).await;
}

#[tokio::test]
async fn the_limits_and_rights_of_a_key_are_changed_on_its_card() {
    let team = TeamParts::open();
    let rules = json!({ "models": ["qwen*", "auto"], "parallel": 4, "requests_per_minute": 90, "budgets": ["5 USD/month"] });
    team.create("ana", KeyRole::Member, rules).await;
    let server = team.start(loopback_config()).await;
    let browser = Browser::open(Device::PHONE).await;
    browser.go(&server.url("/team")).await;
    browser.shows("card-ana", "4 at once").await;
    browser.press_action("change ana").await;
    browser.shows("change-title", "Change ana").await;
    let present =
        "return Object.fromEntries([...document.querySelectorAll('#change-form [name]')].map((input) =>
        [input.name, input.type === 'checkbox' ? input.checked : input.value]))";
    assert_eq!(
        browser.run(present).await,
        json!({
            "expires": "", "models": "qwen*, auto", "engines": "", "tools": "", "reach": "pure", "memory": "",
            "requests_per_minute": "90", "tokens_per_minute": "", "parallel": "4", "budgets": "5 USD/month",
            "cloud": false,
        })
    );

    let focused = "return document.activeElement.name";
    change(&browser, json!({ "parallel": "many" })).await;
    browser.shows("change-fault", "Enter a whole number").await;
    assert_eq!(browser.run(focused).await, "parallel");
    change(&browser, json!({ "parallel": "", "budgets": "0.5 tokens/day" })).await;
    browser.shows("change-fault", "has a part of a token").await;
    assert_eq!(browser.run(focused).await, "budgets");
    browser.assert_fits_the_screen("a change").await;
    let values = json!({ "budgets": "0.5k tokens/day", "models": "llama*", "reach": "read", "cloud": true });
    change(&browser, values).await;
    browser.shows("card-ana", "models: llama*").await;
    browser.until("document.activeElement.dataset.action === 'change ana'").await;
    assert_eq!(browser.text("change").await, "");
    let (_, key) = get(&server, "/v1/keys/ana", "").await;
    let fields = ["models", "reach", "cloud", "requests_per_minute", "parallel", "budgets", "expires_at"];
    assert_eq!(
        json!(fields.map(|field| &key[field])),
        json!([["llama*"], "read", true, 90, null, ["500 tokens/day"], null])
    );
    // Only what was changed is sent.
    let (_, audit) = get(&server, "/v1/audit?limit=1", "").await;
    assert_eq!(
        audit["data"][0]["detail"],
        json!({ "changed": {
            "budgets": ["500 tokens/day"], "cloud": true, "models": ["llama*"], "parallel": null, "reach": "read",
        } })
    );

    // Without a change, nothing is sent.
    browser.press_action("change ana").await;
    browser.shows("change-title", "Change ana").await;
    change(&browser, json!({})).await;
    browser.until("!document.getElementById('change').open").await;
    assert_eq!(get(&server, "/v1/audit?limit=1", "").await.1, audit);
}

/// The page in a browser, with the key `ana`.
async fn page_with_ana() -> (TeamParts, TestServer, Browser) {
    let team = TeamParts::open();
    team.create("ana", KeyRole::Member, json!({})).await;
    let server = team.start(loopback_config()).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url("/team")).await;
    browser.shows("card-ana", "active").await;
    (team, server, browser)
}

#[tokio::test]
async fn an_answer_that_comes_late_does_not_bring_an_older_state_back() {
    let (_team, _server, browser) = page_with_ana().await;
    // The page has asked for the keys, and waits for the log.
    browser.hold_answers("GET", "v1/audit").await;
    browser.run("load()").await;
    browser.an_answer_is_held().await;
    browser.press_action("disable ana").await;
    browser.shows("card-ana", "disabled").await;
    browser.release_answers().await;
    let card = browser.text("card-ana").await;
    assert!(card.contains("disabled"), "{card}");
}

/// Keeps the requests for the log until the test sends each of them.
const KEEP_REQUESTS_FOR_THE_LOG: &str = "
    const real = window.fetch;
    window.kept = [];
    window.fetch = async (address, options) => {
        if (String(address).startsWith('v1/audit')) await new Promise((send) => kept.push(send));
        return real(address, options);
    };";

#[tokio::test]
async fn the_focus_moves_to_the_opposite_action_also_if_a_later_load_shows_it() {
    let (_team, _server, browser) = page_with_ana().await;
    // The test itself loads the keys, as the event of a change does. No other load is under way.
    browser.until("liveStream.isOpen").await;
    browser.run("endLive()").await;
    browser.run_async("load().then(arguments[0])").await;
    browser.run(KEEP_REQUESTS_FOR_THE_LOG).await;
    browser.press_action("disable ana").await;
    browser.until("kept.length === 1").await;
    browser.run("load()").await;
    browser.until("kept.length === 2").await;
    // The load of the change ends, and shows nothing, because the later one has newer keys.
    browser.run("kept[0]()").await;
    browser.until("document.getElementById('said').textContent === 'ana is disabled.'").await;
    browser.run("kept[1]()").await;
    browser.shows("card-ana", "disabled").await;
    assert_eq!(browser.run("return document.activeElement.dataset.action").await, "enable ana");
}

#[tokio::test]
async fn the_reason_of_a_failure_stays_when_something_else_changes() {
    let (_team, server, browser) = page_with_ana().await;
    browser.shows("connection", "connected").await;
    let refuse = "const real = window.fetch;
        window.fetch = (address, options) => address.endsWith('/disable')
            ? Promise.resolve(new Response('{\"detail\":\"The disk is full.\"}', { status: 503 }))
            : real(address, options);";
    browser.run(refuse).await;
    browser.press_action("disable ana").await;
    browser.shows("notice", "The disk is full.").await;
    assert_eq!(post(&server, "/v1/keys", "", json!({ "name": "ben" })).await.0, 201);
    browser.shows("keys", "ben").await;
    assert_eq!(browser.text("notice").await, "The disk is full.");
}

#[tokio::test]
async fn a_member_reads_one_sentence_and_can_enter_an_owners_key() {
    let team = TeamParts::open();
    let member = team.create("ana", KeyRole::Member, json!({})).await;
    let owner = team.create("boss", KeyRole::Owner, json!({})).await;
    let server = team.start(loopback_config()).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url("/team")).await;
    browser.shows("keys", "ana").await;
    browser.run(&format!("sessionStorage.setItem('hob-api-key', {member:?})")).await;
    browser.reload().await;
    browser.shows("denied", "This page is for the owner: open it on the machine that runs Hob").await;
    assert_eq!(browser.text("team").await, "");
    let kept = browser.run("return sessionStorage.getItem('hob-api-key')").await;
    assert_eq!(kept, Value::from(member), "the chat page uses it");
    browser.run("document.getElementById('key').focus()").await;
    browser.press(&format!("{owner}{ENTER}")).await;
    browser.shows("keys", "boss").await;
    assert_eq!(
        (browser.text("denied").await, browser.text("key-form").await),
        (String::new(), String::new())
    );
}

#[tokio::test]
async fn the_new_secret_of_the_own_key_is_shown_and_used() {
    let team = TeamParts::open();
    let first = team.create("boss", KeyRole::Owner, json!({})).await;
    let server = team.start(loopback_config()).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url("/team")).await;
    browser.shows("keys", "boss").await;
    browser.run(&format!("sessionStorage.setItem('hob-api-key', {first:?})")).await;
    browser.reload().await;
    browser.shows("keys", "boss").await;
    browser.press_action("rotate boss").await;
    browser.shows("ask-title", "Rotate boss?").await;
    browser.run("document.getElementById('ask-input').value = '0'").await;
    browser.click("#ask-yes").await;
    browser.shows("secret-title", "The secret of boss").await;
    let second = secret(&browser).await;
    assert_eq!((status_with(&server, &first).await, status_with(&server, &second).await), (401, 200));
    let kept = browser.run("return sessionStorage.getItem('hob-api-key')").await;
    assert_eq!(kept, Value::from(second));
    assert_eq!(browser.text("key-form").await, "");
}

#[tokio::test]
async fn a_stranger_reads_the_same_sentence() {
    let network = Outside::find();
    let team = TeamParts::open();
    let config = ServerConfig { host: "0.0.0.0".into(), port: 0, ..ServerConfig::default() };
    let mut server = team.start(config).await;
    server.address.set_ip(network.address());
    let browser = Browser::open(Device::PHONE).await;
    browser.go(&server.url("/team")).await;
    browser.shows("denied", "or enter an owner's key").await;
    assert_eq!(browser.text("team").await, "");
}

#[tokio::test]
async fn the_page_asks_for_the_key_of_the_server() {
    let team = TeamParts::open();
    let config = ServerConfig { api_key: Some("s3cret".to_owned().into()), ..loopback_config() };
    let server = team.start(config).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url("/team")).await;
    browser.shows("key-form", "needs an API key").await;
    browser.press(&format!("wrong{ENTER}")).await;
    browser.shows("key-fault", "Wrong API key").await;
    browser.run("document.getElementById('key').focus()").await;
    browser.press(&format!("s3cret{ENTER}")).await;
    browser.shows("no-keys", "No key yet").await;
    assert_eq!(browser.text("key-form").await, "");
}

#[tokio::test]
async fn usage_and_hostile_names_are_shown_as_text() {
    const HOSTILE: &str = "<img src=x onerror=\"document.title='broken in'\"><b>bold</b>";
    let team = TeamParts::open();
    team.create("ana", KeyRole::Member, json!({ "models": [HOSTILE] })).await;
    team.record_failures("ana", &["no answer"]);
    team.keys.audit().note(AuditActor::terminal(), "model.pull", HOSTILE, &json!({}));
    let server = team.start(loopback_config()).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url("/team")).await;
    browser.shows("changes", HOSTILE).await;
    let card = browser.text("card-ana").await;
    assert!(card.contains(HOSTILE) && card.contains("1 call") && card.contains("1 failed"), "{card}");
    assert_eq!(browser.run("return document.querySelectorAll('main img, main b').length").await, json!(0));
    assert_eq!(browser.run("return document.title").await, json!("Hob: team"));
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn the_page_passes_the_accessibility_check() {
    let team = TeamParts::open();
    team.create("ana", KeyRole::Member, json!({ "parallel": 4, "budgets": ["5 USD/month"] })).await;
    team.create(&"long-name-".repeat(6), KeyRole::Owner, json!({})).await;
    let server = team.start(loopback_config()).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url("/team")).await;
    browser.shows("keys", "ana").await;
    browser.press_action("change ana").await;
    browser.shows("change-title", "Change ana").await;
    assert_accessible(&browser, "a change").await;
    browser.click("#change-cancel").await;
    browser.press_action("rotate ana").await;
    browser.shows("ask-title", "Rotate ana?").await;
    assert_accessible(&browser, "a question").await;
    browser.click("#ask-yes").await;
    browser.shows("secret-title", "The secret of ana").await;
    browser.click("#create summary").await;
    assert_accessible_on_all_screens(&browser).await;
}
