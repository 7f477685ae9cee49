//! Long answers: rendered parts do not change, and rendering does not block the browser.

use std::sync::Arc;

use hob_testkit::ScriptedEngine;
use serde_json::json;

use super::page_at;
use crate::pages::browser::chromium::Device;
use crate::support::TestServer;

#[tokio::test]
async fn rendered_parts_of_a_long_list_or_table_do_not_change() {
    let server = TestServer::start(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    let grow = "
        const parts = (make) => Array.from({ length: 200 }, (_, number) => make(number)).join('');
        const kinds = [
            [parts((n) => `- item **${n}**\\n`), 'li'],
            [`- top\\n${parts((n) => `  - item **${n}**\\n`)}`, 'li li'],
            [parts((n) => `> - item **${n}**\\n`), 'blockquote li'],
            [`| a | b |\\n|---|--:|\\n${parts((n) => `| *${n}* | b |\\n`)}`, 'tbody tr'],
        ];
        return kinds.map(([text, selector]) => {
            const box = document.createElement('div');
            const view = new MarkdownView(box);
            view.show(text.slice(0, text.length / 2));
            const early = [...box.querySelectorAll(selector)].slice(0, -2);
            for (let end = text.length / 2; end < text.length; end += 7) view.show(text.slice(0, end));
            view.show(text);
            const late = [...box.querySelectorAll(selector)];
            return [early.length > 50, early.every((one, index) => one === late[index]), late.length];
        });";
    let same = json!([true, true, 200]);
    assert_eq!(browser.run(grow).await, json!([same, same, same, same]));
}

#[tokio::test]
async fn a_streamed_text_looks_like_the_complete_text() {
    let server = TestServer::start(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    // The same texts in every run.
    let differ = r##"
        const SIGNS = ["a ", "b", "\n", "\n\n", "*", "`", "```\n", "[", "](https://c.org/)", "|", "> ", "- ", "# ", "  ", "\n- a", "\n  - b", "\n1. a", "\n2. b", "\n- [x] a",
            "\n\n- b", "\n> a", "\n> - b", "\n> | a | b |", "\n> |-|-|", "\n| a | b |", "\na|b", "\n-|-", "\n|-|-|", "\n  | a | b |", "\n  |-|-|", "\n    b", "\n---"];
        let seed = 7;
        const draw = (most) => {
            seed = (seed * 1103515245 + 12345) % 2147483648;
            return Math.floor((seed / 2147483648) * most);
        };
        const shown = (steps) => {
            const box = document.createElement("div");
            const view = new MarkdownView(box);
            steps.forEach((step) => view.show(step));
            box.normalize();
            return box.innerHTML;
        };
        for (let round = 0; round < 1500; round += 1) {
            const text = Array.from({ length: 1 + draw(40) }, () => SIGNS[draw(SIGNS.length)]).join("");
            const steps = [];
            for (let end = 0; end < text.length; ) steps.push(text.slice(0, (end += 1 + draw(5))));
            if (shown(steps) !== shown([text])) return text;
        }
        return null;"##;
    assert_eq!(browser.run(differ).await, json!(null));
}

#[tokio::test]
async fn slow_rendering_happens_less_often() {
    let server = TestServer::start(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    // Words arrive with every frame for a second, and each rendering takes 40 ms.
    let watch = "
        const done = arguments[0];
        const message = newAnswer();
        const view = new MessageView(message, { again: () => {} });
        let [pictures, seen] = [0, ''];
        view.update = () => {
            MessageView.prototype.update.call(view);
            for (const began = performance.now(); performance.now() - began < 40; );
            [pictures, seen] = [pictures + 1, message.content];
        };
        const began = performance.now();
        const more = () => {
            if (performance.now() - began > 1000) return void setTimeout(() => done([pictures, seen === message.content]), 1000);
            message.content += 'word ';
            view.updateSoon(() => {});
            requestAnimationFrame(more);
        };
        more();";
    let seen = browser.run_async(watch).await;
    assert!(seen[0].as_u64() >= Some(2) && seen[0].as_u64() < Some(8), "pictures: {seen}");
    assert_eq!(seen[1], json!(true), "the last words are seen, though nothing came behind them");
}
