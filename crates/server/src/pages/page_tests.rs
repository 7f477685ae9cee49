//! What holds for every page.

use super::html_page::{HEAD, HtmlPage, KEY_FORM, MARK, SHARED_SCRIPTS, SHARED_STYLE, hash};
use super::{chat_page, dashboard, team_page};

fn pages() -> [(&'static str, HtmlPage); 3] {
    [
        ("dashboard", HtmlPage::assemble(&dashboard::PARTS)),
        ("chat", HtmlPage::assemble(&chat_page::PARTS)),
        ("team", HtmlPage::assemble(&team_page::PARTS)),
    ]
}

fn text(page: &HtmlPage) -> &str {
    std::str::from_utf8(&page.document).unwrap()
}

#[test]
fn a_hash_is_the_one_browsers_compute() {
    assert_eq!(hash("alert(1)"), "sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=");
}

#[test]
fn what_the_browser_hashes_is_what_stands_between_the_tags() {
    for (name, page) in pages() {
        let document = text(&page);
        for (open, close) in [("<style>", "</style>"), ("<script>", "</script>")] {
            let counts = (document.matches(open).count(), document.matches(close).count());
            assert_eq!(counts, (1, 1), "{name} {open}");
            let inside = document.split(open).nth(1).unwrap().split(close).next().unwrap();
            assert!(page.policy.to_str().unwrap().contains(&hash(inside)), "{name} {open}");
        }
    }
}

#[test]
fn every_part_finds_its_place() {
    for (name, page) in pages() {
        let document = text(&page);
        let markup = document.split("<style>").next().unwrap().to_owned()
            + document.split("</style>").nth(1).unwrap().split("<script>").next().unwrap();
        assert!(!markup.contains('{'), "{name}: {markup}");
        for part in [HEAD, MARK, KEY_FORM, SHARED_STYLE, SHARED_SCRIPTS[0], SHARED_SCRIPTS[1]] {
            assert_eq!(document.matches(part.trim_end()).count(), 1, "{name}: {part}");
        }
    }
}

#[test]
fn pages_fetch_nothing_from_anywhere() {
    for (name, page) in pages() {
        let document = text(&page);
        let addresses: Vec<&str> = document.split("://").skip(1).collect();
        // The only address is the name of the SVG namespace.
        let is_name = |rest: &&str| rest.starts_with("www.w3.org/2000/svg");
        assert!(addresses.iter().all(is_name), "{name}: {addresses:?}");
        // Only HTML that Hob itself rendered becomes markup, and only on the page whose policy says so.
        let markup = "template.innerHTML = ownHtml.createHTML(html)";
        let is_trusted = page.policy.to_str().unwrap().ends_with("trusted-types hob-markdown");
        assert_eq!(document.matches(markup).count(), usize::from(is_trusted), "{name}");
        let document = document.replace(markup, "");
        for word in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            " style=",
            "onclick=",
            "<img",
        ] {
            assert!(!document.contains(word), "{name}: {word}");
        }
    }
}
