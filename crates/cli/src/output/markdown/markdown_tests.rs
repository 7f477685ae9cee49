use anstream::adapter::strip_str;
use proptest::prelude::*;

use super::*;

fn look(width: usize) -> MarkdownLook {
    MarkdownLook::new(width, true)
}

/// The text pushed in these pieces.
fn shown(look: MarkdownLook, pieces: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut markdown = Markdown::new(look);
    let mut out: String = pieces.into_iter().map(|piece| markdown.push(piece.as_ref())).collect();
    out += &markdown.finish();
    out
}

fn words_of(text: &str) -> String {
    strip_str(text).to_string()
}

const ANSWER: &str = "\
# Rivers

The **Rhine** is long; see [here](https://example.org/rhine) or `cargo run`:

1. It begins in *Switzerland*
   and ends in the sea.
2. It passes
   - Basel
   - Cologne, which is a rather large city on its banks

> A quotation of two
> lines.

```rust
fn main() {
    println!(\"**not bold**\");
}
```

| River | Length |
|:------|-------:|
| Rhine | 1,230 km |
| Elbe | 1,094 km |

---
Done - [x] 2 * 3 < 7 & a_b_c.
";

#[test]
fn an_answer_reads_well() {
    insta::assert_snapshot!(words_of(&shown(look(40), [ANSWER])), @r#"
    Rivers

    The Rhine is long; see here
    (https://example.org/rhine) or cargo
    run:

    1. It begins in Switzerland
       and ends in the sea.
    2. It passes
       ◦ Basel
       ◦ Cologne, which is a rather large
         city on its banks

    │ A quotation of two
    │ lines.

    ```rust
    fn main() {
        println!("**not bold**");
    }
    ```

    ┌───────┬──────────┐
    │ River ┆   Length │
    ╞═══════╪══════════╡
    │ Rhine ┆ 1,230 km │
    │ Elbe  ┆ 1,094 km │
    └───────┴──────────┘

    ────────────────────────────────────────

    Done - [x] 2 * 3 < 7 & a_b_c.
    "#);
}

#[test]
fn without_colours_the_signs_say_it() {
    let look = MarkdownLook::new(60, false);
    let text = shown(look, ["## Title\n\nSome **bold** and *soft* `code`.\n\n- [ ] open\n- [x] done\n"]);
    assert!(!text.contains('\u{1b}'), "{text}");
    insta::assert_snapshot!(text, @"
    ## Title

    Some **bold** and *soft* `code`.

    • ☐ open
    • ☑ done
    ");
}

#[test]
fn a_word_is_shown_as_soon_as_it_is_certain() {
    let mut markdown = Markdown::new(look(80));
    let mut push = |piece: &str| words_of(&markdown.push(piece));
    assert_eq!(push("The cap"), "The");
    assert_eq!(push("ital of "), " capital of");
    assert_eq!(push("**Fr"), "", "it may become bold");
    assert_eq!(push("ance** is"), " France");
    assert_eq!(push(" Paris.\n"), " is Paris.");
    assert_eq!(push("\n- one\n- t"), "\n\n• one");
    assert_eq!(push("wo\n\n```\nlet a"), "\n• two\n\n```");
    assert_eq!(push(" = 1;\n"), "\nlet a = 1;");
    assert_eq!(push("```\n| a | b |\n|--"), "\n```");
    assert_eq!(push("-|---|\n| 1 | 2 |\n"), "", "a table is shown as a whole");
    let table = words_of(&push("\nEnd. "));
    assert!(table.contains("│ 1 ┆ 2 │") && table.ends_with("\n\nEnd."), "{table}");
    assert_eq!(markdown.finish(), "\n");
}

#[test]
fn scripts_without_spaces_flow_too() {
    let mut markdown = Markdown::new(look(20));
    assert_eq!(
        markdown.push("東京は日本の首都であり、世界最大の都市"),
        "東京は日本の首都であ\nり、世界最大の都"
    );
    assert_eq!(markdown.push("です。"), "市で", "a full stop does not begin a line");
    assert_eq!(markdown.finish(), "\nす。\n");
}

#[test]
fn text_cannot_control_the_terminal() {
    // Without colours there is nothing to be seen that is not written.
    let plain = MarkdownLook::new(80, false);
    for (text, expected) in [
        ("\u{1b}]0;owned\u{7}\u{9b}2J x\n\n```\n\u{1b}[2J\n```\n", "]0;owned2J x\n\n```\n[2J\n```\n"),
        ("&#27;[2J x", "[2J x\n"),
        ("&#155;2J &#x9b;3J &#X1B;c &#7;", "2J 3J c\n"),
        ("&#27;]52;c;b3duZWQ=&#7;", "]52;c;b3duZWQ=\n"),
        ("# A &#27;[2J\n\n> B *&#27;c* **&#27;c**", "# A [2J\n\n│ B *c* **c**\n"),
        ("[x](&#27;c)", "x (c)\n"),
        ("![x](<a&#27;c> \"&#27;c\") [&#27;[2J](b)", "x (ac) [2J (b)\n"),
        ("[https://a.b/&#27;c](https://a.b/&#27;c)", "https://a.b/c\n"),
        ("`&#27;` <b>&#27;[2J", "`&#27;` <b>[2J\n"),
        ("```&#27;\n&#27;\n```\n<div>\n&#27;\n</div>\n", "```&#27;\n&#27;\n```\n\n<div>\n&#27;\n</div>\n"),
        (
            "| &#27;[2J | b |\n|---|---|\n| [d](&#27;c) | &#155;2J |\n",
            "┌───────┬────┐\n│ [2J   ┆ b  │\n╞═══════╪════╡\n│ d (c) ┆ 2J │\n└───────┴────┘\n",
        ),
    ] {
        assert_eq!(shown(plain, [text]), expected, "{text:?}");
    }
}

#[test]
fn what_is_no_block_is_shown_too() {
    for (text, expected) in [
        ("[1]: https://example.org\n", "[1]: https://example.org\n"),
        ("See [1].\n\n[1]: https://example.org\n", "See [1].\n\n[1]: https://example.org\n"),
        ("<details>\n<b>x</b>\n</details>\n", "<details>\n<b>x</b>\n</details>\n"),
        ("one<br>two\n", "one\ntwo\n"),
        ("Title\n=====\ntext\n", "Title\n\ntext\n"),
        ("", ""),
        (" \n\n", ""),
    ] {
        assert_eq!(words_of(&shown(look(80), [text])), expected, "{text:?}");
    }
}

#[test]
fn a_block_without_end_is_shown_all_the_same() {
    let endless = "**word ".repeat(LONGEST_BLOCK / 7 + 10);
    let mut markdown = Markdown::new(look(80));
    let out: String =
        endless.as_bytes().chunks(100).map(|chunk| markdown.push(&String::from_utf8_lossy(chunk))).collect();
    assert!(out.len() > LONGEST_BLOCK / 2, "{}", out.len());
    assert!(markdown.source.len() < LONGEST_BLOCK);
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
        "]",
        "![",
        "~~",
        "<b>",
        "<div>",
        "&amp;",
        "&#27;[2J",
        "&#155;2J",
        "[x](&#27;c)",
        "\\*",
        "漢字",
        "🦙",
        "2 * 3",
        "a_b",
        "[x] ",
        ":",
        "\t",
        "!",
    ]);
    prop::collection::vec(snippet, 0..40).prop_map(|snippets| snippets.concat())
}

proptest! {
    #[test]
    fn nothing_of_a_text_is_lost(text in snippets()) {
        let shown = words_of(&shown(look(30), [&text]));
        for word in ["word", "Another", "漢", "字", "🦙"] {
            prop_assert!(shown.matches(word).count() >= text.matches(word).count(), "{word} in {text:?}: {shown}");
        }
    }

    #[test]
    fn nothing_in_a_text_commands_the_terminal(text in snippets()) {
        let shown = shown(MarkdownLook::new(30, false), [&text]);
        prop_assert!(!shown.contains(|sign: char| sign.is_control() && sign != '\n' && sign != '\t'), "{text:?}: {shown:?}");
    }

    #[test]
    fn how_a_text_is_cut_makes_no_difference(text in snippets(), cuts in prop::collection::vec(1usize..8, 1..20)) {
        let mut pieces = Vec::new();
        let mut characters = text.chars().peekable();
        for length in cuts.iter().cycle() {
            if characters.peek().is_none() {
                break;
            }
            pieces.push(characters.by_ref().take(*length).collect::<String>());
        }
        prop_assert_eq!(shown(look(30), &pieces), shown(look(30), [&text]));
    }
}
