//! Entries for the fuzz targets: feeds, and calendar files. Each takes any bytes and panics if a promise of the crate is broken. Only in
//! builds with `--cfg fuzzing`.

use hob_core::Zone;
use hob_text::charset;
use jiff::Timestamp;
use url::Url;

use crate::calendar::{CalendarEvent, EventRange, EventTime, read_calendar};
use crate::feed::{FeedEntry, newest, read_feed};

/// The most entries of a feed, and the most characters of a title, of a summary and of an address.
const ENTRIES: usize = 1_000;
const TITLE: usize = 200;
const SUMMARY: usize = 400;
const ADDRESS: usize = 2_000;

/// The most events of a range, the most notes on them, and the most characters of their titles and places.
const EVENTS: usize = 5_000;
const NOTES: usize = 20;
const EVENT_TEXT: usize = 300;

/// A feed in any format. Its entries have limits, and lead to the web.
pub fn feed(bytes: &[u8]) {
    let Ok(base) = Url::parse("https://example.org/news/feed.xml") else { panic!("the address is valid") };
    let feed = match read_feed(bytes, None, &base) {
        Ok(feed) => feed,
        Err(error) => {
            assert!(!error.to_string().is_empty(), "a feed is refused without a reason");
            return;
        }
    };
    assert!(feed.entries.len() <= ENTRIES, "a feed has too many entries");
    check_line(&feed.title, TITLE);
    feed.entries.iter().for_each(check_entry);
    let shown = newest(feed.entries, Some(Timestamp::UNIX_EPOCH), 10);
    assert!(shown.len() <= 10, "too many entries are shown");
    assert!(shown.is_sorted_by_key(|entry| std::cmp::Reverse(entry.date)), "an old entry comes first");
}

fn check_entry(entry: &FeedEntry) {
    check_line(&entry.title, TITLE);
    check_line(&entry.summary, SUMMARY);
    let is_usable = |link: &String| {
        link.len() <= ADDRESS && (link.starts_with("http://") || link.starts_with("https://"))
    };
    assert!(entry.link.as_ref().is_none_or(is_usable), "the address of an entry leads elsewhere");
}

/// A calendar file. Its events have limits, and lie in the range.
pub fn calendar(bytes: &[u8]) {
    let Some(owner) = Zone::named("Europe/Berlin") else { panic!("the zones are built in") };
    // Clocks change in it.
    let at = |time: &str| time.parse().unwrap_or(Timestamp::UNIX_EPOCH);
    let range = EventRange { from: at("2026-03-01T00:00:00Z"), to: at("2026-04-15T00:00:00Z") };
    let files = [charset::decode(bytes, None)];
    let Ok(reading) = read_calendar(&files, range, owner.time_zone()) else { return };
    assert!(reading.events.len() <= EVENTS, "there are too many events");
    assert!(reading.notes.len() <= NOTES, "there are too many notes");
    reading.events.iter().for_each(|event| check_event(event, range));
}

fn check_event(event: &CalendarEvent, range: EventRange) {
    assert!(!event.summary.is_empty(), "an event has no title");
    check_line(&event.summary, EVENT_TEXT);
    check_line(event.location.as_deref().unwrap_or_default(), EVENT_TEXT);
    match event.time {
        EventTime::Days { first, last } => assert!(first <= last, "an event ends before it begins"),
        EventTime::Span { start, end } => {
            assert!(start <= end, "an event ends before it begins");
            assert!(start < range.to && end >= range.from, "an event is not in the range");
        }
    }
}

/// A text of a stranger is one line of bounded length. A text that is cut ends with an ellipsis.
fn check_line(text: &str, most: usize) {
    assert!(text.chars().count() <= most + 1, "a text is too long");
    assert!(!text.contains(char::is_control), "a text has a control character");
}
