//! Keeps the book together: every page is in its table of contents, and every link of the documentation leads somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use hob_testkit::repository::{pages, root};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The pages, and what stands at the root.
fn documents() -> Vec<PathBuf> {
    let at_root = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"];
    at_root.iter().map(|name| root().join(name)).chain(pages()).collect()
}

/// What a document links to, and the names of its headings.
#[derive(Debug, Default)]
struct Document {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

fn read(file: &Path) -> Document {
    // An included file counts as part of the page.
    let text = std::fs::read_to_string(file).unwrap();
    let text = text.lines().fold(String::new(), |mut whole, line| {
        match included(line) {
            Some(name) => whole += &std::fs::read_to_string(file.parent().unwrap().join(name)).unwrap(),
            None => whole += line,
        }
        whole + "\n"
    });
    parse(&text)
}

fn included(line: &str) -> Option<&str> {
    line.trim().strip_prefix("{{#include ")?.strip_suffix("}}")
}

fn parse(text: &str) -> Document {
    let mut document = Document::default();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                document.links.push(dest_url.into_string());
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let anchor = anchor(&heading.take().unwrap_or_default());
                let count = seen.entry(anchor.clone()).or_default();
                document.anchors.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
                *count += 1;
            }
            Event::Html(html) | Event::InlineHtml(html) => document.links.extend(linked_by_tag(&html)),
            _ => {}
        }
    }
    document
}

/// As the book and the usual hosts of repositories name a heading.
fn anchor(heading: &str) -> String {
    let kept =
        heading.trim().chars().filter(|c| c.is_alphanumeric() || c.is_whitespace() || matches!(c, '_' | '-'));
    kept.flat_map(char::to_lowercase).map(|c| if c.is_whitespace() { '-' } else { c }).collect()
}

fn linked_by_tag(html: &str) -> Vec<String> {
    ["src=\"", "srcset=\"", "href=\""]
        .iter()
        .flat_map(|attribute| html.split(attribute).skip(1))
        .filter_map(|rest| rest.split('"').next())
        .map(str::to_owned)
        .collect()
}

fn is_elsewhere(link: &str) -> bool {
    ["http://", "https://", "mailto:"].iter().any(|scheme| link.starts_with(scheme))
}

/// Without `..` inside, and without asking the disk.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, component| {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
        plain
    })
}

#[test]
fn every_link_leads_somewhere() {
    let documents: BTreeMap<PathBuf, Document> =
        documents().into_iter().map(|file| (file.clone(), read(&file))).collect();
    let docs = root().join("docs");
    let mut astray = Vec::new();
    for (file, document) in &documents {
        for link in document.links.iter().filter(|link| !is_elsewhere(link)) {
            let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if path.is_empty() { file.clone() } else { plain(&file.parent().unwrap().join(path)) };
            let anchor_missing = !fragment.is_empty()
                && documents.get(&target).is_none_or(|document| !document.anchors.contains(fragment));
            // What a page of the book leads to must be in the book, wherever that is put.
            let leaves_book = file.starts_with(&docs) && !target.starts_with(&docs);
            if !target.exists() || anchor_missing || leaves_book {
                astray.push(format!("{}: {link}", file.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(astray.is_empty(), "these links lead nowhere, or out of the book:\n{}", astray.join("\n"));
}

#[test]
fn every_page_is_in_the_table_of_contents_once() {
    let docs = root().join("docs");
    let listed: Vec<PathBuf> = parse(&std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap())
        .links
        .iter()
        .map(|link| plain(&docs.join(link)))
        .collect();
    let set: BTreeSet<PathBuf> = listed.iter().cloned().collect();
    assert_eq!(set.len(), listed.len(), "a page is listed twice");
    let pages: BTreeSet<PathBuf> = pages().into_iter().filter(|page| !page.ends_with("SUMMARY.md")).collect();
    let unlisted: Vec<&PathBuf> = pages.difference(&set).collect();
    let missing: Vec<&PathBuf> = set.difference(&pages).collect();
    assert!(unlisted.is_empty() && missing.is_empty(), "not listed: {unlisted:?}; not there: {missing:?}");
}

#[test]
fn headings_are_named_as_the_book_names_them() {
    let text = "# `GET /v1/models/{id}`\n\n## What it *saves*\n\n## What it saves\n\n[a](b.md#c) <img src=\"d.png\">\n";
    let document = parse(text);
    let expected = ["get-v1modelsid", "what-it-saves", "what-it-saves-1"];
    assert_eq!(document.anchors.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    assert_eq!(document.links, ["b.md#c", "d.png"]);
}
