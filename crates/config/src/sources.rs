//! `[sources]`: the calendars, feeds, web pages and weather that agents may read for briefings.

use std::collections::BTreeMap;
use std::path::PathBuf;

use secrecy::{ExposeSecret, SecretString};
use toml::de::{DeTable, DeValue};
use url::Url;

use crate::kind::{HTTP_URL, OPTIONAL_TEXT, expand, quote};
use crate::settings_schema::{Exposure, Keys, Kind, Section, Typed, keys_of};

/// Settings of all sources.
#[derive(Debug, Clone, Default)]
pub struct SourcesConfig {
    /// Calendars, by the name that agents use.
    pub calendar: BTreeMap<String, CalendarConfig>,
    /// Addresses of news feeds, by name. Some contain a key.
    pub feeds: BTreeMap<String, SecretString>,
    /// Addresses of web pages that are watched for changes, by name.
    pub pages: BTreeMap<String, SecretString>,
    pub weather: WeatherConfig,
}

/// Where a calendar is.
#[derive(Debug, Clone)]
pub enum CalendarConfig {
    /// A calendar file on a server. The address is secret, because anyone who knows it can read the calendar.
    Url(SecretString),
    /// A calendar file on this machine.
    File(PathBuf),
    /// A CalDAV server.
    CalDav { url: String, user: String, password: SecretString },
}

/// Settings of the weather.
#[derive(Debug, Clone)]
pub struct WeatherConfig {
    /// Address of a service in the format of Open-Meteo.
    pub url: String,
    /// `None` for no weather.
    pub latitude: Option<f64>,
    /// `None` for no weather.
    pub longitude: Option<f64>,
    /// The name of the place in answers.
    pub place: Option<String>,
    pub units: WeatherUnitsSetting,
}

impl Default for WeatherConfig {
    fn default() -> Self {
        WeatherConfig {
            url: "https://api.open-meteo.com/v1/forecast".to_owned(),
            latitude: None,
            longitude: None,
            place: None,
            units: WeatherUnitsSetting::Metric,
        }
    }
}

/// The units of the weather.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeatherUnitsSetting {
    /// Degrees Celsius, km/h, millimetres.
    Metric,
    /// Degrees Fahrenheit, mph, inches.
    Imperial,
}

impl WeatherUnitsSetting {
    const NAMES: [&str; 2] = ["metric", "imperial"];

    fn as_str(self) -> &'static str {
        match self {
            WeatherUnitsSetting::Metric => Self::NAMES[0],
            WeatherUnitsSetting::Imperial => Self::NAMES[1],
        }
    }
}

/// The keys that a calendar may have.
const FIELDS: [&str; 5] = ["url", "file", "caldav", "user", "password"];

const CALENDAR: Kind<CalendarConfig> = Kind {
    expected: "a calendar such as { url = \"https://example.org/me.ics\" }, { file = \"~/me.ics\" } or \
               { caldav = \"https://dav.example.org/\", user = \"ann\", password = \"…\" }",
    read: |typed| Calendar { table: typed.value.as_table()?, typed }.read(),
    write: write_calendar,
    exposure: Exposure::Secret,
};

/// An address that may have a query, such as a key.
const WEB_ADDRESS: Kind<SecretString> = Kind {
    expected: "an http or https address without a user name and password",
    read: |typed| web_address(typed.text()?).map(SecretString::from),
    write: |url| quote(url.expose_secret()),
    exposure: Exposure::Secret,
};

const LATITUDE: Kind<Option<f64>> = Kind {
    expected: "degrees from -90 to 90, or \"\" for none",
    read: |typed| degrees(typed, 90.0),
    write: |degrees| degrees.map_or_else(|| quote(""), |degrees| format!("{degrees:?}")),
    exposure: Exposure::Open,
};

const LONGITUDE: Kind<Option<f64>> = Kind {
    expected: "degrees from -180 to 180, or \"\" for none",
    read: |typed| degrees(typed, 180.0),
    write: LATITUDE.write,
    exposure: Exposure::Open,
};

const UNITS: Kind<WeatherUnitsSetting> = Kind {
    expected: "\"metric\" or \"imperial\"",
    read: |typed| {
        let name = typed.text()?.trim();
        let known = [WeatherUnitsSetting::Metric, WeatherUnitsSetting::Imperial];
        known.into_iter().find(|units| units.as_str() == name)
    },
    write: |units| quote(units.as_str()),
    exposure: Exposure::OneOf(&WeatherUnitsSetting::NAMES),
};

/// A calendar as it is written in the file.
struct Calendar<'a> {
    table: &'a DeTable<'a>,
    typed: &'a Typed<'a>,
}

impl Calendar<'_> {
    fn read(&self) -> Option<CalendarConfig> {
        if !self.table.iter().all(|(name, _)| FIELDS.contains(&name.get_ref().as_ref())) {
            return None;
        }
        let has = |name: &str| self.table.get(name).is_some();
        let has_login = has("user") || has("password");
        match (has("url"), has("file"), has("caldav")) {
            (true, false, false) if !has_login => {
                Some(CalendarConfig::Url(web_address(self.text("url")?)?.into()))
            }
            (false, true, false) if !has_login => {
                let path = expand(self.text("file")?, self.typed.home)?;
                path.is_absolute().then_some(CalendarConfig::File(path))
            }
            (false, false, true) => Some(CalendarConfig::CalDav {
                url: web_address(self.text("caldav")?)?,
                user: self.text("user")?.to_owned(),
                password: self.text("password")?.to_owned().into(),
            }),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        let value: &DeValue<'_> = self.table.get(name)?.get_ref();
        value.as_str().filter(|text| !text.trim().is_empty())
    }
}

fn write_calendar(calendar: &CalendarConfig) -> String {
    match calendar {
        CalendarConfig::Url(url) => format!("{{ url = {} }}", quote(url.expose_secret())),
        CalendarConfig::File(path) => format!("{{ file = {} }}", quote(&path.to_string_lossy())),
        CalendarConfig::CalDav { url, user, password } => format!(
            "{{ caldav = {}, user = {}, password = {} }}",
            quote(url),
            quote(user),
            quote(password.expose_secret())
        ),
    }
}

/// The address, normalised. `webcal` is another name for `https`, which programs show for calendars.
fn web_address(typed: &str) -> Option<String> {
    let typed = typed.trim();
    let odd = |character: char| character.is_whitespace() || character.is_control();
    if typed.contains(odd) {
        return None;
    }
    let url = match typed.strip_prefix("webcal://") {
        Some(rest) => Url::parse(&format!("https://{rest}")).ok()?,
        None => Url::parse(typed).ok()?,
    };
    let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
    let is_bare = url.username().is_empty() && url.password().is_none();
    (is_web && is_bare).then(|| url.to_string())
}

/// A number of degrees; `Some(None)` for an empty text.
fn degrees(typed: &Typed<'_>, most: f64) -> Option<Option<f64>> {
    match typed.text() {
        Some(text) => text.trim().is_empty().then_some(None),
        None => typed.number().filter(|degrees| degrees.abs() <= most).map(Some),
    }
}

impl Section for SourcesConfig {
    fn keys<K: Keys>(&mut self, keys: &mut K) {
        let SourcesConfig { calendar, feeds, pages, weather } = self;
        keys.table(
            "calendar",
            calendar,
            CALENDAR,
            "Calendars by name, such as { work = { url = \"https://example.org/me.ics\" } }.",
        );
        keys.table(
            "feeds",
            feeds,
            WEB_ADDRESS,
            "News feeds (RSS, Atom, JSON Feed) by name, such as { news = \"https://example.org/feed.xml\" }.",
        );
        keys.table(
            "pages",
            pages,
            WEB_ADDRESS,
            "Web pages to watch for changes, by name, such as { timetable = \"https://example.org/times\" }.",
        );
        keys.section("weather", weather, "The weather at one place.");
    }
}

keys_of! {
    WeatherConfig {
        url: HTTP_URL, "Address of a weather service in the format of Open-Meteo.";
        latitude: LATITUDE, "Latitude of the place, such as 52.52; \"\" for no weather.";
        longitude: LONGITUDE, "Longitude of the place, such as 13.41; \"\" for no weather.";
        place: OPTIONAL_TEXT, "Name of the place in answers, such as \"Berlin\".";
        units: UNITS, "Units: \"metric\" (°C, km/h, mm) or \"imperial\" (°F, mph, inches).";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::read_as;

    #[test]
    fn a_calendar_is_an_address_a_file_or_a_server_with_a_login() {
        match read_as(&CALENDAR, "{ url = 'webcal://example.org/a.ics?key=s3cret' }") {
            Some(CalendarConfig::Url(url)) => {
                assert_eq!(url.expose_secret(), "https://example.org/a.ics?key=s3cret");
                assert!(!format!("{url:?}").contains("s3cret"));
            }
            other => panic!("{other:?}"),
        }
        match read_as(&CALENDAR, "{ file = '~/me.ics' }") {
            Some(CalendarConfig::File(path)) => assert_eq!(path.to_str(), Some("/home/ann/me.ics")),
            other => panic!("{other:?}"),
        }
        match read_as(&CALENDAR, "{ caldav = 'http://nas:5232/', user = 'ann', password = 's3cret' }") {
            Some(calendar @ CalendarConfig::CalDav { .. }) => {
                assert!(!format!("{calendar:?}").contains("s3cret"));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn half_a_calendar_or_two_in_one_are_refused() {
        for bad in [
            "{}",
            "'https://example.org/a.ics'",
            "{ url = '' }",
            "{ url = 'ftp://example.org/a.ics' }",
            "{ url = 'https://ann:pw@example.org/a.ics' }",
            "{ url = 'https://example.org/a.ics', user = 'ann' }",
            "{ url = 'https://example.org/a.ics', file = '/a.ics' }",
            "{ file = 'a.ics' }",
            "{ caldav = 'https://example.org' }",
            "{ caldav = 'https://example.org', user = 'ann' }",
            "{ caldav = 'https://example.org', user = 'ann', password = 1 }",
            "{ caldav = 'https://example.org', user = 'ann', pasword = 'x' }",
        ] {
            assert!(read_as(&CALENDAR, bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        for typed in [
            "{ url = 'https://example.org/a.ics' }",
            "{ file = '/a b.ics' }",
            "{ caldav = 'https://example.org/', user = 'ann', password = 'a\"b' }",
        ] {
            let calendar = read_as(&CALENDAR, typed).unwrap();
            let again = read_as(&CALENDAR, &write_calendar(&calendar)).unwrap();
            assert_eq!(write_calendar(&again), write_calendar(&calendar));
        }
    }

    #[test]
    fn a_place_is_on_the_earth() {
        assert_eq!(read_as(&LATITUDE, "52.52"), Some(Some(52.52)));
        assert_eq!(read_as(&LATITUDE, "-90"), Some(Some(-90.0)));
        assert_eq!(read_as(&LATITUDE, "''"), Some(None));
        for bad in ["90.1", "nan", "inf", "'52.52'", "true"] {
            assert_eq!(read_as(&LATITUDE, bad), None, "{bad}");
        }
        assert_eq!(read_as(&LONGITUDE, "180"), Some(Some(180.0)));
        assert_eq!(read_as(&UNITS, "'imperial'"), Some(WeatherUnitsSetting::Imperial));
        assert_eq!(read_as(&UNITS, "'kelvin'"), None);
    }
}
