//! Turns the answers to the questions of a recipe into settings. Pure, except for a mailbox, which needs a login.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use hob_config::{Config, LocalSetting, SourcesConfig};
use hob_sources::host_name;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use url::Url;

use super::catalog::RecipeSource;
use crate::commands::channel;
use crate::output::text::one_line;

/// Feeds in one answer.
const MOST_FEEDS: usize = 20;

/// The settings for an answer; none for an empty one. A feed keeps its name if it is `known`, and gets a new one otherwise.
pub(super) fn settings_for(source: RecipeSource, answer: &str, known: &Config) -> Result<Vec<LocalSetting>> {
    let answer = answer.trim();
    if answer.is_empty() {
        return Ok(Vec::new());
    }
    match source {
        RecipeSource::Calendar => Ok(vec![LocalSetting::new("sources.calendar", "main", calendar(answer)?)]),
        RecipeSource::Place => place(answer),
        RecipeSource::Feeds => {
            let addresses: Vec<&str> =
                answer.split([' ', ',']).filter(|address| !address.is_empty()).collect();
            if addresses.len() > MOST_FEEDS {
                bail!("name at most {MOST_FEEDS} feeds.");
            }
            feeds(&addresses, &known.sources)
        }
        RecipeSource::Mailbox => channel::mailbox_settings(&known.mail, answer),
        RecipeSource::Page => Ok(vec![named("sources.pages", answer)?]),
    }
}

/// A calendar on the web or in a file.
fn calendar(answer: &str) -> Result<Value> {
    match answer.contains("://") {
        true => Ok(json!({ "url": checked(answer)?.as_str() })),
        false if answer.starts_with('/') && !Path::new(answer).is_file() => {
            bail!(
                "there is no file '{}'. Write the full path of a calendar, or its address.",
                one_line(answer)
            )
        }
        false if answer.starts_with(['/', '~']) => Ok(json!({ "file": answer })),
        false => bail!(
            "'{}' is no calendar. Write an address such as https://example.org/me.ics, or the full path of a file.",
            one_line(answer)
        ),
    }
}

/// `52.52,13.41,Berlin`; the name is optional.
fn place(answer: &str) -> Result<Vec<LocalSetting>> {
    let wrong = || {
        anyhow!(
            "'{}' is no place. Write latitude,longitude,name such as 52.52,13.41,Berlin. Maps show both numbers for every place.",
            one_line(answer)
        )
    };
    let mut parts = answer.splitn(3, ',').map(str::trim);
    let mut degrees = |most: f64| {
        let number: f64 = parts.next().and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
        if number.abs() <= most { Ok(number) } else { Err(wrong()) }
    };
    let (latitude, longitude) = (degrees(90.0)?, degrees(180.0)?);
    let mut settings = vec![
        LocalSetting::new("sources.weather", "latitude", json!(latitude)),
        LocalSetting::new("sources.weather", "longitude", json!(longitude)),
    ];
    if let Some(name) = parts.next().filter(|name| !name.is_empty()) {
        settings.push(LocalSetting::new("sources.weather", "place", json!(name)));
    }
    Ok(settings)
}

/// Feeds under the names of their hosts, with a number where a host has several. A feed that is known keeps its name.
fn feeds(addresses: &[&str], known: &SourcesConfig) -> Result<Vec<LocalSetting>> {
    let mut settings: Vec<LocalSetting> = Vec::new();
    for address in addresses {
        let url = checked(address)?;
        let host = host_name(url.as_str()).unwrap_or_else(|| "main".to_owned());
        let mut feeds = known.feeds.iter();
        let same =
            feeds.find(|(_, other)| other.expose_secret() == url.as_str()).map(|(name, _)| name.clone());
        let is_free = |name: &String| {
            !known.feeds.contains_key(name)
                && settings.iter().all(|other| other.key != *name || other.value == url.as_str())
        };
        let numbered = (2..).map(|number: u32| format!("{host}-{number}"));
        let mut names = std::iter::once(host.clone()).chain(numbered);
        let name = same.or_else(|| names.find(is_free)).unwrap_or_else(|| host.clone());
        settings.push(LocalSetting::new("sources.feeds", &name, url.as_str()));
    }
    Ok(settings)
}

/// An address under a name that is made of it.
fn named(section: &str, address: &str) -> Result<LocalSetting> {
    let url = checked(address)?;
    let host = url.host_str().unwrap_or_default();
    let path = url.path().trim_matches('/');
    let letters = format!("{} {path}", host.strip_prefix("www.").unwrap_or(host));
    let words = letters.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name: String = words.collect::<Vec<_>>().join("-").to_lowercase().chars().take(40).collect();
    let name = name.trim_end_matches('-');
    Ok(LocalSetting::new(section, if name.is_empty() { "main" } else { name }, json!(url.as_str())))
}

fn checked(address: &str) -> Result<Url> {
    let is_web = |url: &Url| matches!(url.scheme(), "http" | "https" | "webcal") && url.has_host();
    let url = Url::parse(address).ok().filter(is_web);
    url.ok_or_else(|| {
        anyhow!("'{}' is not an address. Write one such as https://example.org/feed.xml.", one_line(address))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(source: RecipeSource, answer: &str) -> Vec<(String, Value)> {
        let settings = settings_for(source, answer, &Config::default()).expect(answer).into_iter();
        settings.map(|setting| (format!("{}.{}", setting.section, setting.key), setting.value)).collect()
    }

    #[test]
    fn answers_become_settings() {
        use RecipeSource::{Calendar, Feeds, Page, Place};
        let one = |key: &str, value: Value| vec![(key.to_owned(), value)];
        assert_eq!(written(Calendar, "  "), []);
        assert_eq!(
            written(Calendar, "https://example.org/me.ics"),
            one("sources.calendar.main", json!({ "url": "https://example.org/me.ics" }))
        );
        assert_eq!(
            written(Calendar, "~/me.ics"),
            one("sources.calendar.main", json!({ "file": "~/me.ics" }))
        );
        assert_eq!(
            written(Place, "52.52, -13.41, Berlin, Mitte"),
            [
                ("sources.weather.latitude".to_owned(), json!(52.52)),
                ("sources.weather.longitude".to_owned(), json!(-13.41)),
                ("sources.weather.place".to_owned(), json!("Berlin, Mitte")),
            ]
        );
        let feeds = written(Feeds, "https://www.example.org/feed.xml, https://news.example.com");
        let names: Vec<&str> = feeds.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["sources.feeds.example.org", "sources.feeds.news.example.com"]);
        assert_eq!(
            written(Page, "https://example.org/times?line=4"),
            one("sources.pages.example-org-times", json!("https://example.org/times?line=4"))
        );
    }

    #[test]
    fn feeds_of_one_host_have_different_names() {
        let mut known = Config::default();
        known.sources.feeds.insert("example.org".to_owned(), "https://example.org/one.xml".into());
        known.sources.feeds.insert("news".to_owned(), "https://example.org/news.xml".into());
        let answer = "https://example.org/two.xml https://example.org/three.xml https://example.org/one.xml \
                      https://example.org/two.xml https://example.org/news.xml";
        let settings = settings_for(RecipeSource::Feeds, answer, &known).expect("settings");
        let names: Vec<&str> = settings.iter().map(|setting| setting.key.as_str()).collect();
        assert_eq!(names, ["example.org-2", "example.org-3", "example.org", "example.org-2", "news"]);
    }

    #[test]
    fn wrong_answers_say_what_to_write() {
        use RecipeSource::{Calendar, Feeds, Mailbox, Page, Place};
        let many = "https://a.example ".repeat(21);
        for (source, answer, words) in [
            (Calendar, "me.ics", "Write an address such as"),
            (Calendar, "/nowhere/me.ics", "there is no file"),
            (Calendar, "ftp://example.org/me.ics", "is not an address"),
            (Place, "Berlin", "52.52,13.41,Berlin"),
            (Place, "95,13", "is no place"),
            (Place, "nan,13", "is no place"),
            (Feeds, "example.org", "is not an address"),
            (Feeds, many.as_str(), "at most 20 feeds"),
            (Mailbox, "ann", "'ann' is not an e-mail address"),
            (Page, "file:///etc/passwd", "is not an address"),
        ] {
            let error = settings_for(source, answer, &Config::default()).err().expect(answer).to_string();
            assert!(error.contains(words), "{answer}: {error}");
        }
    }
}
