//! Feeds of every kind, and what is none.

use super::*;

fn base() -> Url {
    Url::parse("https://example.org/feeds/main").unwrap()
}

fn entries(text: &str) -> Vec<FeedEntry> {
    read_feed(text.as_bytes(), None, &base()).unwrap().entries
}

#[test]
fn a_feed_has_its_own_title() {
    let title = |text: &str| read_feed(text.as_bytes(), None, &base()).unwrap().title;
    for (text, expected) in [
        (
            "<rss><channel><title> Tea &amp;amp;\n cake </title><item><title>no</title></item></channel></rss>",
            "Tea & cake",
        ),
        ("<feed xmlns='http://www.w3.org/2005/Atom'><title>Atom</title></feed>", "Atom"),
        (r#"{"title": "JSON", "items": []}"#, "JSON"),
        (r#"{"title": 7, "items": []}"#, ""),
        ("<rss><channel><item><title>no</title></item></channel></rss>", ""),
    ] {
        assert_eq!(title(text), expected, "{text}");
    }
    let long = format!("<rss><channel><title>{}</title></channel></rss>", "x".repeat(100_000));
    assert_eq!(title(&long).chars().count(), MAX_TITLE + 1);
}

fn at(text: &str) -> Option<Timestamp> {
    Some(text.parse().unwrap())
}

#[test]
fn rss_2_is_read_and_elements_of_other_namespaces_are_not_mistaken_for_it() {
    let feed = "<?xml version='1.0'?><rss version='2.0' xmlns:media='http://search.yahoo.com/mrss/' \
        xmlns:content='http://purl.org/rss/1.0/modules/content/'><channel><title>News</title>\
        <item><media:title>wrong</media:title><title>Tea &amp;amp; cake</title><link>/tea</link>\
        <pubDate>Tue, 03 Mar 2026 09:30:00 +0100</pubDate>\
        <description><![CDATA[<p>A <b>hot</b> drink.</p><script>x()</script>]]></description></item>\
        <item><title>No link</title><guid>https://example.org/2</guid>\
        <content:encoded>&lt;p&gt;Full text&lt;/p&gt;</content:encoded></item>\
        <item><guid isPermaLink='false'>123</guid><link>javascript:alert(1)</link></item></channel></rss>";
    assert_eq!(
        entries(feed),
        [
            FeedEntry {
                title: "Tea & cake".to_owned(),
                link: Some("https://example.org/tea".to_owned()),
                date: at("2026-03-03T08:30:00Z"),
                summary: "A hot drink.".to_owned(),
            },
            FeedEntry {
                title: "No link".to_owned(),
                link: Some("https://example.org/2".to_owned()),
                date: None,
                summary: "Full text".to_owned(),
            },
            FeedEntry { title: String::new(), link: None, date: None, summary: String::new() },
        ]
    );
}

#[test]
fn rss_1_has_its_items_beside_the_channel() {
    let feed = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' \
        xmlns='http://purl.org/rss/1.0/' xmlns:dc='http://purl.org/dc/elements/1.1/'>\
        <channel><title>News</title></channel>\
        <item><title>One</title><link>https://example.org/1</link><dc:date>2026-03-03</dc:date></item></rdf:RDF>";
    let read = entries(feed);
    assert_eq!((read.len(), read[0].title.as_str(), read[0].date), (1, "One", at("2026-03-03T00:00:00Z")));
}

#[test]
fn atom_is_read_with_its_kinds_of_text() {
    let feed = "<a:feed xmlns:a='http://www.w3.org/2005/Atom'><a:title>News</a:title><a:entry>\
        <a:title type='html'>1 &amp;lt; 2</a:title><a:link rel='self' href='x'/><a:link href='entry/1'/>\
        <a:updated>2026-03-03T10:00:00+01:00</a:updated>\
        <a:content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'>One <i>two</i> three</div></a:content>\
        </a:entry></a:feed>";
    assert_eq!(
        entries(feed),
        [FeedEntry {
            title: "1 < 2".to_owned(),
            link: Some("https://example.org/feeds/entry/1".to_owned()),
            date: at("2026-03-03T09:00:00Z"),
            summary: "One two three".to_owned(),
        }]
    );
}

#[test]
fn json_feed_is_read() {
    let feed = r#"{ "version": "https://jsonfeed.org/version/1.1", "title": "News", "items": [
        { "id": "1", "title": "One", "url": "https://example.org/1", "content_html": "<p>Text</p>",
          "date_published": "2026-03-03T09:00:00Z" } ] }"#;
    let read = entries(feed);
    assert_eq!((read[0].title.as_str(), read[0].summary.as_str()), ("One", "Text"));
    assert_eq!(read[0].date, at("2026-03-03T09:00:00Z"));
}

#[test]
fn the_newest_come_first_and_the_rest_is_omitted() {
    let entry = |title: &str, date: Option<&str>| FeedEntry {
        title: title.to_owned(),
        link: None,
        date: date.and_then(at),
        summary: String::new(),
    };
    let all = vec![
        entry("old", Some("2026-03-01T00:00:00Z")),
        entry("undated", None),
        entry("new", Some("2026-03-03T00:00:00Z")),
    ];
    let titles =
        |entries: Vec<FeedEntry>| -> Vec<String> { entries.into_iter().map(|entry| entry.title).collect() };
    assert_eq!(titles(newest(all.clone(), None, 10)), ["new", "old", "undated"]);
    assert_eq!(titles(newest(all.clone(), None, 1)), ["new"]);
    assert_eq!(titles(newest(all, at("2026-03-02T00:00:00Z"), 10)), ["new", "undated"]);
}

#[test]
fn what_is_no_feed_is_said() {
    let fails = |text: &str| read_feed(text.as_bytes(), None, &base()).unwrap_err().to_string();
    assert_eq!(
        fails("<html><body>Sign in</body></html>"),
        "the answer is not a feed: its first element is 'html'. Is it a web page?"
    );
    assert!(fails("{ \"items\": 3 }").contains("not valid JSON"));
    assert!(fails("<rss><channel>").contains("not valid XML"));
    assert!(fails("").contains("not valid XML"));
    assert!(fails(&"<rss>".repeat(1_000)).contains("nested"));
}

#[test]
fn a_large_feed_is_cut() {
    let item = format!(
        "<item><title>{}</title><description>{}</description></item>",
        "t".repeat(5_000),
        "d".repeat(50_000)
    );
    let feed = format!("<rss><channel>{}</channel></rss>", item.repeat(80));
    let read = entries(&feed);
    assert_eq!(read.len(), 80);
    assert_eq!(
        (read[0].title.chars().count(), read[0].summary.chars().count()),
        (MAX_TITLE + 1, MAX_SUMMARY + 1)
    );
    let many = format!("<rss><channel>{}</channel></rss>", "<item/>".repeat(5_000));
    assert_eq!(entries(&many).len(), MAX_ENTRIES);
}

#[test]
fn an_address_without_end_is_omitted() {
    let feed = format!(
        "<rss><channel><item><title>Tea</title><link>https://example.org/{}</link></item></channel></rss>",
        "x".repeat(1 << 20)
    );
    assert_eq!(entries(&feed)[0].link, None);
}

#[test]
fn what_a_json_feed_has_besides_its_first_items_is_skipped() {
    // Values that are read would be refused.
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let items = format!("{}7, \"x\", {deep}", "{}, ".repeat(MAX_ENTRIES));
    let feed = format!(r#"{{ "title": [{deep}], "items": [{items}] }}"#);
    let read = read_feed(feed.as_bytes(), None, &base()).unwrap();
    assert_eq!((read.title.as_str(), read.entries.len()), ("", MAX_ENTRIES));
    for title in ["null", "true", "7", "-7", "7.5", r#"{ "a": [1] }"#] {
        let feed = format!(r#"{{ "title": {title}, "items": [{{ "title": "Tea" }}] }}"#);
        let read = read_feed(feed.as_bytes(), None, &base()).unwrap();
        assert_eq!((read.title.as_str(), read.entries[0].title.as_str()), ("", "Tea"), "{title}");
    }
}
