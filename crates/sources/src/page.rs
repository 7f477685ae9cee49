//! The text of a web page, and what is new in it. Pure: knows no network, no clock and no database.

use std::collections::HashMap;

use hob_core::Moment;
use hob_text::{charset, html_to_text};
use url::Url;

use crate::error::SourceError;
use crate::store::PageSnapshot;

/// The part of a page's text that is compared.
const MAX_TEXT: usize = 256 << 10;
/// Changed lines that are shown, of new and of removed ones.
const MAX_LINES: usize = 100;
/// Characters of a line that are shown.
const MAX_LINE: usize = 400;

/// Checks within this time are compared with the same text, so that a run that is repeated sees the same changes.
const WINDOW_MICROSECONDS: i64 = 15 * 60 * 1_000_000;

/// The lines of a page's text, without empty ones.
pub(crate) fn page_text(body: &[u8], content_type: Option<&str>, base: &Url) -> Result<String, SourceError> {
    let kind = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
    let kind = kind.trim().to_ascii_lowercase();
    let is_html = matches!(kind.as_str(), "text/html" | "application/xhtml+xml");
    let is_text = kind.starts_with("text/")
        || kind.ends_with("json")
        || kind.ends_with("xml")
        || (kind.is_empty() && !body.contains(&0));
    if !is_html && !is_text {
        let shown: String = kind.chars().take(60).collect();
        return Err(SourceError::NotText(if shown.is_empty() { "binary data".to_owned() } else { shown }));
    }
    let decoded = charset::decode(body, content_type);
    let text = if is_html { html_to_text::readable(&decoded, base).text } else { decoded };
    let mut lines = String::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if lines.len() + line.len() >= MAX_TEXT {
            break;
        }
        lines.extend(line.chars().filter(|character| !character.is_control()));
        lines.push('\n');
    }
    if lines.trim().is_empty() { Err(SourceError::EmptyPage) } else { Ok(lines) }
}

/// What a check says, and what is remembered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PageCheck {
    pub page: PageSnapshot,
    pub change: PageChange,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PageChange {
    /// The first check, or the first of a new address.
    NowWatched,
    None {
        since: Moment,
    },
    Lines {
        since: Moment,
        added: ChangedLines,
        removed: ChangedLines,
    },
}

/// The first changed lines, and how many more there are.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangedLines {
    pub shown: Vec<String>,
    pub more: usize,
}

/// Compares the text of a page with what is known of it.
pub(crate) fn check_page(known: Option<PageSnapshot>, address: &str, text: String, now: Moment) -> PageCheck {
    let Some(known) = known.filter(|known| known.address == address) else {
        let page = PageSnapshot {
            address: address.to_owned(),
            earlier: text.clone(),
            earlier_read: now,
            latest: text,
            window_began: now,
        };
        return PageCheck { page, change: PageChange::NowWatched };
    };
    let age = now.microseconds().saturating_sub(known.window_began.microseconds());
    let page = match age < WINDOW_MICROSECONDS {
        true => PageSnapshot { latest: text, ..known },
        false => PageSnapshot {
            earlier: known.latest,
            earlier_read: known.window_began,
            latest: text,
            window_began: now,
            address: known.address,
        },
    };
    let since = page.earlier_read;
    let added = lines_only_in(&page.latest, &page.earlier);
    let removed = lines_only_in(&page.earlier, &page.latest);
    let change = match added.shown.is_empty() && removed.shown.is_empty() {
        true => PageChange::None { since },
        false => PageChange::Lines { since, added, removed },
    };
    PageCheck { page, change }
}

/// The lines of a text that another does not have, or has less often. A line that only moved is no change.
fn lines_only_in(text: &str, other: &str) -> ChangedLines {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for line in other.lines() {
        *counts.entry(line).or_default() += 1;
    }
    let mut changed = ChangedLines::default();
    for line in text.lines() {
        if let Some(count) = counts.get_mut(line).filter(|count| **count > 0) {
            *count -= 1;
        } else if changed.shown.len() < MAX_LINES {
            changed.shown.push(match line.char_indices().nth(MAX_LINE) {
                Some((end, _)) => format!("{}…", &line[..end]),
                None => line.to_owned(),
            });
        } else {
            changed.more += 1;
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Url {
        Url::parse("https://example.org/").unwrap()
    }

    fn minute(minute: i64) -> Moment {
        Moment::from_microseconds(minute * 60_000_000)
    }

    fn lines(texts: &[&str]) -> ChangedLines {
        ChangedLines { shown: texts.iter().map(|text| (*text).to_owned()).collect(), more: 0 }
    }

    fn check(known: Option<PageSnapshot>, text: &str, at: i64) -> PageCheck {
        check_page(known, "a", text.to_owned(), minute(at))
    }

    #[test]
    fn only_readable_text_counts() {
        let html = b"<title>x</title><script>1</script><h1>Times</h1><p>Bus\x07 1: 9:00</p><p> </p>";
        assert_eq!(page_text(html, Some("text/html"), &base()).unwrap(), "# Times\nBus 1: 9:00\n");
        assert_eq!(page_text(b"a\n\n b \n", Some("text/plain; charset=utf-8"), &base()).unwrap(), "a\nb\n");
        assert_eq!(page_text(b"{}", None, &base()).unwrap(), "{}\n");
        for (body, kind) in
            [(&b"\0"[..], None), (&b"x"[..], Some("image/png")), (&b""[..], Some("text/html"))]
        {
            assert!(page_text(body, kind, &base()).is_err(), "{kind:?}");
        }
        let huge = "line\n".repeat(1 << 20);
        let read = page_text(huge.as_bytes(), Some("text/plain"), &base()).unwrap();
        assert!(read.len() <= MAX_TEXT);
    }

    #[test]
    fn a_page_is_watched_first_and_then_compared_with_the_last_check() {
        let first = check(None, "one\ntwo\n", 0);
        assert_eq!(first.change, PageChange::NowWatched);
        let same = check(Some(first.page), "two\none\n", 60);
        assert_eq!(same.change, PageChange::None { since: minute(0) });
        let changed = check(Some(same.page), "two\nthree\nthree\n", 120);
        let expected = PageChange::Lines {
            since: minute(60),
            added: lines(&["three", "three"]),
            removed: lines(&["one"]),
        };
        assert_eq!(changed.change, expected);
        let later = check(Some(changed.page), "two\nthree\nthree\n", 180);
        assert_eq!(later.change, PageChange::None { since: minute(120) });
    }

    #[test]
    fn a_check_that_is_repeated_soon_shows_the_same_changes() {
        let first = check(None, "one\n", 0);
        let changed = check(Some(first.page), "two\n", 60);
        let again = check(Some(changed.page), "two\n", 70);
        assert!(matches!(&again.change, PageChange::Lines { added, .. } if *added == lines(&["two"])));
        let later = check(Some(again.page), "two\n", 76);
        assert_eq!(later.change, PageChange::None { since: minute(60) });
    }

    #[test]
    fn another_address_is_another_page() {
        let first = check(None, "one\n", 0);
        let moved = check_page(Some(first.page), "b", "two\n".to_owned(), minute(60));
        assert_eq!(moved.change, PageChange::NowWatched);
    }

    #[test]
    fn many_changes_are_counted() {
        let text: String = (0..1_000).map(|number| format!("{number}{}\n", "x".repeat(1_000))).collect();
        let changed = lines_only_in(&text, "");
        assert_eq!((changed.shown.len(), changed.more), (MAX_LINES, 1_000 - MAX_LINES));
        assert_eq!(changed.shown[0].chars().count(), MAX_LINE + 1);
    }
}
