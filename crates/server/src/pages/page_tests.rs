//! What holds for every page.

use super::html_page::{
    DIALOG, HEAD, HtmlPage, KEY_FORM, MARK, SHARED_SCRIPTS, SHARED_STYLES, THEME_SCRIPT, hash, navigation,
};
use super::{admin_pages, chat_page, models_page};

fn pages() -> [(&'static str, &'static HtmlPage); 8] {
    [
        ("Chat", &chat_page::CHAT),
        ("Documents", &admin_pages::DOCUMENTS),
        ("Tasks", &admin_pages::TASKS),
        ("Channels", &admin_pages::CHANNELS),
        ("Models", &models_page::MODELS),
        ("Activity", &admin_pages::ACTIVITY),
        ("Team", &admin_pages::TEAM),
        ("Settings", &admin_pages::SETTINGS),
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
        let document = text(page);
        for (open, close, count) in [("<style>", "</style>", 1), ("<script>", "</script>", 2)] {
            let counts = (document.matches(open).count(), document.matches(close).count());
            assert_eq!(counts, (count, count), "{name} {open}");
            for rest in document.split(open).skip(1) {
                let inside = rest.split(close).next().unwrap();
                assert!(page.policy.to_str().unwrap().contains(&hash(inside)), "{name} {open}");
            }
        }
    }
}

#[test]
fn every_part_finds_its_place() {
    for (name, page) in pages() {
        let document = text(page);
        let without = |text: &str, open: &str, close: &str| -> String {
            let mut parts = text.split(open);
            let first = parts.next().unwrap().to_owned();
            parts.fold(first, |kept, part| kept + part.split_once(close).unwrap().1)
        };
        let markup = without(&without(document, "<style>", "</style>"), "<script>", "</script>");
        assert!(!markup.contains('{'), "{name}: {markup}");
        let head = HEAD.replace("{theme}", THEME_SCRIPT);
        let nav = navigation(name).replace("{mark}", MARK.trim_end());
        let shared = [head.as_str(), &nav, DIALOG, MARK, KEY_FORM];
        for part in shared.into_iter().chain(SHARED_STYLES).chain(SHARED_SCRIPTS) {
            assert_eq!(document.matches(part.trim_end()).count(), 1, "{name}: {part}");
        }
        assert_eq!(nav.matches("aria-current").count(), 1, "{name} is in the navigation");
    }
}

#[test]
fn pages_fetch_nothing_from_anywhere() {
    for (name, page) in pages() {
        let document = text(page);
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
