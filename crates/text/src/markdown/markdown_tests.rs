use html5gum::{Token, Tokenizer};
use proptest::prelude::*;

use super::source::MAX_COLUMNS;
use super::*;

/// The whole text as HTML.
fn html(text: &str) -> String {
    render(text, None).pieces.into_iter().map(|piece| piece.html).collect()
}

/// A text that arrives in these pieces, as a page collects it: complete pieces, then the open one.
fn streamed(pieces: &[String]) -> Vec<MarkdownPiece> {
    let (mut text, mut settled, mut after) = (String::new(), 0, Continuation::default());
    let (mut complete, mut open) = (Vec::new(), Vec::new());
    for piece in pieces {
        text.push_str(piece);
        let mut rendered = render(&text[settled..], Some(after));
        (settled, after) = (settled + rendered.settled, rendered.after);
        open = rendered.pieces.split_off(rendered.pieces.len() - 1);
        complete.append(&mut rendered.pieces);
    }
    complete.append(&mut open);
    complete
}

#[track_caller]
fn assert_html(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(html(text), *expected, "{text:?}");
    }
}

const LINK: &str = "target=\"_blank\" rel=\"noopener noreferrer\"";

#[test]
fn text_within_lines() {
    assert_html(&[
        ("a **b** *c* ~~d~~ `e<f`", "<p>a <strong>b</strong> <em>c</em> <del>d</del> <code>e&lt;f</code></p>"),
        ("**not yet", "<p>**not yet</p>"),
        ("one\ntwo<br>three  \nfour", "<p>one<br>two<br>three<br>four</p>"),
        ("\\*a\\* &lt;b&gt; 2 * 3 a_b_c", "<p>*a* &lt;b&gt; 2 * 3 a_b_c</p>"),
        ("[1]: https://example.org", "<p>[1]: <a href=\"https://example.org/\" {LINK} title=\"https://example.org/\">https://example.org</a></p>"
            .replace("{LINK}", LINK).leak()),
    ]);
}

#[test]
fn blocks_of_every_kind() {
    assert_html(&[
        ("# A\n\n### B\n\n# C", "<h3>A</h3><h4>B</h4><h3>C</h3>"),
        ("> # A\n> b", "<blockquote><p><strong>A</strong></p><p>b</p></blockquote>"),
        (
            "- a\n- b\n  1. c\n- [x] d\n- [ ] e",
            "<ul><li>a</li><li>b<ol><li>c</li></ol></li>\
            <li><span class=\"task\">☑</span> d</li><li><span class=\"task\">☐</span> e</li></ul>",
        ),
        ("3. a\n\n4. b", "<ol start=\"3\"><li><p>a</p></li><li><p>b</p></li></ol>"),
        ("---", "<hr>"),
        (
            "| a | b |\n|---|:-:|\n| 1 | |\n|| 2 |\n| 3 |",
            "<div class=\"table\" tabindex=\"0\"><table><thead><tr>\
            <th class=\"left\" scope=\"col\">a</th><th class=\"center\" scope=\"col\">b</th></tr></thead><tbody>\
            <tr><td class=\"left\">1</td><td class=\"center\"></td></tr><tr><td></td><td class=\"center\">2</td></tr>\
            <tr><td class=\"left\">3</td></tr></tbody></table></div>",
        ),
        (
            "```rust\nfn a() {\n\n}\n```",
            "<figure class=\"code\"><figcaption><span>rust</span><button type=\"button\" \
            class=\"small\" aria-label=\"Copy code\">Copy</button></figcaption><pre tabindex=\"0\"><code>fn a() {\n\n}\
            </code></pre></figure>",
        ),
        (
            "```\nnot *closed*",
            "<figure class=\"code\"><figcaption><span></span><button type=\"button\" \
            class=\"small\" aria-label=\"Copy code\">Copy</button></figcaption><pre tabindex=\"0\"><code>not *closed*\
            </code></pre></figure>",
        ),
    ]);
}

#[test]
fn formulas_become_mathml_in_every_way_to_write_them() {
    let x = |display: &str| {
        format!("<math{display} alttext=\"x^2\"><msup><mi>x</mi><mrow><mn>2</mn></mrow></msup></math>")
    };
    let (line, block) = (x(""), x(" display=\"block\""));
    for (text, expected) in [
        ("a $x^2$ b", format!("<p>a {line} b</p>")),
        ("a \\(x^2\\) b", format!("<p>a {line} b</p>")),
        ("a \\( x^2 \\) b", format!("<p>a {line} b</p>")),
        ("$$x^2$$", format!("<p>{block}</p>")),
        ("\\[\nx^2\n\\]", format!("<p>{block}</p>")),
        ("- \\(x^2\\)", format!("<ul><li>{line}</li></ul>")),
        ("**\\(x^2\\)**", format!("<p><strong>{line}</strong></p>")),
    ] {
        assert_eq!(html(text), expected, "{text:?}");
    }
}

#[test]
fn what_only_looks_like_a_formula_is_text() {
    let code = |content: &str| format!("<code>{content}</code>");
    for (text, expected) in [
        ("from $5 to $10", "<p>from $5 to $10</p>".to_owned()),
        ("$5-$10 each", "<p>$5-$10 each</p>".to_owned()),
        ("$x$ and $y", "<p><math alttext=\"x\"><mi>x</mi></math> and $y</p>".to_owned()),
        ("\\(x", "<p>(x</p>".to_owned()),
        ("\\[not closed", "<p>[not closed</p>".to_owned()),
        ("`\\(x\\)` and `$y$`", format!("<p>{} and {}</p>", code("\\(x\\)"), code("$y$"))),
        ("$\\unknown{x}$", "<p><code class=\"formula\">$\\unknown{x}$</code></p>".to_owned()),
        ("\\(\\unknown\\)", "<p><code class=\"formula\">\\(\\unknown\\)</code></p>".to_owned()),
    ] {
        assert_eq!(html(text), expected, "{text:?}");
    }
    let listing = "```sh\nsed 's/\\(a\\)/b/'\n```";
    assert!(html(listing).contains("sed 's/\\(a\\)/b/'"), "{}", html(listing));
    let heading = html("# a \\[ b\nc \\]");
    assert_eq!(heading, "<h3>a [ b</h3><p>c ]</p>");
}

#[test]
fn only_addresses_of_the_web_and_of_mailboxes_are_links() {
    let link = |address: &str, label: &str| {
        format!("<p><a href=\"{address}\" {LINK} title=\"{address}\">{label}</a></p>")
    };
    let cases = [
        ("[a **b**](https://x.org/?a=1&b=2)", link("https://x.org/?a=1&amp;b=2", "a <strong>b</strong>")),
        ("[](https://x.org)", link("https://x.org/", "https://x.org")),
        ("<https://x.org>", link("https://x.org/", "https://x.org")),
        ("<a@b.org>", link("mailto:a@b.org", "a@b.org")),
        ("https://x.org/a_b_c", link("https://x.org/a_b_c", "https://x.org/a_b_c")),
        ("![a cat](https://x.org/cat.png)", link("https://x.org/cat.png", "🖼 a cat")),
        ("[![b](https://x.org/b)](https://y.org)", link("https://y.org/", "<span>b</span>")),
        ("[a \"b](https://x.org/\"><script>)", link("https://x.org/%22%3E%3Cscript%3E", "a &quot;b")),
        ("[a](javascript:alert(1))", "<p><span>a</span></p>".to_owned()),
        ("[a]( JaVaScRiPt:alert(1))", "<p><span>a</span></p>".to_owned()),
        ("[a](java&#9;script:alert(1))", "<p><span>a</span></p>".to_owned()),
        ("[a](data:text/html,x)", "<p><span>a</span></p>".to_owned()),
        ("[a](/here)", "<p><span>a</span></p>".to_owned()),
        ("[a](//evil.example)", "<p><span>a</span></p>".to_owned()),
        ("![x](file:///etc/passwd)", "<p><span>x</span></p>".to_owned()),
        ("http://[", "<p>http://[</p>".to_owned()),
    ];
    for (text, expected) in cases {
        assert_eq!(html(text), expected, "{text:?}");
    }
    let sentence = html("See (https://x.org/p_(q)), or https://y.org.");
    assert!(sentence.contains(">https://x.org/p_(q)</a>), or <a href=\"https://y.org/\""), "{sentence}");
    assert!(sentence.ends_with(">https://y.org</a>.</p>"), "{sentence}");
}

#[test]
fn html_in_a_text_is_shown_as_text() {
    for text in [
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> b",
        "<iframe src=\"//evil.example\"></iframe>",
        "<svg/onload=alert(1)>",
        "<!-- --><style>*{}</style>",
        "`</code><script>`",
        "```\"><script>\n</code></pre><script>\n```",
        "<a href=\"javascript:alert(1)\">x</a>",
        "<details open ontoggle=alert(1)>",
    ] {
        assert_safe(&html(text));
        assert!(html(text).contains("&lt;") || html(text).contains("&quot;&gt;"), "{text:?}: {}", html(text));
    }
}

/// Only elements and attributes that the renderer knows, and only links to the web.
#[track_caller]
fn assert_safe(html: &str) {
    const ELEMENTS: &str = " p h3 h4 h5 h6 blockquote pre code figure figcaption span button ul ol li div table thead tbody tr \
        th td strong em del a br hr \
        math mrow mi mn mo mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover mtable mtr mtd ";
    const ATTRIBUTES: &str = " class tabindex type aria-label start scope href target rel title \
        display alttext accent accentunder linethickness mathvariant stretchy width ";
    for token in Tokenizer::new(html) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => {
                let name = format!(" {} ", String::from_utf8_lossy(&tag.name));
                assert!(ELEMENTS.contains(&name), "{name} in {html}");
                for (attribute, value) in &tag.attributes {
                    let attribute = String::from_utf8_lossy(attribute).into_owned();
                    assert!(ATTRIBUTES.contains(&format!(" {attribute} ")), "{attribute} in {html}");
                    let is_web = ["http://", "https://", "mailto:"]
                        .iter()
                        .any(|scheme| value.starts_with(scheme.as_bytes()));
                    assert!(attribute != "href" || is_web, "{html}");
                }
            }
            // A character that HTML has no place for is an error of the text.
            Token::EndTag(_) | Token::String(_) | Token::Error(_) => {}
            other => panic!("{other:?} in {html}"),
        }
    }
}

fn words_of(html: &str) -> String {
    let tokens = Tokenizer::new(html).filter_map(Result::ok);
    let texts = tokens.filter_map(|token| match token {
        Token::String(text) => Some(String::from_utf8_lossy(&text).into_owned()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn a_growing_list_table_or_code_is_rendered_from_its_last_part() {
    const COUNT: usize = 700;
    let item = |number: usize| format!("- item **{number}**\n");
    let row = |number: usize| format!("| {number} | b |\n");
    let line = |number: usize| format!("    let a = {number};\n");
    type Part<'a> = &'a dyn Fn(usize) -> String;
    let kinds: [(&str, Part<'_>, &str); 3] = [
        ("", &item, "<li>"),
        ("| a | b |\n|---|---|\n", &row, "<td class=\"left\">b"),
        ("```rust\n", &line, "let a ="),
    ];
    for (opening, part, mark) in kinds {
        let parts: Vec<String> = std::iter::once(opening.to_owned()).chain((0..COUNT).map(part)).collect();
        let pieces = streamed(&parts);
        assert!(pieces[1..].iter().all(|piece| piece.continues), "{mark}");
        let longest = pieces.iter().map(|piece| piece.html.len()).max().unwrap();
        assert!(longest < 32 << 10, "{mark}: {longest} bytes in a piece");
        let html: String = pieces.into_iter().map(|piece| piece.html).collect();
        assert_eq!(html.matches(mark).count(), COUNT);
    }
}

#[test]
fn code_that_is_cut_keeps_its_lines_and_its_end() {
    let line = "let a = 1;\n".repeat(4000);
    let text = format!("```rust\n{line}```\nAfter *it*.\n");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let arriving: Vec<String> = lines.chunks(50).map(<[&str]>::concat).collect();
    for pieces in [streamed(&arriving), render(&text, None).pieces] {
        assert!(pieces.len() > 2);
        let words: String = pieces.iter().map(|piece| words_of(&piece.html)).collect();
        assert_eq!(words.replace("rustCopy", ""), format!("{}After it.", line.trim_end()));
    }
}

#[test]
fn a_long_text_is_rendered_in_pieces_and_loses_nothing() {
    let paragraphs: String = (0..20_000).map(|number| format!("Paragraph *{number}*.\n\n")).collect();
    let endless = "word ".repeat(100_000);
    let nested: String = "- top\n".to_owned() + &"  - inner\n".repeat(20_000);
    for (text, word, count) in
        [(paragraphs, "Paragraph", 20_000), (endless, "word", 100_000), (nested, "inner", 20_000)]
    {
        assert_eq!(html(&text).matches(word).count(), count);
    }
}

/// Repeated signs, which make slow parsers slow. A parser that takes quadratic time runs into the time limit of the test.
#[test]
fn a_hostile_text_has_bounded_html() {
    let signs = [
        "*",
        "_a",
        "**a ",
        "*a **b ",
        "[",
        "![",
        "[a](",
        "](",
        "`",
        "`` ` ",
        "> ",
        "- ",
        "1. ",
        "# ",
        "|",
        "|-",
        "a|b\n-|-\n",
        "<",
        "<!--",
        "<a ",
        "&",
        "~~",
        "\\",
        "*_",
        "[*",
        "https://",
        "https://x/)",
        ") ",
        " ",
        "\n",
        "- a\n",
        "  ",
        "```\n",
        "***",
        "\t",
        "- - ",
        "a\n> ",
        "[x](http://a(",
        "[http://a(",
        "http://[",
        "<http://a",
        "![a](http://b) ",
        "\u{1}",
        "\u{2}",
        "\u{0}",
        "$",
        "$$",
        "$x",
        "$x$",
        "${",
        "$x$$",
        "\\(",
        "\\(x\\)",
        "\\[x\\]",
        "\\[\n",
        "$^$",
    ];
    for sign in signs {
        let text = sign.repeat((70 << 10) / sign.len());
        let html = html(&text);
        assert!(html.len() < text.len() * 60, "{sign:?}: {} bytes", html.len());
        assert_safe(&html);
    }
    let wide = |columns: usize| {
        format!("{0}\n{1}\n{2}", "|a".repeat(columns), "|-".repeat(columns), "a\n".repeat(10_000))
    };
    for columns in [MAX_COLUMNS / 2, MAX_COLUMNS * 10] {
        let text = wide(columns);
        assert!(html(&text).len() < text.len() * 30, "{columns}");
    }
    assert!(html(&wide(100)).contains("|-|-"), "a table that is too wide is text");
}

/// Pieces of Markdown as models write it, and as they do not.
fn snippets() -> impl Strategy<Value = String> {
    let snippet = prop::sample::select(vec![
        "word",
        "Another",
        " ",
        " ",
        " ",
        "\n",
        "\n",
        "\n\n",
        "**",
        "*",
        "_",
        "`",
        "```\n",
        "```rust\n",
        "- ",
        "* ",
        "1. ",
        "  ",
        "    ",
        "> ",
        "# ",
        "## ",
        "| a | b |\n",
        "|---|---|\n",
        "---\n",
        "===\n",
        "[",
        "](http://x.y)",
        "](javascript:x)",
        "]",
        "]:",
        "![",
        "~~",
        "<b>",
        "<div>",
        "<script>",
        "<!--",
        "\"",
        "'",
        "&amp;",
        "&lt;",
        "\\*",
        "漢字",
        "🦙",
        "2 * 3",
        "[x] ",
        ":",
        "\t",
        "!",
        "\r",
        "https://a.b/?c=",
        "\u{0}",
        "$",
        "$$",
        "\\(",
        "\\)",
        "\\[",
        "\\]",
        "x^2",
        "\\frac{1}{2}",
        "{",
        "}",
    ]);
    prop::collection::vec(snippet, 0..40).prop_map(|snippets| snippets.concat())
}

#[test]
fn code_that_ends_within_a_wide_character_is_cut_at_its_line() {
    let text = "````\n🦙```\n![ ](javascript:x)  ```rust\n漢字~~|---|---|\n🦙\n\n";
    assert_safe(&html(text));
    for at in text.char_indices().map(|(at, _)| at) {
        html(&text[..at]);
        cut(&text[..at], 1);
    }
}

proptest! {
    #[test]
    fn any_text_becomes_safe_html_and_keeps_its_words(text in snippets()) {
        let html = html(&text);
        assert_safe(&html);
        let words = words_of(&html);
        for word in ["word", "Another", "漢", "字", "🦙"] {
            let (shown, written) = (words.matches(word).count(), text.matches(word).count());
            prop_assert!(shown >= written || text.contains('|') || text.contains("```") || text.contains("]("), "{word} in {text:?}: {html}");
        }
    }

    #[test]
    fn a_text_that_arrives_in_pieces_looks_like_the_whole_text(text in snippets(), cuts in prop::collection::vec(1usize..8, 1..20)) {
        let mut pieces = Vec::new();
        let mut characters = text.chars().peekable();
        for length in cuts.iter().cycle() {
            if characters.peek().is_none() {
                break;
            }
            pieces.push(characters.by_ref().take(*length).collect::<String>());
        }
        let shown: String = streamed(&pieces).into_iter().map(|piece| piece.html).collect();
        prop_assert_eq!(shown, html(&text));
    }
}
