//! Answers that stream, are stopped, and break.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hob_engines::Style;
use hob_testkit::{FakeServer, Hold, Reply, ScriptedEngine};
use serde_json::{Value, json};

use super::{
    ENTER, ESCAPE, SHIFT, ask, ask_and_wait, becomes, count, engine_saying, only_chat, page_at, press_button,
    script_errors, select, server_for, server_with, settled, state, words, write,
};
use crate::fixtures::{calculating, parts};
use crate::pages::browser::axe::{assert_accessible, assert_accessible_on_all_screens};
use crate::pages::browser::chromium::{Browser, Device};
use crate::support::{FINISH, TestServer, WAIT_LIMIT, engine_at, models};

/// Text that looks like markup, and links that would run a script.
const HOSTILE: &str = "<script>document.title='broken in'</script>\n\n<img src=x onerror=\"document.title='broken in'\">\n\n\
    [click](javascript:document.title='broken in') [here](data:text/html,<script>alert(1)</script>)\n\n\
    ![pixel](https://tracker.example/pixel.png) and [fine](https://example.org/)\n\n\
    <iframe src=\"https://tracker.example\"></iframe><b onmouseover=x>bold</b>\n\n";

#[tokio::test]
async fn an_answer_streams_in_and_its_markdown_is_rendered() {
    let hold = Hold::new();
    let rest = "\n\n```rust\nfn main() {\n    println!(\"<b>\");\n}\n```\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n1. one\n2. `two`\n";
    let reply =
        Reply::sse(words("# The sky\n\nIt is **blu")).then_held(&hold, words("e**.") + &words(rest) + FINISH);
    let fake = engine_saying(reply).await;
    let server = server_for(engine_at(&fake, Style::VLLM)).await;
    let browser = page_at(&server, Device::DESKTOP).await;
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
    // It is announced once, at the end.
    browser.until("document.getElementById('said').textContent.includes('It is blue.')").await;

    let asked = fake.requests().into_iter().rfind(|request| request.method == "POST").unwrap();
    let sent: Value = serde_json::from_slice(&asked.body).unwrap();
    assert_eq!(sent["messages"], json!([{ "role": "user", "content": "Why is\nthe sky blue?" }]));
    assert_eq!((&sent["stream"], &sent["model"]), (&json!(true), &json!("m")));
    assert_eq!(script_errors(&browser).await, Vec::<String>::new());
}

#[tokio::test]
async fn hostile_markdown_does_nothing() {
    let table = "| x | y |\n|---|---|\n".to_owned() + &"| 1 | 2 |\n".repeat(6000) + "| the last | row |\n\n";
    let text = format!("{HOSTILE}{table}```\nnever closed <script>alert(1)</script>");
    let fake = engine_saying(Reply::sse(words(&text) + FINISH)).await;
    let server = server_for(engine_at(&fake, Style::VLLM)).await;
    let browser = page_at(&server, Device::DESKTOP).await;
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
    assert_eq!(
        count(&browser, "#thread :is(script, img, iframe, b, object, embed, svg, [onerror])").await,
        0
    );
    let links = browser.run("return [...document.querySelectorAll('#thread a')].map((one) => [one.textContent, one.href, one.rel])").await;
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
    assert_eq!(script_errors(&browser).await, Vec::<String>::new());
}

#[tokio::test]
async fn stop_cancels_the_engine_and_keeps_the_partial_answer() {
    let fake = engine_saying(Reply::sse(words("It is bl")).then_silence()).await;
    let server = server_for(engine_at(&fake, Style::VLLM)).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    ask(&browser, "Why is the sky blue?").await;
    browser.shows("thread", "It is bl").await;
    browser.press(ESCAPE).await;
    tokio::time::timeout(WAIT_LIMIT, fake.hung_up(1)).await.expect("the engine's request ends");
    browser.shows("thread", "Stopped here.").await;
    assert_eq!(state(&browser).await, "stopped");
    browser.shows("thread", "It is bl").await;
    settled(&browser).await;
    let saved = &only_chat(&server).await["data"][0]["answer"];
    assert_eq!((&saved["text"], &saved["ending"]), (&json!("It is bl"), &json!("stopped")));

    // The button does the same.
    press_button(&browser, ".message:last-child .actions", "Retry").await;
    browser.shows("stop", "Stop").await;
    // Waits for the engine's request, because nothing can be cancelled before it.
    let asked_again = async {
        while fake.requests().iter().filter(|request| request.method == "POST").count() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(WAIT_LIMIT, asked_again).await.expect("the engine is asked again");
    browser.click("#stop").await;
    tokio::time::timeout(WAIT_LIMIT, fake.hung_up(2)).await.expect("the engine's request ends");
    becomes(&browser, "stopped").await;
}

#[tokio::test]
async fn a_broken_answer_looks_broken_and_can_be_retried() {
    let whole = Arc::new(AtomicBool::new(false));
    let mended = Arc::clone(&whole);
    let fake =
        FakeServer::start(move |request| match (request.method.as_str(), mended.load(Ordering::Relaxed)) {
            ("GET", _) => models(),
            (_, false) => Reply::sse(words("It is bl")).then_cut(),
            (_, true) => Reply::sse(words("It is blue.") + FINISH),
        })
        .await;
    let server = server_for(engine_at(&fake, Style::VLLM)).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    ask(&browser, "Why is the sky blue?").await;
    browser.shows("thread", "Not complete:").await;
    assert_eq!(state(&browser).await, "failed");
    browser.shows("thread", "It is bl").await;
    settled(&browser).await;
    assert_accessible(&browser, "broken").await;
    let saved = &only_chat(&server).await["data"][0]["answer"];
    assert_eq!((&saved["text"], &saved["ending"]), (&json!("It is bl"), &json!("failed")));

    browser.go(&server.url("/dashboard")).await;
    browser.back().await;
    browser.shows("thread", "Not complete:").await;

    whole.store(true, Ordering::Relaxed);
    press_button(&browser, ".message:last-child .actions", "Retry").await;
    browser.shows("thread", "It is blue.").await;
    becomes(&browser, "complete").await;
    assert_eq!(count(&browser, ".message").await, 2);
    browser.shows("thread", "2 of 2").await;
}

/// The page behind a proxy, which answers questions with `reply` and knows nothing of chats.
async fn proxy_answering(page: String, reply: Reply) -> FakeServer {
    FakeServer::start(move |request| match request.path.as_str() {
        "/" => Reply::new(200, "text/html; charset=utf-8", page.clone()),
        "/health" => Reply::json(200, r#"{"status":"ok"}"#),
        "/v1/models" => models(),
        "/v1/chat/completions" => reply.clone(),
        "/pages/live" => Reply::json(403, "{}"),
        _ => Reply::new(502, "text/html", "<h1>Bad Gateway</h1>"),
    })
    .await
}

/// The page as Hob serves it.
async fn page_of_hob() -> String {
    let hob = TestServer::start(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    hob.client.get(hob.url("/")).send().await.unwrap().text().await.unwrap()
}

#[tokio::test]
async fn an_answer_without_its_end_is_never_complete() {
    // Hob itself would send an error first; a proxy in between would not.
    let page = page_of_hob().await;
    let ends = [
        (Reply::sse(words("It is bl")), "The answer broke off before its end."),
        (Reply::sse(words("It is bl")).then_cut(), "The connection broke before the answer ended."),
        (Reply::sse(words("It is bl") + "data: {\"choi\n\ndata: [DONE]\n\n"), "a part of it cannot be read"),
        (Reply::new(200, "text/html", "<h1>Welcome to the hotel</h1>"), "is not Hob"),
        (Reply::new(502, "text/html", "<h1>Bad Gateway</h1>"), "status 502"),
    ];
    let browser = Browser::open(Device::DESKTOP).await;
    for (reply, expected) in ends {
        let proxy = proxy_answering(page.clone(), reply).await;
        browser.go(&format!("{}/", proxy.url())).await;
        browser.shows("connection", "ready").await;
        ask(&browser, "Why is the sky blue?").await;
        browser.shows("thread", expected).await;
        assert_eq!(state(&browser).await, "failed", "{expected}");
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_rendered_is_shown_as_text() {
    let page = page_of_hob().await;
    let reply = Reply::sse(words("It is **bold**.\n\n<b>") + FINISH);
    let proxy = proxy_answering(page, reply).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&format!("{}/", proxy.url())).await;
    browser.shows("connection", "ready").await;
    ask(&browser, "What is it?").await;
    becomes(&browser, "complete").await;
    let shown = browser.run("return document.querySelector('.answer').textContent").await;
    assert_eq!(shown, "It is **bold**.\n\n<b>");
}

#[tokio::test]
async fn an_answer_shows_how_it_was_made() {
    let late = ": hob WARNING {\"warning\":\"loop-stopped\"}\n\n";
    let ending = FINISH.replace("\"stop\"", "\"length\"");
    let reply = Reply::sse(words("It is") + late + &ending).header("x-hob-warning", "context-compacted");
    let proxy = proxy_answering(page_of_hob().await, reply).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&format!("{}/", proxy.url())).await;
    browser.shows("connection", "ready").await;
    ask(&browser, "What is it?").await;
    becomes(&browser, "cut").await;
    let expected = "The conversation was too long for the model, so tool results were removed from it. The model repeated the same tool call, so \
        it was stopped here.";
    let shown = "return document.querySelector('.message:last-child .outcome').innerText";
    let shown = browser.run(shown).await;
    assert!(shown.as_str().unwrap().starts_with(expected), "{shown}");
    assert_accessible(&browser, "with warnings").await;
}

#[tokio::test]
async fn an_answer_shows_its_tokens_and_keeps_them() {
    let server = server_for(Arc::new(ScriptedEngine::saying(&["Because ", "of *air*."]))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    ask_and_wait(&browser, "Why is the sky blue?").await;
    let figures = "document.querySelector('.message:last-child .figures').textContent";
    let shown = browser.run(&format!("return {figures}")).await;
    assert!(shown.as_str().unwrap().starts_with("3 tokens read · 2 written"), "{shown}");
    // What it would have cost elsewhere comes with the prices, which only the owner gets.
    let priced = format!("{figures}.includes('saved $') && {figures}");
    let priced = browser.until(&priced).await;
    let saved = only_chat(&server).await["data"][0]["answer"].clone();
    assert_eq!(
        (&saved["text"], &saved["model"], &saved["ending"], &saved["usage"]["completion_tokens"]),
        (&json!("Because of *air*."), &json!("m"), &json!("complete"), &json!(2))
    );
    browser.reload().await;
    browser.until(&format!("document.querySelector('.figures') && {figures} === {priced}")).await;
}

#[tokio::test]
async fn a_question_without_a_saved_answer_says_so() {
    let server = server_for(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let post = async |path: String, body: Value| -> Value {
        server.client.post(server.url(&path)).json(&body).send().await.unwrap().json().await.unwrap()
    };
    let chat = post("/v1/chats".into(), json!({ "title": "Left" })).await;
    let id = chat["id"].as_str().unwrap();
    let question = json!({ "parent": null, "question": { "text": "Anyone there?", "attachments": [] } });
    post(format!("/v1/chats/{id}/turns"), question).await;

    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url(&format!("/#{id}"))).await;
    becomes(&browser, "missing").await;
    browser.shows("thread", "No answer was saved.").await;
    assert_accessible(&browser, "without an answer").await;
    press_button(&browser, ".message:last-child .actions", "Retry").await;
    becomes(&browser, "complete").await;
    browser.shows("thread", "hi").await;
}

#[tokio::test]
async fn the_steps_of_an_agent_are_shown() {
    let server = server_with(parts(calculating())).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    browser.until("document.getElementById('agent').options.length > 1").await;
    let offered =
        browser.run("return [...document.getElementById('agent').options].map((one) => one.value)").await;
    let offered: Vec<String> = serde_json::from_value(offered).unwrap();
    assert_eq!(offered[0], "");
    assert_eq!(offered[1..], hob_agents::AGENTS);

    select(&browser, "agent", "orchestrator").await;
    ask_and_wait(&browser, "What is 17 times 23?").await;
    browser.shows("thread", "It is 391.").await;
    let steps = "return [...document.querySelectorAll('.steps summary span, .steps pre')].map((one) => one.textContent)";
    let input = r#"{"expression":"17 * 23"}"#;
    let shown = browser.run(steps).await;
    for (index, expected) in ["calculator", input, "done", input].into_iter().enumerate() {
        assert_eq!(shown[index], expected, "{shown}");
    }
    assert!(shown[4].as_str().unwrap().contains("391"), "{shown}");
    browser.click(".steps summary").await;
    assert_accessible(&browser, "with steps").await;
    // The steps are saved, and the choice of the agent is remembered.
    browser.reload().await;
    browser.until("document.querySelectorAll('.steps li').length === 1").await;
    assert_eq!(browser.run(steps).await, shown);
    browser.go(&server.url("/")).await;
    browser.shows("connection", "ready").await;
    assert_eq!(browser.run("return document.getElementById('agent').value").await, "orchestrator");
}

#[tokio::test]
async fn code_is_coloured_and_formulas_are_mathml() {
    const ANSWER: &str = "```rust\nfn main() { let a = \"<b>\"; } // it\n```\n\nThen \\(x^2\\), and\n\n$$\\frac{1}{2}$$\n\n$\\unknown{x}$";
    let server = server_for(Arc::new(ScriptedEngine::saying(&[ANSWER]))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    ask_and_wait(&browser, "Show me").await;
    let spans = "return [...document.querySelectorAll('.answer code span')].map((one) => [one.className, one.textContent])";
    let expected = json!([
        ["code-keyword", "fn"],
        ["code-keyword", "let"],
        ["code-string", "\"<b>\""],
        ["code-comment", "// it"],
    ]);
    assert_eq!(browser.run(spans).await, expected);
    let code = browser.run("return document.querySelector('.answer pre code').textContent").await;
    assert_eq!(code, "fn main() { let a = \"<b>\"; } // it");
    let formulas = "return [...document.querySelectorAll('.answer math')].map((one) => [one.namespaceURI.split('/').pop(), one.firstElementChild.localName])";
    assert_eq!(browser.run(formulas).await, json!([["MathML", "msup"], ["MathML", "mfrac"]]));
    let source = browser.run("return document.querySelector('.answer .formula').textContent").await;
    assert_eq!(source, "$\\unknown{x}$");
    assert_accessible_on_all_screens(&browser).await;
    assert_eq!(script_errors(&browser).await, Vec::<String>::new());
}

#[tokio::test]
async fn an_answer_that_is_too_long_to_save_is_saved_in_part_and_says_so() {
    const SAID: &str = "document.querySelector('.outcome')?.textContent.includes('Only the beginning of this answer is saved')";
    let long: &'static str = "word ".repeat(300_000).leak();
    let server = server_for(Arc::new(ScriptedEngine::saying(vec![long].leak()))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    ask_and_wait(&browser, "Tell me everything").await;
    browser.until(SAID).await;
    let shown = browser.run("return chat.shown.answer.text.length").await;
    assert_eq!(shown, json!(long.len()), "the page has all of it");
    let saved = only_chat(&server).await;
    let answer = &saved["data"][0]["answer"];
    assert_eq!((answer["text"].as_str().unwrap().len(), &answer["ending"]), (1 << 20, &json!("cut")));
    browser.reload().await;
    browser.until(SAID).await;
}
