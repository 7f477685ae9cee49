//! How smooth the chat page stays with long content: the times between two pictures of the browser.

use std::sync::Arc;

use hob_testkit::ScriptedEngine;
use serde_json::Value;

use super::{ask, page_at, server_for, settled};
use crate::pages::browser::chromium::{Browser, Device};

/// Collects the time between two pictures until `smooth.isOver`.
const WATCH: &str = "
    globalThis.smooth = { times: [], isOver: false };
    let last = performance.now();
    const next = (now) => {
        smooth.times.push(now - last);
        last = now;
        if (!smooth.isOver) requestAnimationFrame(next);
    };
    requestAnimationFrame(next);";

/// Scrolls through a list of ten thousand conversations, a picture for each step.
const SCROLL: &str = "
    const done = arguments[0];
    // A list that is under way does not count.
    listed.turn += 1;
    const updated_at = new Date().toISOString();
    listed.items = Array.from({ length: 10_000 }, (_, number) => ({ id: `x${number}`, title: `Chat ${number}`, pinned: false, updated_at }));
    showList();
    const list = document.getElementById('list-scroll');
    let step = 0;
    const scroll = () => {
        list.scrollTop = (step / 300) * (list.scrollHeight - list.clientHeight);
        step += 1;
        if (step <= 300) requestAnimationFrame(scroll);
        else done();
    };
    requestAnimationFrame(scroll);";

/// Ends the watch, and prints the median, the 95th percentile and the longest time in milliseconds.
async fn report(browser: &Browser, content: &str) {
    let times = browser.run("smooth.isOver = true; return smooth.times").await;
    let mut times: Vec<f64> = times.as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    times.sort_by(f64::total_cmp);
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    println!("{content:<36} {:>7} {:>9.1} {:>9.1} {:>9.1}", times.len(), at(50), at(95), at(100));
}

/// The tokens that arrive between two pauses of a millisecond: more in a second than one user gets from an engine.
const TOKENS_AT_ONCE: usize = 4;

#[tokio::test]
#[ignore = "a bench: ./dev bench pages"]
async fn bench_of_long_content() {
    let words: Vec<&'static str> =
        (0..50_000).map(|number| if number % 40 == 39 { "end.\n\n" } else { "word " }).collect();
    let words: &'static [&'static str] = words.leak();
    let paced = server_for(Arc::new(ScriptedEngine::saying(words).paced(TOKENS_AT_ONCE))).await;
    let immediate = server_for(Arc::new(ScriptedEngine::saying(words))).await;
    println!(
        "{:<36} {:>7} {:>9} {:>9} {:>9}",
        "content (ms per picture)", "count", "median", "95 %", "longest"
    );
    for (name, device) in [("desktop", Device::DESKTOP), ("phone", Device::PHONE)] {
        let browser = page_at(&paced, device).await;
        browser.run(WATCH).await;
        browser.run_async(SCROLL).await;
        report(&browser, &format!("10,000 chats, {name}")).await;
        for (how, server) in [("streamed", &paced), ("at once", &immediate)] {
            let browser = page_at(server, device).await;
            browser.run(WATCH).await;
            ask(&browser, "Tell me everything").await;
            settled(&browser).await;
            report(&browser, &format!("50,000 tokens {how}, {name}")).await;
        }
    }
}
