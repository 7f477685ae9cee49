//! What somebody who talks to the house in a browser sees.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hob_agent::agent;
use hob_config::ServerConfig;
use hob_core::{Delta, FinishReason, Role};
use hob_engine::Style;
use hob_testkit::{FakeServer, Hold, Reply, ScriptedEngine};
use serde_json::{Value, json};

use super::axe::assert_accessible;
use super::chromium::{Browser, Reader};
use super::house::House;
use crate::agents::{at_home, calculating, parts};
use crate::client::{FINISH, PATIENCE, chunk, models};
use crate::support::{Running, engine_at};

const ENTER: &str = "\u{e007}";
const SHIFT: &str = "\u{e008}";
const ESCAPE: &str = "\u{e00c}";

/// Would be markup, were it not text; and links that would run something, were they followed.
const HOSTILE: &str = "<script>document.title='broken in'</script>\n\n<img src=x onerror=\"document.title='broken in'\">\n\n\
    [click](javascript:document.title='broken in') [here](data:text/html,<script>alert(1)</script>)\n\n\
    ![pixel](https://tracker.example/pixel.png) and [fine](https://example.org/)\n\n\
    <iframe src=\"https://tracker.example\"></iframe><b onmouseover=x>bold</b>\n\n";

fn words(text: &str) -> String {
    chunk(&json!({ "content": text }).to_string())
}

/// An engine of the chat-completions kind that answers every question alike.
async fn engine_saying(reply: Reply) -> FakeServer {
    FakeServer::start(move |request| if request.method == "GET" { models() } else { reply.clone() }).await
}

async fn page_at(server: &Running, reader: Reader) -> Browser {
    let browser = Browser::open(reader).await;
    browser.go(&server.url("/")).await;
    browser.shows("pulse", "ready").await;
    browser
}

async fn write(browser: &Browser, text: &str) {
    browser.run("document.getElementById('question').focus()").await;
    browser.press(text).await;
}

async fn ask(browser: &Browser, question: &str) {
    write(browser, &format!("{question}{ENTER}")).await;
}

async fn click(browser: &Browser, selector: &str) {
    browser.run(&format!("document.querySelector({selector:?}).click()")).await;
}

async fn count(browser: &Browser, selector: &str) -> Value {
    browser.run(&format!("return document.querySelectorAll({selector:?}).length")).await
}

/// How the last answer stands: `running`, `complete`, `stopped` or `broken`.
async fn state(browser: &Browser) -> Value {
    browser.run("return document.querySelector('.message:last-child').dataset.state").await
}

/// Waits until a condition of the page holds, and gives its value.
async fn until(browser: &Browser, condition: &str) -> Value {
    let wait = "const done = arguments[0];
        const look = () => { const found = {condition}; if (found) done(found); else setTimeout(look, 20); };
        look();";
    browser.run_async(&wait.replace("{condition}", condition)).await
}

async fn becomes(browser: &Browser, state: &str) {
    until(browser, &format!("document.querySelector('.message:last-child')?.dataset.state === {state:?}"))
        .await;
}

#[tokio::test]
async fn an_answer_streams_in_and_its_markdown_is_rendered() {
    let hold = Hold::new();
    let rest = "\n\n```rust\nfn main() {\n    println!(\"<b>\");\n}\n```\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n1. one\n2. `two`\n";
    let reply =
        Reply::sse(words("# The sky\n\nIt is **blu")).then_held(&hold, words("e**.") + &words(rest) + FINISH);
    let fake = engine_saying(reply).await;
    let server = Running::start(engine_at(&fake, Style::VLLM)).await;
    let browser = page_at(&server, Reader::DESK).await;
    browser.shows("empty", "What is on your mind?").await;

    write(&browser, &format!("Why is{SHIFT}{ENTER}{SHIFT}the sky blue?")).await;
    assert_eq!(
        browser.run("return document.getElementById('question').value").await,
        "Why is\nthe sky blue?"
    );
    browser.press(ENTER).await;
    browser.shows("thread", "It is **blu").await;
    assert_eq!(browser.text("stop").await, "Stop");
    assert_eq!(state(&browser).await, "running");
    assert_eq!(browser.text("empty").await, "");

    hold.release();
    becomes(&browser, "complete").await;
    let shown = browser
        .run(
            "const of = (selector) => [...document.querySelectorAll(`.answer ${selector}`)].map((one) => one.textContent);
             return [of('h3'), of('strong'), of('pre code'), of('figcaption span'), of('th'), of('td.right'), of('ol li'), of('li code')]",
        )
        .await;
    assert_eq!(
        shown,
        json!([
            ["The sky"],
            ["blue"],
            ["fn main() {\n    println!(\"<b>\");\n}"],
            ["rust"],
            ["a", "b"],
            ["2"],
            ["one", "two"],
            ["two"]
        ])
    );
    assert_eq!(browser.text("send").await, "Send");
    assert_eq!(browser.text("title").await, "Why is");
    let said = browser.run("return document.getElementById('said').textContent").await;
    assert!(said.as_str().unwrap().contains("It is blue."), "told once, at the end: {said}");

    let sent: Value = serde_json::from_slice(&fake.requests().pop().unwrap().body).unwrap();
    assert_eq!(sent["messages"], json!([{ "role": "user", "content": "Why is\nthe sky blue?" }]));
    assert_eq!((&sent["stream"], &sent["model"]), (&json!(true), &json!("m")));
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn hostile_markdown_does_nothing() {
    let table = "| x | y |\n|---|---|\n".to_owned() + &"| 1 | 2 |\n".repeat(6000) + "| the last | row |\n\n";
    let text = format!("{HOSTILE}{table}```\nnever closed <script>alert(1)</script>");
    let fake = engine_saying(Reply::sse(words(&text) + FINISH)).await;
    let server = Running::start(engine_at(&fake, Style::VLLM)).await;
    let browser = page_at(&server, Reader::DESK).await;
    ask(&browser, "Show me something").await;
    becomes(&browser, "complete").await;

    for shown in [
        "<script>document.title",
        "<img src=x onerror",
        "<iframe src",
        "<b onmouseover=x>bold</b>",
        "the last",
        "never closed <script>",
    ] {
        browser.shows("thread", shown).await;
    }
    assert_eq!(count(&browser, "main :is(script, img, iframe, b, object, embed, svg, [onerror])").await, 0);
    let links = browser.run("return [...document.querySelectorAll('main a')].map((one) => [one.textContent, one.href, one.rel])").await;
    let outward = "noopener noreferrer";
    let expected = json!([
        ["🖼 pixel", "https://tracker.example/pixel.png", outward],
        ["fine", "https://example.org/", outward],
        ["https://tracker.example", "https://tracker.example/", outward],
    ]);
    assert_eq!(links, expected);
    let title = browser.run("return document.title").await;
    assert_eq!(title, "Show me something · Hob");
    let asked = browser
        .run("return performance.getEntriesByType('resource').map((one) => new URL(one.name).host)")
        .await;
    assert!(
        asked.as_array().unwrap().iter().all(|host| *host == json!(server.address.to_string())),
        "{asked}"
    );
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn stopping_ends_the_engines_work_and_keeps_the_part() {
    let fake = engine_saying(Reply::sse(words("It is bl")).then_silence()).await;
    let server = Running::start(engine_at(&fake, Style::VLLM)).await;
    let browser = page_at(&server, Reader::DESK).await;
    ask(&browser, "Why is the sky blue?").await;
    browser.shows("thread", "It is bl").await;
    browser.press(ESCAPE).await;
    tokio::time::timeout(PATIENCE, fake.hung_up(1)).await.expect("the engine's request ends");
    browser.shows("thread", "Stopped here.").await;
    assert_eq!(state(&browser).await, "stopped");
    browser.shows("thread", "It is bl").await;

    // The button does the same.
    click(&browser, ".message:last-child .actions button:last-child").await;
    browser.shows("stop", "Stop").await;
    click(&browser, "#stop").await;
    tokio::time::timeout(PATIENCE, fake.hung_up(2)).await.expect("the engine's request ends");
    becomes(&browser, "stopped").await;
}

#[tokio::test]
async fn a_broken_answer_looks_broken_and_can_be_asked_for_again() {
    let whole = Arc::new(AtomicBool::new(false));
    let mended = Arc::clone(&whole);
    let fake =
        FakeServer::start(move |request| match (request.method.as_str(), mended.load(Ordering::Relaxed)) {
            ("GET", _) => models(),
            (_, false) => Reply::sse(words("It is bl")).then_cut(),
            (_, true) => Reply::sse(words("It is blue.") + FINISH),
        })
        .await;
    let server = Running::start(engine_at(&fake, Style::VLLM)).await;
    let browser = page_at(&server, Reader::DESK).await;
    ask(&browser, "Why is the sky blue?").await;
    browser.shows("thread", "Not complete:").await;
    assert_eq!(state(&browser).await, "broken");
    browser.shows("thread", "It is bl").await;
    assert_accessible(&browser, "broken").await;

    browser.go(&server.url("/dashboard")).await;
    browser.run("history.back()").await;
    browser.shows("thread", "Not complete:").await;

    whole.store(true, Ordering::Relaxed);
    click(&browser, ".message:last-child .actions button:last-child").await;
    browser.shows("thread", "It is blue.").await;
    becomes(&browser, "complete").await;
    assert_eq!(count(&browser, ".message").await, 2, "the broken one is gone");
}

#[tokio::test]
async fn an_answer_without_its_end_is_never_complete() {
    // Hob itself would send an error first. Whatever stands between it and the browser would not.
    let hob = Running::start(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let page = hob.client.get(hob.url("/")).send().await.unwrap().text().await.unwrap();
    let ends = [
        (Reply::sse(words("It is bl")), "The answer broke off before its end."),
        (Reply::sse(words("It is bl")).then_cut(), "The connection broke before the answer ended."),
        (Reply::sse(words("It is bl") + "data: {\"choi\n\ndata: [DONE]\n\n"), "a part of it cannot be read"),
        (Reply::new(200, "text/html", "<h1>Welcome to the hotel</h1>"), "is not Hob"),
        (Reply::new(502, "text/html", "<h1>Bad Gateway</h1>"), "status 502"),
    ];
    let browser = Browser::open(Reader::DESK).await;
    for (reply, told) in ends {
        let page = page.clone();
        let proxy = FakeServer::start(move |request| match request.path.as_str() {
            "/" => Reply::new(200, "text/html; charset=utf-8", page.clone()),
            "/health" => Reply::json(200, r#"{"status":"ok"}"#),
            "/v1/models" => models(),
            _ => reply.clone(),
        })
        .await;
        browser.go(&format!("{}/", proxy.url())).await;
        browser.shows("pulse", "ready").await;
        ask(&browser, "Why is the sky blue?").await;
        browser.shows("thread", told).await;
        assert_eq!(state(&browser).await, "broken", "{told}");
    }
}

#[tokio::test]
async fn conversations_survive_a_reload_and_are_deleted_when_told_to() {
    let engine = Arc::new(ScriptedEngine::saying(&["Because of ", "*air*."]));
    let server = Running::start(Arc::clone(&engine) as _).await;
    let browser = page_at(&server, Reader::DESK).await;
    ask(&browser, "Why is the sky blue?").await;
    becomes(&browser, "complete").await;
    ask(&browser, "And the sea?").await;
    until(&browser, "document.querySelectorAll('[data-state=complete]').length === 2").await;
    let heard: Vec<(Role, String)> = engine
        .requests()
        .pop()
        .unwrap()
        .messages
        .into_iter()
        .map(|message| (message.role, message.content.text().to_string()))
        .collect();
    let turn = |role, text: &str| (role, text.to_owned());
    assert_eq!(
        heard,
        [
            turn(Role::User, "Why is the sky blue?"),
            turn(Role::Assistant, "Because of *air*."),
            turn(Role::User, "And the sea?")
        ]
    );

    browser.reload().await;
    browser.shows("list", "Why is the sky blue?").await;
    browser.shows("thread", "And the sea?").await;
    assert_eq!(count(&browser, ".answer em").await, 2);

    click(&browser, "#new").await;
    browser.shows("empty", "What is on your mind?").await;
    ask(&browser, "Something else").await;
    becomes(&browser, "complete").await;
    assert_eq!(count(&browser, "#list li").await, 2);

    // The older one goes, comes back, and is opened again.
    click(&browser, "#list li:last-child button").await;
    browser.shows("undo", "Deleted: Why is the sky blue?").await;
    assert_eq!(count(&browser, "#list li").await, 1);
    click(&browser, "#undo-button").await;
    browser.shows("thread", "And the sea?").await;
    assert_eq!(count(&browser, "#list li").await, 2);
    click(&browser, "#list li:last-child button").await;
    browser.reload().await;
    browser.shows("list", "Something else").await;
    assert_eq!(count(&browser, "#list li").await, 1);
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn the_last_question_is_edited_and_what_was_said_is_taken_away() {
    let engine = Arc::new(ScriptedEngine::saying(&["Because:\n\n```sh\nls -l\n```\n"]));
    let server = Running::start(Arc::clone(&engine) as _).await;
    let browser = page_at(&server, Reader::DESK).await;
    ask(&browser, "Why is the sky gren?").await;
    becomes(&browser, "complete").await;
    click(&browser, ".user .actions button:last-child").await;
    browser.shows("editing", "Asking the last question anew").await;
    browser.press(ESCAPE).await;
    assert_eq!(browser.text("editing").await, "");
    click(&browser, ".user .actions button:last-child").await;
    write(&browser, &format!("{}blue?{ENTER}", "\u{e003}".repeat(5))).await;
    browser.shows("thread", "Why is the sky blue?").await;
    becomes(&browser, "complete").await;
    assert_eq!(count(&browser, ".message").await, 2);
    assert_eq!(engine.requests().pop().unwrap().messages.len(), 1);

    // What is put on the clipboard and into a file.
    browser
        .run(
            "window.taken = [];
             Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (text) => { taken.push(text); } } });
             URL.createObjectURL = (blob) => { blob.text().then((text) => taken.push(text)); return 'blob:x'; };
             HTMLAnchorElement.prototype.click = function () { taken.push(this.download); };",
        )
        .await;
    click(&browser, ".code button").await;
    browser.shows("thread", "Copied").await;
    click(&browser, ".message:last-child .actions button").await;
    click(&browser, "#export").await;
    let taken = until(&browser, "taken.length === 4 && taken").await;
    let answer = "Because:\n\n```sh\nls -l\n```\n";
    let file =
        format!("# Why is the sky blue?\n\n## You\n\nWhy is the sky blue?\n\n## Hob (m)\n\n{answer}\n");
    assert_eq!(taken, json!(["ls -l", answer, "why-is-the-sky-blue.md", file]));
}

#[tokio::test]
async fn an_agents_steps_are_seen() {
    let server = Running::start_system(parts(calculating()), at_home()).await;
    let browser = page_at(&server, Reader::DESK).await;
    let offered =
        browser.run("return [...document.getElementById('agent').options].map((one) => one.value)").await;
    let offered: Vec<String> = serde_json::from_value(offered).unwrap();
    assert_eq!(offered[0], "");
    assert!(offered[1..].iter().all(|name| agent(name).is_some()), "{offered:?}");

    browser
        .run(
            "const choice = document.getElementById('agent');
             choice.value = 'orchestrator';
             choice.dispatchEvent(new Event('change'));",
        )
        .await;
    ask(&browser, "What is 17 times 23?").await;
    browser.shows("thread", "It is 391.").await;
    becomes(&browser, "complete").await;
    let steps = browser
        .run("return [...document.querySelectorAll('.steps li span')].map((one) => one.textContent)")
        .await;
    assert_eq!((&steps[0], &steps[1]), (&json!("calculator"), &json!(r#"{"expression":"17 * 23"}"#)));
    assert!(steps[2].as_str().unwrap().contains("sec"), "{steps}");
    assert_accessible(&browser, "with steps").await;
    // The choice is remembered.
    browser.go(&server.url("/")).await;
    assert_eq!(browser.run("return document.getElementById('agent').value").await, "orchestrator");
}

#[tokio::test]
async fn a_model_is_chosen_and_one_that_is_gone_is_not_replaced() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]).with_models(&["small", "large"]));
    let server = Running::start(Arc::clone(&engine) as _).await;
    let browser = page_at(&server, Reader::DESK).await;
    let choose = |model: &str| {
        format!(
            "const choice = document.getElementById('model');
             chooseModel({model:?});
             choice.dispatchEvent(new Event('change'));
             return [...choice.options].map((one) => one.value)"
        )
    };
    assert_eq!(browser.run(&choose("large")).await, json!(["default", "auto", "small", "large"]));
    ask(&browser, "Hello").await;
    becomes(&browser, "complete").await;
    browser.shows("thread", "large").await;
    assert_eq!(engine.requests()[0].model, "large");

    // Where the choice is left to Hob, it says which it was and why.
    browser.run(&choose("auto")).await;
    ask(&browser, "Hello again").await;
    until(&browser, "document.querySelectorAll('[data-state=complete]').length === 2").await;
    let by = browser.run("return document.querySelector('.message:last-child .model').textContent").await;
    let chosen = engine.requests().pop().unwrap().model;
    assert!(by.as_str().unwrap().starts_with(&format!("{chosen} · ")), "{by}");

    browser.run(&choose("gone")).await;
    ask(&browser, "And again").await;
    becomes(&browser, "broken").await;
    browser.shows("thread", "'gone'").await;
    assert_eq!(engine.requests().len(), 2);
}

#[tokio::test]
async fn a_key_is_asked_for_and_kept_in_the_tab() {
    let api_key = Some("s3cret".to_owned().into());
    let house = House::open_with(&["qwen3:8b"], ServerConfig { api_key, ..ServerConfig::default() }).await;
    let browser = Browser::open(Reader::DESK).await;
    browser.go(&house.server.url("/")).await;
    browser.shows("key-form", "wants its key").await;
    browser.shows("pulse", "locked").await;
    assert_eq!(browser.text("composer").await, "");
    assert_accessible(&browser, "locked").await;
    browser.press(&format!("wrong{ENTER}")).await;
    browser.shows("key-fault", "not the key").await;
    browser.run("document.getElementById('key').focus()").await;
    browser.press(&format!("s3cret{ENTER}")).await;
    browser.shows("pulse", "ready").await;
    assert_eq!(browser.text("key-form").await, "");
    ask(&browser, "Hello?").await;
    becomes(&browser, "complete").await;

    browser.reload().await;
    browser.shows("pulse", "ready").await;
    // The dashboard knows it too.
    browser.go(&house.dashboard()).await;
    browser.shows("calls", "1").await;
    let stored = browser
        .run("return [JSON.stringify(sessionStorage), JSON.stringify(localStorage), document.cookie]")
        .await;
    assert_eq!((&stored[0], &stored[2]), (&json!(r#"{"hob-api-key":"s3cret"}"#), &json!("")));
    assert!(!stored[1].as_str().unwrap().contains("s3cret"), "{stored}");
}

#[tokio::test]
async fn a_server_that_went_away_is_missed_and_found_again() {
    let house = House::open(&["qwen3:8b"]).await;
    let browser = page_at(&house.server, Reader::DESK).await;
    let stopped = house.stop().await;
    ask(&browser, "Anybody there?").await;
    becomes(&browser, "broken").await;
    browser.shows("thread", "Hob does not answer.").await;
    browser.shows("notice", "Hob does not answer.").await;
    browser.shows("pulse", "no connection").await;

    let _house = stopped.start().await;
    browser.shows("pulse", "ready").await;
    assert_eq!(browser.text("notice").await, "");
    click(&browser, ".message:last-child .actions button:last-child").await;
    browser.shows("thread", "Hello").await;
    becomes(&browser, "complete").await;
}

#[tokio::test]
async fn a_house_without_an_engine_says_what_to_do_and_goes_on_by_itself() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    engine.set_healthy(false);
    let server = Running::start(Arc::clone(&engine) as _).await;
    let browser = Browser::open(Reader::DESK).await;
    browser.go(&server.url("/")).await;
    browser.shows("notice", "hob doctor").await;
    browser.shows("pulse", "no engine").await;
    engine.set_healthy(true);
    browser.shows("pulse", "ready").await;
    assert_eq!(browser.text("notice").await, "");
}

#[tokio::test]
async fn a_browser_without_room_says_so_and_goes_on() {
    let server = Running::start(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let browser = page_at(&server, Reader::DESK).await;
    browser
        .run(
            "for (let size = 1 << 22, number = 0; size >= 1; ) {
                 try { localStorage.setItem(`filler ${number++}`, 'x'.repeat(size)); } catch { size = Math.floor(size / 2); }
             }",
        )
        .await;
    ask(&browser, "Is there room?").await;
    becomes(&browser, "complete").await;
    browser.shows("full", "no more room").await;
    browser.shows("thread", "hi").await;
    browser.run("for (const key of Object.keys(localStorage)) if (key.startsWith('filler')) localStorage.removeItem(key)").await;
    ask(&browser, "And now?").await;
    until(&browser, "document.querySelectorAll('[data-state=complete]').length === 2").await;
    assert_eq!(browser.text("full").await, "");
    assert_eq!(count(&browser, "#list li").await, 1);
}

#[tokio::test]
async fn nothing_keeps_anybody_from_using_it() {
    let text = "## Why\n\nA paragraph with `code`, a [link](https://example.org) and **weight**.\n\n\
        ```rust\nlet a_line_that_is_longer_than_any_screen = \"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\";\n```\n\n\
        | a | rather | wide | table | with | many | columns | and | more | of | them |\n|-|-|-|-|-|-|-|-|-|-|-|\n| 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 |\n\n\
        > quoted\n\n- [x] done\n- [ ] open\n\nAWordThatHasNoPlaceToBreakAWordThatHasNoPlaceToBreakAWordThatHasNoPlaceToBreakAWordThatHasNoPlaceToBreak";
    let engine = ScriptedEngine::new(move |_| {
        vec![
            Ok(Delta::Reasoning { choice: 0, text: "Let me think.".into() }),
            Ok(Delta::text(text)),
            Ok(Delta::Finish { choice: 0, reason: FinishReason::Length }),
            Ok(Delta::Done { usage: None }),
        ]
    });
    let long = "a-very-long-name-of-a-model-that-somebody-made/at-home-Q4_K_M.gguf";
    let server = Running::start(Arc::new(engine.with_models(&[long]))).await;
    let browser = page_at(&server, Reader::DESK).await;
    assert_accessible(&browser, "empty").await;
    ask(&browser, "Why? AndAQuestionThatHasNoPlaceToBreakAndAQuestionThatHasNoPlaceToBreakAndAQuestionThatHasNoPlaceToBreak").await;
    becomes(&browser, "complete").await;
    browser.shows("thread", "Cut here: the answer reached its length limit.").await;
    for reader in [Reader::DESK, Reader::NIGHT, Reader::PHONE, Reader { scheme: "dark", ..Reader::PHONE }] {
        browser.become_reader(reader).await;
        assert_accessible(&browser, &format!("{reader:?}")).await;
        let widths = browser.run("return [document.documentElement.scrollWidth, innerWidth]").await;
        assert_eq!(widths[0], widths[1], "nothing sticks out: {reader:?}");
    }

    // On a phone the list is behind a button, and Escape puts it away.
    let put_away = "getComputedStyle(document.getElementById('side')).visibility === 'hidden'";
    until(&browser, put_away).await;
    click(&browser, "#menu").await;
    browser.shows("list", "Why?").await;
    assert_accessible(&browser, "the list on a phone").await;
    browser.press(ESCAPE).await;
    until(&browser, put_away).await;
    assert_eq!(browser.run("return document.activeElement.id").await, "menu");
}
