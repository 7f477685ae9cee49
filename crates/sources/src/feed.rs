//! Reads feeds: RSS 0.9 to 2.0, Atom and JSON Feed. Pure: knows no network and no clock.

use std::fmt;

use hob_text::charset;
use hob_text::html_to_text::{ReadOptions, readable_lines};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use thiserror::Error;
use url::Url;

use crate::xml::{XmlElement, XmlError, XmlSpace, parse};

/// Entries of one feed that are read.
const MAX_ENTRIES: usize = 1_000;
/// Characters of a title.
const MAX_TITLE: usize = 200;
/// Characters of a summary.
const MAX_SUMMARY: usize = 400;
/// Bytes of an address. A longer one is omitted.
const MAX_LINK: usize = 2_000;

/// The part of a summary's HTML that is read.
const MAX_HTML: usize = 16 << 10;

/// Why a feed cannot be read.
#[derive(Debug, Error)]
pub enum FeedError {
    #[error("the answer is not a feed: it is not valid XML: {0}")]
    Xml(#[from] XmlError),
    #[error("the answer is not a feed: it is not valid JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the answer is not a feed: its first element is '{0}'. Is it a web page?")]
    NotFeed(String),
}

/// An entry of a feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedEntry {
    pub title: String,
    pub link: Option<String>,
    pub date: Option<Timestamp>,
    /// Text on one line.
    pub summary: String,
}

/// What a feed has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FeedReading {
    /// Its own title; may be empty.
    pub title: String,
    /// In its own order.
    pub entries: Vec<FeedEntry>,
}

/// Reads a feed.
pub(crate) fn read_feed(
    body: &[u8],
    content_type: Option<&str>,
    base: &Url,
) -> Result<FeedReading, FeedError> {
    let text = charset::decode(body, content_type);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let mut feed = if text.starts_with('{') { json_feed(text)? } else { xml_feed(text)? };
    for entry in &mut feed.entries {
        let absolute = entry.link.as_deref().and_then(|link| base.join(link.trim()).ok());
        let is_usable =
            |link: &Url| matches!(link.scheme(), "http" | "https") && link.as_str().len() <= MAX_LINK;
        entry.link = absolute.filter(is_usable).map(Into::into);
    }
    Ok(feed)
}

/// The newest entries: at most `count`, and none from before a time if there is one. Entries without a date come last, because they
/// may be new.
pub(crate) fn newest(mut entries: Vec<FeedEntry>, since: Option<Timestamp>, count: usize) -> Vec<FeedEntry> {
    if let Some(since) = since {
        entries.retain(|entry| entry.date.is_none_or(|date| date >= since));
    }
    // Stable, so that entries without a date keep the order of the feed.
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.date));
    entries.truncate(count);
    entries
}

fn xml_feed(text: &str) -> Result<FeedReading, FeedError> {
    let root = parse(text)?;
    let entries: Vec<FeedEntry> = match root.name.as_str() {
        "rss" => {
            let items = root.all(XmlSpace::Plain, "channel").flat_map(XmlElement::elements);
            items.filter(is_item).take(MAX_ENTRIES).map(rss_entry).collect()
        }
        "RDF" => root.elements().filter(is_item).take(MAX_ENTRIES).map(rss_entry).collect(),
        "feed" => {
            let entries = root.all(root.space, "entry");
            entries.take(MAX_ENTRIES).map(atom_entry).collect()
        }
        other => return Err(FeedError::NotFeed(cut(other, 40))),
    };
    let title = match root.name.as_str() {
        "feed" => root.first(root.space, "title"),
        _ => {
            root.first(XmlSpace::Plain, "channel").and_then(|channel| channel.first(XmlSpace::Plain, "title"))
        }
    };
    let title = title.map(|title| html_text(&title.text(), MAX_TITLE)).unwrap_or_default();
    Ok(FeedReading { title, entries })
}

fn is_item(element: &&XmlElement) -> bool {
    element.space == XmlSpace::Plain && element.name == "item"
}

fn rss_entry(item: &XmlElement) -> FeedEntry {
    let text = |space, name: &str| item.first(space, name).map(XmlElement::text);
    let date = text(XmlSpace::Plain, "pubDate").or_else(|| text(XmlSpace::DublinCore, "date"));
    let summary = text(XmlSpace::Plain, "description").or_else(|| text(XmlSpace::Content, "encoded"));
    // A permanent identifier is an address.
    let guid =
        item.first(XmlSpace::Plain, "guid").filter(|guid| guid.attribute("isPermaLink") != Some("false"));
    FeedEntry {
        title: html_text(&text(XmlSpace::Plain, "title").unwrap_or_default(), MAX_TITLE),
        link: text(XmlSpace::Plain, "link")
            .filter(|link| !link.trim().is_empty())
            .or_else(|| guid.map(XmlElement::text)),
        date: date.as_deref().and_then(read_date),
        summary: html_text(&summary.unwrap_or_default(), MAX_SUMMARY),
    }
}

fn atom_entry(entry: &XmlElement) -> FeedEntry {
    let space = entry.space;
    let text = |name: &str, most: usize| {
        let element = entry.first(space, name)?;
        let text = element.text();
        Some(match element.attribute("type") {
            Some("html" | "text/html") => html_text(&text, most),
            _ => plain_text(&text, most),
        })
    };
    let date = entry.first(space, "published").or_else(|| entry.first(space, "updated"));
    let mut links = entry.all(space, "link");
    let link = links.find(|link| matches!(link.attribute("rel"), None | Some("alternate")));
    FeedEntry {
        title: text("title", MAX_TITLE).unwrap_or_default(),
        link: link.and_then(|link| link.attribute("href")).map(str::to_owned),
        date: date.and_then(|date| read_date(&date.text())),
        summary: text("summary", MAX_SUMMARY).or_else(|| text("content", MAX_SUMMARY)).unwrap_or_default(),
    }
}

/// A short answer can have a million items, so those that are not used are not built.
#[derive(Deserialize)]
struct JsonFeed {
    #[serde(default)]
    title: AnyTitle,
    #[serde(default, deserialize_with = "first_items")]
    items: Vec<JsonItem>,
}

/// A title; a value that is not text counts as none.
#[derive(Default)]
struct AnyTitle(String);

impl<'de> Deserialize<'de> for AnyTitle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TitleVisitor)
    }
}

struct TitleVisitor;

impl<'de> Visitor<'de> for TitleVisitor {
    type Value = AnyTitle;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a title")
    }

    fn visit_str<E>(self, text: &str) -> Result<AnyTitle, E> {
        Ok(AnyTitle(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<AnyTitle, E> {
        Ok(AnyTitle::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<AnyTitle, E> {
        Ok(AnyTitle::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<AnyTitle, E> {
        Ok(AnyTitle::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<AnyTitle, E> {
        Ok(AnyTitle::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<AnyTitle, E> {
        Ok(AnyTitle::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<AnyTitle, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(AnyTitle::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AnyTitle, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(AnyTitle::default())
    }
}

/// Reads as many items as are used, and skips the others.
fn first_items<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<JsonItem>, D::Error> {
    deserializer.deserialize_seq(ItemsVisitor)
}

struct ItemsVisitor;

impl<'de> Visitor<'de> for ItemsVisitor {
    type Value = Vec<JsonItem>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<JsonItem>, A::Error> {
        let mut items = Vec::new();
        while items.len() < MAX_ENTRIES {
            match list.next_element()? {
                Some(item) => items.push(item),
                None => return Ok(items),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(items)
    }
}

#[derive(Deserialize)]
struct JsonItem {
    title: Option<String>,
    url: Option<String>,
    date_published: Option<String>,
    summary: Option<String>,
    content_text: Option<String>,
    content_html: Option<String>,
}

fn json_feed(text: &str) -> Result<FeedReading, FeedError> {
    let feed: JsonFeed = serde_json::from_str(text)?;
    let entry = |item: JsonItem| {
        let plain = item.summary.or(item.content_text).map(|text| plain_text(&text, MAX_SUMMARY));
        let html = || item.content_html.map(|html| html_text(&html, MAX_SUMMARY));
        FeedEntry {
            title: plain_text(&item.title.unwrap_or_default(), MAX_TITLE),
            link: item.url,
            date: item.date_published.as_deref().and_then(read_date),
            summary: plain.or_else(html).unwrap_or_default(),
        }
    };
    let AnyTitle(title) = feed.title;
    let title = plain_text(&title, MAX_TITLE);
    Ok(FeedReading { title, entries: feed.items.into_iter().map(entry).collect() })
}

/// Reads the dates of RSS (RFC 2822) and of the others (RFC 3339), and a date alone.
fn read_date(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(date) = text.parse::<Timestamp>() {
        return Some(date);
    }
    if let Ok(date) = rfc2822::parse(text) {
        return Some(date.timestamp());
    }
    let date: Date = text.parse().ok()?;
    TimeZone::UTC.to_timestamp(date.at(0, 0, 0, 0)).ok()
}

/// HTML as text on one line.
fn html_text(html: &str, most: usize) -> String {
    if !html.contains(['<', '&']) {
        return plain_text(html, most);
    }
    let start = html.char_indices().nth(MAX_HTML).map_or(html, |(end, _)| &html[..end]);
    let (text, _) = readable_lines(start, ReadOptions { base: None, max_bytes: MAX_HTML });
    plain_text(&text.text, most)
}

fn plain_text(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let clean: String = words.join(" ").chars().filter(|character| !character.is_control()).collect();
    cut(&clean, most)
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
#[path = "feed_tests.rs"]
mod tests;
