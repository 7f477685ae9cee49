//! Long answers: rendered parts do not change, and rendering does not block the browser.

use std::sync::Arc;

use hob_testkit::ScriptedEngine;
use serde_json::{Value, json};

use super::{ask, page_at, server_for, settled};
use crate::pages::browser::chromium::Device;

/// Texts of one long block each, and the selector of its parts.
const KINDS: &str = r"
    const done = arguments[0];
    const parts = (make) => Array.from({ length: 600 }, (_, number) => make(number)).join('');
    const kinds = [
        [parts((n) => `- item **${n}**\n`), 'li'],
        [`- top\n${parts((n) => `  - item **${n}**\n`)}`, 'li li'],
        [parts((n) => `> - item **${n}**\n`), 'blockquote li'],
        [`| a | b |\n|---|--:|\n${parts((n) => `| *${n}* | b |\n`)}`, 'tbody tr'],
        [`\`\`\`rust\n${parts((n) => `let a = ${n};\n\n`)}`, 'figure'],
        [parts((n) => `## Part ${n}\n\nText *${n}*.\n`), 'h3, h4, p'],
    ];
    const grown = async (view, text, from, step) => {
        for (let end = from; end < text.length; end += step) await view.show(text.slice(0, end), { complete: false });
        await view.show(text, { complete: false });
    };";

#[tokio::test]
async fn rendered_parts_of_a_long_list_or_table_do_not_change() {
    let server = server_for(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    let grow = format!(
        "{KINDS}
        const results = kinds.map(async ([text, selector]) => {{
            const box = document.createElement('div');
            const view = new MarkdownView(box);
            await view.show(text.slice(0, text.length / 2), {{ complete: false }});
            const early = [...box.querySelectorAll(selector)].slice(0, -2);
            await grown(view, text, text.length / 2, 300);
            const late = [...box.querySelectorAll(selector)];
            await view.show(text, {{ complete: true }});
            const end = [...box.querySelectorAll(selector)];
            return [early.every((one, index) => one === late[index] && one === end[index]), late.length, end.length];
        }});
        Promise.all(results).then(done);"
    );
    let counts = [600, 600, 600, 600, 1, 1200];
    let expected: Vec<Value> = counts.iter().map(|count| json!([true, count, count])).collect();
    assert_eq!(browser.run_async(&grow).await, json!(expected));
}

#[tokio::test]
async fn a_streamed_text_looks_like_the_complete_text() {
    let server = server_for(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    let compare = format!(
        "{KINDS}
        const all = ['', 'Grüße 👋 **bo', ...kinds.map(([text]) => text), kinds.map(([text]) => text).join('\\n\\nAnd\\n\\n')];
        const shown = async (text, fill) => {{
            const box = document.createElement('div');
            await fill(new MarkdownView(box), text);
            // A block that is still open is not coloured.
            box.querySelectorAll('code span').forEach((part) => part.replaceWith(part.textContent));
            box.normalize();
            return box.innerHTML;
        }};
        const results = all.map(async (text) => {{
            const streamed = await shown(text, (view) => grown(view, text, 0, 501));
            const complete = await shown(text, (view) => view.show(text, {{ complete: true }}));
            return streamed === complete ? '' : `${{streamed.slice(0, 2000)}} is not ${{complete.slice(0, 2000)}}`;
        }});
        Promise.all(results).then((results) => done(results.filter(Boolean)));"
    );
    assert_eq!(browser.run_async(&compare).await, json!([]));
}

#[tokio::test]
async fn code_is_coloured_as_soon_as_its_block_is_closed() {
    let server = server_for(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    let grow = format!(
        "{KINDS}
        const spans = (box) => box.querySelectorAll('code span').length;
        const short = document.createElement('div');
        const long = document.createElement('div');
        const results = (async () => {{
            const view = new MarkdownView(short);
            const counts = [];
            const fence = '```\\n';
            const open = '```rust\\nfn a() {{ 1 }}\\n';
            const [closed, next] = [`${{open}}${{fence}}`, `${{open}}${{fence}}\\nThen`];
            for (const text of [open, closed, next, `${{next}}\\n\\nmo`]) {{
                await view.show(text, {{ complete: false }});
                counts.push(spans(short));
            }}
            const first = short.querySelector('code span');
            await view.show(`${{next}}\\n\\nmore`, {{ complete: true }});
            // A block of several pieces.
            const [code] = kinds[4];
            const longView = new MarkdownView(long);
            await grown(longView, code, 0, 1000);
            counts.push(spans(long));
            await grown(longView, `${{code}}${{fence}}\\nThen\\n\\nmo`, code.length, 5);
            counts.push(spans(long));
            return [counts, first === short.querySelector('code span')];
        }})();
        results.then(done);"
    );
    // Of a line such as `let a = 7;`, the keyword and the number.
    assert_eq!(browser.run_async(&grow).await, json!([[0, 0, 2, 2, 0, 1200], true]));
}

#[tokio::test]
async fn a_long_stream_sends_only_the_open_block() {
    let server = server_for(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    let measure = format!(
        "{KINDS}
        const texts = [0, 3, 4, 5].map((kind) => kinds[kind][0].repeat(5));
        texts[1] = kinds[3][0] + parts((n) => `| *${{n}}* | b |\\n`).repeat(4);
        texts[2] = kinds[4][0] + parts((n) => `let b = ${{n}};\\n\\n`).repeat(4);
        const original = fetch;
        let longest = 0;
        globalThis.fetch = (address, options) => {{
            longest = Math.max(longest, options.body?.length ?? 0);
            return original(address, options);
        }};
        const results = texts.map(async (text) => {{
            await grown(new MarkdownView(document.createElement('div')), text, 0, 1000);
            return text.length > 30_000;
        }});
        Promise.all(results).then((long) => done([...long, longest < 10_000 ? 'short' : longest]));"
    );
    assert_eq!(browser.run_async(&measure).await, json!([true, true, true, true, "short"]));
}

#[tokio::test]
async fn slow_rendering_happens_less_often() {
    let server = server_for(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    // Words arrive with every frame for a second, or longer on a busy machine, and each rendering takes 40 ms.
    let watch = "
        const done = arguments[0];
        const turn = { ...newTurn(null, { text: 'Why?', attachments: [] }), answer: newAnswer() };
        const message = turn.answer;
        const { answer: view } = viewsOf(turn);
        let [pictures, seen] = [0, ''];
        // The last words are seen, though nothing comes behind them.
        const end = () => { if (seen === message.text) done(pictures); else setTimeout(end, 20); };
        view.update = () => {
            AnswerView.prototype.update.call(view);
            for (const began = performance.now(); performance.now() - began < 40; );
            [pictures, seen] = [pictures + 1, message.text];
        };
        const began = performance.now();
        const more = () => {
            if (performance.now() - began > 1000 && pictures > 1) return end();
            message.text += 'word ';
            view.updateSoon(() => {});
            requestAnimationFrame(more);
        };
        more();";
    let pictures = browser.run_async(watch).await;
    assert!(pictures.as_u64().is_some_and(|count| count < 8), "pictures: {pictures}");
}

/// Compares times of one run with each other, so that a slow machine does not matter.
#[tokio::test]
async fn the_page_stays_responsive_during_an_answer_of_fifty_thousand_tokens() {
    let words: Vec<&'static str> =
        (0..50_000).map(|number| if number % 40 == 39 { "end.\n\n" } else { "word " }).collect();
    let server = server_for(Arc::new(ScriptedEngine::saying(words.leak()))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    browser
        .run(
            "globalThis.watched = { began: performance.now(), busy: 0, turns: 0, ended: 0 };
             new PerformanceObserver((list) => list.getEntries().forEach(({ duration }) => { watched.busy += duration; }))
                 .observe({ entryTypes: ['longtask'] });
             const turn = () => { watched.turns += 1; if (watched.ended === 0) setTimeout(turn, 0); };
             turn();",
        )
        .await;
    ask(&browser, "Tell me everything").await;
    // The next question can be written meanwhile.
    browser.press("Thanks").await;
    browser.until("document.getElementById('question').value === 'Thanks'").await;
    settled(&browser).await;
    let seen = browser
        .run("watched.ended = performance.now(); return [watched.turns, watched.busy / (watched.ended - watched.began)]")
        .await;
    assert!(seen[0].as_u64() > Some(20), "turns of the page, and the part of the time it was busy: {seen}");
    assert!(seen[1].as_f64() < Some(0.9), "turns of the page, and the part of the time it was busy: {seen}");
    assert_eq!(browser.run("return chat.shown.answer.text.split(' ').length > 48_000").await, json!(true));
}
