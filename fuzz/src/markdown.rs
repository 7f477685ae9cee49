//! Markdown for the pages: whatever the text, the HTML has known tags and attributes only.

use hob_text::markdown::{Continuation, RenderedPieces, render as rendered};

const TAGS: &[&str] = &[
    "a",
    "blockquote",
    "br",
    "button",
    "code",
    "del",
    "div",
    "em",
    "figcaption",
    "figure",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "li",
    "math",
    "mfrac",
    "mi",
    "mn",
    "mo",
    "mover",
    "mroot",
    "mrow",
    "mspace",
    "msqrt",
    "msub",
    "msubsup",
    "msup",
    "mtable",
    "mtd",
    "mtext",
    "mtr",
    "munder",
    "munderover",
    "ol",
    "p",
    "pre",
    "span",
    "strong",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
];

const ATTRIBUTES: [&str; 18] = [
    "accent",
    "accentunder",
    "alttext",
    "aria-label",
    "class",
    "display",
    "href",
    "linethickness",
    "mathvariant",
    "rel",
    "scope",
    "start",
    "stretchy",
    "tabindex",
    "target",
    "title",
    "type",
    "width",
];

const SCHEMES: [&str; 3] = ["http:", "https:", "mailto:"];

/// Renders a text as a whole, and while it grows.
pub fn render(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    check(text, &rendered(text, None), text.len());
    let letters: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let (mut begin, mut after) = (0, Continuation::default());
    for end in letters.iter().step_by(1 + letters.len() / 8) {
        let rest = &text[begin..*end];
        let pieces = rendered(rest, Some(after));
        // The lines that open a block are rendered again with each part of it.
        check(rest, &pieces, text.len());
        begin += pieces.settled;
        after = pieces.after;
    }
}

fn check(text: &str, pieces: &RenderedPieces, source: usize) {
    assert!(text.is_char_boundary(pieces.settled), "a piece begins inside a character");
    let html: usize = pieces.pieces.iter().map(|piece| piece.html.len()).sum();
    assert!(html <= 4096 + 200 * source, "the HTML is far longer than the text");
    pieces.pieces.iter().for_each(|piece| check_html(&piece.html));
}

/// Every `<` begins a known tag.
fn check_html(html: &str) {
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>'), "a bracket is not escaped");
        let (tag, after) = rest[at + 1..].split_once('>').expect("a tag without an end");
        let name = tag.strip_prefix('/').unwrap_or(tag);
        let (name, attributes) = name.split_once(' ').unwrap_or((name, ""));
        assert!(TAGS.contains(&name), "the tag <{tag}> is not known");
        check_attributes(attributes);
        rest = after;
    }
    assert!(!rest.contains('>'), "a bracket is not escaped");
}

/// Every attribute is known, and an address leads to the web or to a mailbox.
fn check_attributes(mut rest: &str) {
    while !rest.is_empty() {
        let (name, value) = rest.split_once("=\"").expect("an attribute without a value");
        let name = name.trim_start();
        assert!(ATTRIBUTES.contains(&name), "the attribute {name} is not known");
        let (value, after) = value.split_once('"').expect("a value without an end");
        let leads_out = SCHEMES.iter().any(|scheme| value.starts_with(scheme));
        assert!(name != "href" || leads_out, "the address {value} is a link");
        rest = after;
    }
}
