//! The configured sources, and how they are read.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hob_core::{Clock, SystemClock, Zone};
use hob_net::egress::{AddressLookup, AddressPolicy, system_lookup};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

/// All sources, and what reading them needs.
#[derive(Clone)]
pub struct SourceOptions {
    pub calendars: Vec<CalendarSource>,
    pub feeds: Vec<WebSource>,
    pub pages: Vec<WebSource>,
    pub weather: Option<WeatherPlace>,
    /// The zone of the owner: where a day begins, and how times are shown. The run of a task has its own.
    pub zone: Zone,
    pub clock: Arc<dyn Clock>,
    pub http: SourceHttpOptions,
}

impl Default for SourceOptions {
    fn default() -> Self {
        SourceOptions {
            calendars: Vec::new(),
            feeds: Vec::new(),
            pages: Vec::new(),
            weather: None,
            zone: Zone::system(),
            clock: Arc::new(SystemClock),
            http: SourceHttpOptions::default(),
        }
    }
}

impl SourceOptions {
    pub fn is_empty(&self) -> bool {
        self.calendars.is_empty() && self.feeds.is_empty() && self.pages.is_empty() && self.weather.is_none()
    }
}

/// How addresses are read.
#[derive(Clone)]
pub struct SourceHttpOptions {
    /// The addresses that a redirect to another host may lead to.
    pub policy: AddressPolicy,
    /// Resolves the names of such hosts.
    pub lookup: AddressLookup,
    /// The time limit for one request, including redirects.
    pub timeout: Duration,
}

impl Default for SourceHttpOptions {
    fn default() -> Self {
        SourceHttpOptions {
            policy: AddressPolicy::public_only(),
            lookup: system_lookup(),
            timeout: Duration::from_secs(20),
        }
    }
}

/// A calendar.
#[derive(Debug, Clone)]
pub struct CalendarSource {
    pub name: String,
    pub address: CalendarAddress,
}

/// Where a calendar is.
#[derive(Debug, Clone)]
pub enum CalendarAddress {
    /// A calendar file on a server. Anyone who knows the address can read it.
    Url(SecretString),
    /// A calendar file on this machine.
    File(PathBuf),
    /// All calendars of a user, or one calendar, on a CalDAV server.
    CalDav { url: String, login: SourceLogin },
}

/// A user name and a password.
#[derive(Debug, Clone)]
pub struct SourceLogin {
    pub user: String,
    pub password: SecretString,
}

/// A feed or a page. The address may contain a key.
#[derive(Debug, Clone)]
pub struct WebSource {
    pub name: String,
    pub url: SecretString,
}

impl WebSource {
    /// Whether its name was made of its address: the host, or the host with a number.
    pub(crate) fn is_unnamed(&self) -> bool {
        let Some(host) = host_name(self.url.expose_secret()) else { return false };
        let Some(rest) = self.name.strip_prefix(&host) else { return false };
        rest.is_empty() || rest.strip_prefix('-').is_some_and(|number| number.parse::<u32>().is_ok())
    }
}

/// The name of a source without a chosen one: the host of its address, without `www.`.
pub fn host_name(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let host = url.host_str()?;
    Some(host.strip_prefix("www.").unwrap_or(host).to_owned())
}

/// The place whose weather is read.
#[derive(Debug, Clone, PartialEq)]
pub struct WeatherPlace {
    /// Address of a service in the format of Open-Meteo, without a query.
    pub url: String,
    pub latitude: f64,
    pub longitude: f64,
    /// The name in answers.
    pub place: Option<String>,
    pub units: WeatherUnits,
}

/// The units of the weather.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeatherUnits {
    /// Degrees Celsius, km/h, millimetres.
    Metric,
    /// Degrees Fahrenheit, mph, inches.
    Imperial,
}

/// The kind of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    Calendar,
    Feed,
    Weather,
    Page,
}

impl SourceKind {
    pub fn as_str(self) -> &'static str {
        match self {
            SourceKind::Calendar => "calendar",
            SourceKind::Feed => "feed",
            SourceKind::Weather => "weather",
            SourceKind::Page => "page",
        }
    }
}

/// A configured source, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredSource {
    pub kind: SourceKind,
    pub name: String,
    /// The host or the path. Never a complete address, which may contain a key.
    pub place: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_unnamed_if_its_name_is_its_host() {
        for (name, address, expected) in [
            ("example.org", "https://www.example.org/feed.xml?key=1", true),
            ("example.org-2", "https://example.org/other.xml", true),
            ("news", "https://example.org/feed.xml", false),
            ("example.organic", "https://example.org/feed.xml", false),
            ("example.org-news", "https://example.org/feed.xml", false),
            ("", "no address", false),
        ] {
            let source = WebSource { name: name.to_owned(), url: address.into() };
            assert_eq!(source.is_unnamed(), expected, "{name} {address}");
        }
    }
}
