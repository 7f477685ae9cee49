use proptest::prelude::*;

use super::*;

fn base() -> Url {
    Url::parse("https://example.org/docs/page.html").unwrap()
}

fn text(html: &str) -> String {
    readable(html, &base()).text
}

#[test]
fn a_page_reads_as_a_person_would_read_it() {
    let page = readable(
        "<!doctype html><html><head><title> Bees &amp;\n flowers </title><style>p { color: red }</style></head><body>\
         <nav><a href='/'>Home</a><ul><li>Menu</ul></nav>\
         <script>if (a < b) document.write('<p>gone</p>')</script>\
         <h1>Bees</h1><p>They   <b>fly</b> far,\nsee <a href='../more'>more</a> or <a href='#top'>top</a>.</p>\
         <ul><li>one<li>two</li></ul><pre>  a\n  b</pre>\
         <table><tr><th>x<th>y</tr><tr><td>1</td><td>2</td></tr></table>\
         <img src=x alt='a bee'><a href='javascript:alert(1)'>click</a><footer>© 2026</footer></body></html>",
        &base(),
    );
    assert_eq!(page.title.as_deref(), Some("Bees & flowers"));
    let expected = "# Bees\n\nThey fly far, see more (https://example.org/more) or top.\n\n- one\n- two\n\n  a\n  b\n\n\
                    | x | y\n| 1 | 2\n\n[image: a bee] click";
    assert_eq!(page.text, expected);
}

#[test]
fn a_page_that_is_all_navigation_is_read_after_all() {
    assert_eq!(
        text("<nav><a href=/a>Alpha</a> <a href=/b>Beta</a>"),
        "Alpha (https://example.org/a) Beta (https://example.org/b)"
    );
}

#[test]
fn words_are_neither_joined_nor_split() {
    assert_eq!(text("a<b>b</b>c <i>d</i> e<br>f<div>g</div>h<span>i</span>"), "abc d e\nf\ng\nhi");
    assert_eq!(text("1 &lt; 2 &amp;&amp; 3&nbsp;km"), "1 < 2 && 3\u{a0}km");
    assert_eq!(text("<p>one<nav>x</nav>two</p>"), "one two");
}

#[test]
fn hostile_nesting_takes_no_longer_than_any_other_page() {
    let size = 1 << 18;
    for piece in [
        "<b>",
        "<div><p>",
        "<a href=x>",
        "<table><tr><td>",
        "<nav>",
        "<svg/>",
        "<ul><li>",
        "</p>",
        "<p a=",
        "&#x1F;",
        "<h1>",
        "<a href=x>w</a>",
    ] {
        let html = piece.repeat(size / piece.len());
        let began = std::time::Instant::now();
        let page = readable(&html, &base());
        assert!(began.elapsed().as_secs() < 60, "{piece}: {:?}", began.elapsed());
        assert!(page.text.len() <= 2 * MAX_TEXT_BYTES, "{piece}");
    }
}

proptest! {
    #[test]
    fn any_markup_becomes_text_without_scripts(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "<p>", "</p>", "<a href='x'>", "</a>", "<nav>", "</nav>", "<li>", "<pre>", "</pre>", "<h2>", "</h2>", "word", " ", "é",
                "<script>SECRET</script>", "<td>", "<br>", "<title>t</title>", "<img alt=i>", "< ", "> ", "&amp;", "\n",
            ]),
            0..60,
        )
    ) {
        let page = readable(&pieces.concat(), &base());
        prop_assert!(!page.text.contains("SECRET"));
    }
}

#[test]
fn each_line_has_its_offset_in_the_page() {
    let html =
        "<title>t</title>\n<h2>Top</h2>\n<p>One\ntwo</p>\n<ul><li>a</li>\n<li>b</li></ul>\n<pre>x\n  y</pre>";
    let (page, lines) = readable_lines(html, ReadOptions { base: None, max_bytes: 1 << 20 });
    let found = lines.iter().map(|line| {
        let source = html[..line.source].matches('\n').count() + 1;
        (page.text[line.start..].lines().next().unwrap(), source, line.kind, line.is_apart)
    });
    let expected = [
        ("## Top", 2, LineKind::Heading(2), true),
        ("One two", 3, LineKind::Text, true),
        ("- a", 5, LineKind::Text, true),
        ("- b", 6, LineKind::Text, false),
        ("x", 7, LineKind::Preformatted, true),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn without_a_base_no_link_is_written_out() {
    let (page, _) =
        readable_lines("<a href='https://example.org/'>here</a>", ReadOptions { base: None, max_bytes: 100 });
    assert_eq!(page.text, "here");
}

#[test]
fn blank_lines_in_a_link_are_dropped_as_they_come() {
    // Looking at all of them again for each would take many minutes.
    let html = format!("x<pre> <a>{}", "<br> ".repeat(200_000));
    let (page, lines) = readable_lines(&html, ReadOptions { base: None, max_bytes: 1 << 20 });
    assert_eq!(page.text, "x");
    assert!(lines.len() < 5, "{}", lines.len());
}

#[test]
fn a_line_begins_at_a_character_of_the_text_after_blank_lines() {
    let html = "a<pre>      <br>éé<br> </pre><p>ü";
    let (page, lines) = readable_lines(html, ReadOptions { base: None, max_bytes: 1 << 20 });
    let starts: Vec<&str> = lines.iter().map(|line| &page.text[line.start..]).collect();
    assert_eq!(starts, ["a\néé\n\nü", "éé\n\nü", "ü"]);
}
