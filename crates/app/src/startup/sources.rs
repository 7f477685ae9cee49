//! Translates the configuration of sources into their options.

use std::sync::Arc;

use hob_config::{CalendarConfig, SourcesConfig, WeatherConfig, WeatherUnitsSetting};
use hob_db::Storage;
use hob_sources::{
    CalendarAddress, CalendarSource, SourceLogin, SourceOptions, SourceService, WeatherPlace, WeatherUnits,
    WebSource, source_store,
};
use secrecy::SecretString;

/// The configured sources; `None` if there are none. Reads nothing yet, and creates nothing in the database.
pub fn open_sources(config: &SourcesConfig, storage: impl Into<Storage>) -> Option<Arc<SourceService>> {
    let options = source_options(config);
    (!options.is_empty()).then(|| Arc::new(SourceService::new(options, source_store(storage))))
}

fn source_options(config: &SourcesConfig) -> SourceOptions {
    let web = |(name, url): (&String, &SecretString)| WebSource { name: name.clone(), url: url.clone() };
    SourceOptions {
        calendars: config.calendar.iter().map(calendar).collect(),
        feeds: config.feeds.iter().map(web).collect(),
        pages: config.pages.iter().map(web).collect(),
        weather: weather(&config.weather),
        ..SourceOptions::default()
    }
}

fn calendar((name, config): (&String, &CalendarConfig)) -> CalendarSource {
    let address = match config {
        CalendarConfig::Url(url) => CalendarAddress::Url(url.clone()),
        CalendarConfig::File(path) => CalendarAddress::File(path.clone()),
        CalendarConfig::CalDav { url, user, password } => CalendarAddress::CalDav {
            url: url.clone(),
            login: SourceLogin { user: user.clone(), password: password.clone() },
        },
    };
    CalendarSource { name: name.clone(), address }
}

/// The place, if both of its numbers are set.
fn weather(config: &WeatherConfig) -> Option<WeatherPlace> {
    Some(WeatherPlace {
        url: config.url.clone(),
        latitude: config.latitude?,
        longitude: config.longitude?,
        place: config.place.clone(),
        units: match config.units {
            WeatherUnitsSetting::Metric => WeatherUnits::Metric,
            WeatherUnitsSetting::Imperial => WeatherUnits::Imperial,
        },
    })
}

#[cfg(test)]
mod tests {
    use hob_sources::{SourceKind, source_tools};

    use super::*;
    use crate::databases::hob_database;

    #[test]
    fn sources_that_are_not_configured_do_not_exist() {
        let home = tempfile::tempdir().unwrap();
        let mut config = SourcesConfig::default();
        // Half a place is none.
        config.weather.latitude = Some(52.5);
        assert!(open_sources(&config, hob_database(home.path())).is_none());
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "and leave nothing behind");
    }

    #[test]
    fn each_kind_of_source_has_its_tool_and_no_address_is_shown() {
        let home = tempfile::tempdir().unwrap();
        let mut config = SourcesConfig::default();
        let secret = |text: &str| SecretString::from(text.to_owned());
        config
            .calendar
            .insert("work".to_owned(), CalendarConfig::Url(secret("https://example.org/s3cret.ics")));
        config.feeds.insert("news".to_owned(), secret("https://example.org/feed?key=s3cret"));
        let tools = |config: &SourcesConfig| -> Vec<String> {
            let sources = open_sources(config, hob_database(home.path())).unwrap();
            source_tools(&sources).iter().map(|tool| tool.spec().name.clone()).collect()
        };
        assert_eq!(tools(&config), ["calendar", "feeds"]);
        config.pages.insert("times".to_owned(), secret("https://example.org/times?key=s3cret"));
        (config.weather.latitude, config.weather.longitude) = (Some(52.5), Some(13.4));
        assert_eq!(tools(&config), ["calendar", "feeds", "weather", "page_changes"]);
        let listed = open_sources(&config, hob_database(home.path())).unwrap().list();
        let kinds: Vec<SourceKind> = listed.iter().map(|source| source.kind).collect();
        assert_eq!(kinds, [SourceKind::Calendar, SourceKind::Feed, SourceKind::Weather, SourceKind::Page]);
        assert!(!format!("{listed:?} {config:?}").contains("s3cret"));
    }
}
