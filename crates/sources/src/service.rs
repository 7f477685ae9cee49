//! Reads the configured sources.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hob_core::{Moment, Permit, Zone};
use hob_text::charset;
use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret;
use url::Url;

use crate::caldav::CalDavSource;
use crate::calendar::{CalendarReading, EventRange, read_calendar};
use crate::error::SourceError;
use crate::feed::{FeedReading, newest, read_feed};
use crate::fetch::{SourceFetcher, SourceRequest, parse_address};
use crate::page::{PageChange, check_page, page_text};
use crate::store::SourceStore;
use crate::types::{
    CalendarAddress, CalendarSource, ConfiguredSource, SourceKind, SourceOptions, WeatherPlace, WebSource,
};
use crate::weather::{describe, forecast_url};

/// A calendar file.
const MAX_CALENDAR: usize = 10 << 20;
const MAX_FEED: usize = 5 << 20;
const MAX_PAGE: usize = 2 << 20;
const MAX_FORECAST: usize = 256 << 10;

const CALENDAR_TYPES: &str = "text/calendar, text/plain;q=0.5, */*;q=0.1";
const FEED_TYPES: &str = "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, text/xml;q=0.9, */*;q=0.1";
const PAGE_TYPES: &str = "text/html, application/xhtml+xml, text/plain, */*;q=0.1";

/// The range that a check of a calendar reads.
const CHECKED_RANGE: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The sources. Only what the owner configured can be read.
pub struct SourceService {
    options: SourceOptions,
    fetcher: SourceFetcher,
    store: Arc<dyn SourceStore>,
}

impl SourceService {
    pub fn new(options: SourceOptions, store: Arc<dyn SourceStore>) -> Self {
        let fetcher = SourceFetcher::new(options.http.clone());
        SourceService { options, fetcher, store }
    }

    pub(crate) fn options(&self) -> &SourceOptions {
        &self.options
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.options.clock.now()
    }

    fn zone(&self) -> &Zone {
        &self.options.zone
    }

    /// The zone of a run: that of its task, or of the owner.
    pub(crate) fn zone_of<'a>(&'a self, permit: &'a Permit) -> &'a Zone {
        permit.zone.as_ref().unwrap_or(&self.options.zone)
    }

    /// All configured sources, without complete addresses.
    pub fn list(&self) -> Vec<ConfiguredSource> {
        let SourceOptions { calendars, feeds, pages, weather, .. } = &self.options;
        let entry = |kind, name: &str, place: String| ConfiguredSource { kind, name: name.to_owned(), place };
        let calendars = calendars.iter().map(|source| {
            let place = match &source.address {
                CalendarAddress::Url(url) => host(url.expose_secret()),
                CalendarAddress::File(path) => path.display().to_string(),
                CalendarAddress::CalDav { url, login } => format!("{} at {}", login.user, host(url)),
            };
            entry(SourceKind::Calendar, &source.name, place)
        });
        let feeds = feeds
            .iter()
            .map(|source| entry(SourceKind::Feed, &source.name, host(source.url.expose_secret())));
        let pages = pages
            .iter()
            .map(|source| entry(SourceKind::Page, &source.name, host(source.url.expose_secret())));
        let weather = weather.iter().map(|place| {
            entry(SourceKind::Weather, place.place.as_deref().unwrap_or("weather"), host(&place.url))
        });
        calendars.chain(feeds).chain(weather).chain(pages).collect()
    }

    /// Reads a source once and says what it has. A page stays as it is remembered. `None` if there is no such source.
    pub async fn check(&self, source: &ConfiguredSource) -> Option<Result<String, SourceError>> {
        let SourceOptions { calendars, feeds, pages, weather, .. } = &self.options;
        let name = source.name.as_str();
        Some(match source.kind {
            SourceKind::Calendar => {
                let calendar = calendars.iter().find(|calendar| calendar.name == name)?;
                self.check_calendar(calendar).await
            }
            SourceKind::Feed => {
                let feed = feeds.iter().find(|feed| feed.name == name)?;
                self.check_feed(feed).await
            }
            SourceKind::Weather => {
                let weather = self.weather(weather.as_ref()?).await;
                weather
                    .map(|text| text.lines().find(|line| line.starts_with("Now")).unwrap_or("ok").to_owned())
            }
            SourceKind::Page => {
                let page = pages.iter().find(|page| page.name == name)?;
                self.page_text(page).await.map(|text| format!("{} lines of text", text.lines().count()))
            }
        })
    }

    async fn check_calendar(&self, source: &CalendarSource) -> Result<String, SourceError> {
        let from = self.now();
        let to = from.saturating_add(CHECKED_RANGE).unwrap_or(Timestamp::MAX);
        let CalendarReading { events, notes } =
            self.calendar(source, EventRange { from, to }, self.zone()).await?;
        let notes: String = notes.iter().map(|note| format!(". {}", note.trim_end_matches('.'))).collect();
        Ok(match events.len() {
            1 => format!("1 event in the next 7 days{notes}"),
            count => format!("{count} events in the next 7 days{notes}"),
        })
    }

    async fn check_feed(&self, source: &WebSource) -> Result<String, SourceError> {
        let FeedReading { title, entries } = self.feed(source).await?;
        let title = if source.is_unnamed() && !title.is_empty() { title + ": " } else { String::new() };
        let count = match entries.len() {
            1 => "1 entry".to_owned(),
            count => format!("{count} entries"),
        };
        let first = newest(entries, None, 1).into_iter().find_map(|entry| entry.date);
        let zone = self.zone().time_zone();
        let first = first.map(|date| format!(", the newest of {}", zone.to_datetime(date).date()));
        Ok(title + &count + &first.unwrap_or_default())
    }

    pub(crate) async fn calendar(
        &self,
        source: &CalendarSource,
        range: EventRange,
        zone: &Zone,
    ) -> Result<CalendarReading, SourceError> {
        let texts = match &source.address {
            CalendarAddress::Url(url) => {
                let url = parse_address(url.expose_secret())?;
                let request = SourceRequest::get(url, CALENDAR_TYPES, MAX_CALENDAR);
                let fetched = self.fetcher.fetch(request).await?;
                vec![charset::decode(&fetched.body, fetched.content_type.as_deref())]
            }
            CalendarAddress::File(path) => {
                let path = path.clone();
                vec![blocking(move || read_file(&path)).await?]
            }
            CalendarAddress::CalDav { url, login } => {
                let server = CalDavSource { fetcher: &self.fetcher, login };
                server.files(&parse_address(url)?, range).await?
            }
        };
        let zone = zone.time_zone().clone();
        // A large calendar takes a while, which must not block other requests.
        blocking(move || Ok(read_calendar(&texts, range, &zone)?)).await
    }

    /// The title and the entries of a feed.
    pub(crate) async fn feed(&self, source: &WebSource) -> Result<FeedReading, SourceError> {
        let url = parse_address(source.url.expose_secret())?;
        let fetched = self.fetcher.fetch(SourceRequest::get(url, FEED_TYPES, MAX_FEED)).await?;
        blocking(move || Ok(read_feed(&fetched.body, fetched.content_type.as_deref(), &fetched.url)?)).await
    }

    pub(crate) async fn weather(&self, place: &WeatherPlace) -> Result<String, SourceError> {
        let url = forecast_url(place)?;
        let fetched = self.fetcher.fetch(SourceRequest::get(url, "application/json", MAX_FORECAST)).await?;
        Ok(describe(&fetched.body, place)?)
    }

    async fn page_text(&self, source: &WebSource) -> Result<String, SourceError> {
        let url = parse_address(source.url.expose_secret())?;
        let fetched = self.fetcher.fetch(SourceRequest::get(url, PAGE_TYPES, MAX_PAGE)).await?;
        blocking(move || page_text(&fetched.body, fetched.content_type.as_deref(), &fetched.url)).await
    }

    /// What is new on a page since the last check.
    pub(crate) async fn page(&self, source: &WebSource) -> Result<PageChange, SourceError> {
        let text = self.page_text(source).await?;
        let (store, now) = (Arc::clone(&self.store), Moment::from_microseconds(self.now().as_microsecond()));
        let (name, address) = (source.name.clone(), source.url.expose_secret().to_owned());
        blocking(move || {
            let check = check_page(store.page(&name)?, &address, text, now);
            store.save_page(&name, &check.page)?;
            Ok(check.change)
        })
        .await
    }
}

/// The host of an address.
fn host(address: &str) -> String {
    let url = Url::parse(address).ok();
    url.as_ref().and_then(Url::host_str).unwrap_or("an invalid address").to_owned()
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SourceError> + Send + 'static,
) -> Result<T, SourceError> {
    hob_db::spawn_blocking(work).await.unwrap_or(Err(SourceError::Panicked))
}

/// Reads a calendar file of this machine.
fn read_file(path: &Path) -> Result<String, SourceError> {
    let failed = |source| SourceError::File { path: PathBuf::from(path), source };
    // A device or a pipe might never end.
    if !path.metadata().map_err(failed)?.is_file() {
        return Err(SourceError::NotFile { path: path.to_owned() });
    }
    let mut body = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(MAX_CALENDAR as u64 + 1).read_to_end(&mut body).map_err(failed)?;
    if body.len() > MAX_CALENDAR {
        return Err(SourceError::TooLarge(MAX_CALENDAR));
    }
    Ok(charset::decode(&body, None))
}
