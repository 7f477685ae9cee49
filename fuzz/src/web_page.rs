//! Pages of the web as text.

use hob_text::charset;
use hob_text::html_to_text::{readable, readable_lines, ReadOptions};
use url::Url;

const MAX_BYTES: usize = 64 << 10;

/// The text is limited, and each of its lines has a place in the page.
pub fn read(bytes: &[u8]) {
    let html = charset::decode(bytes, None);
    let base = Url::parse("https://example.org/a/b?c").expect("an address");
    let _ = readable(&html, &base);
    for base in [None, Some(&base)] {
        let (page, lines) = readable_lines(&html, ReadOptions { base, max_bytes: MAX_BYTES });
        // The limit is checked after each piece of text.
        assert!(page.text.len() <= MAX_BYTES + 8 * html.len() + 1024, "a page has more text than the limit");
        let mut last = 0;
        for line in &lines {
            assert!(page.text.is_char_boundary(line.start), "a line begins inside a character");
            assert!(last <= line.start, "lines are out of order");
            assert!(line.source <= html.len(), "a line is not in the page");
            last = line.start;
        }
    }
}
