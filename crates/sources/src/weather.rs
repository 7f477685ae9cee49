//! The weather of a place in words, from a service in the format of Open-Meteo. Pure: knows no network.

use serde::Deserialize;
use thiserror::Error;
use url::Url;

use crate::types::{WeatherPlace, WeatherUnits};

/// Days of the forecast: today and tomorrow.
const DAYS: usize = 2;

/// Why there is no weather.
#[derive(Debug, Error)]
pub enum WeatherError {
    #[error("the answer is not a forecast in the format of Open-Meteo: {0}")]
    Format(#[from] serde_json::Error),
    #[error("the weather service refuses the request: {0}")]
    Refused(String),
    #[error("the forecast has no values for today")]
    Empty,
    #[error("the address of the weather service is not valid: {0}")]
    BadUrl(#[from] url::ParseError),
}

/// The address of the forecast of a place.
pub(crate) fn forecast_url(place: &WeatherPlace) -> Result<Url, WeatherError> {
    let mut url = Url::parse(&place.url)?;
    let mut query = url.query_pairs_mut();
    query
        .append_pair("latitude", &place.latitude.to_string())
        .append_pair("longitude", &place.longitude.to_string())
        .append_pair(
            "current",
            "temperature_2m,apparent_temperature,relative_humidity_2m,weather_code,wind_speed_10m",
        )
        .append_pair(
            "daily",
            "weather_code,temperature_2m_max,temperature_2m_min,precipitation_sum,\
             precipitation_probability_max,wind_speed_10m_max,sunrise,sunset",
        )
        .append_pair("timezone", "auto")
        .append_pair("forecast_days", &DAYS.to_string());
    if place.units == WeatherUnits::Imperial {
        query
            .append_pair("temperature_unit", "fahrenheit")
            .append_pair("wind_speed_unit", "mph")
            .append_pair("precipitation_unit", "inch");
    }
    drop(query);
    Ok(url)
}

#[derive(Deserialize)]
struct Forecast {
    /// Whether the service reports an error, with its `reason`.
    #[serde(default)]
    error: bool,
    reason: Option<String>,
    current: Option<CurrentWeather>,
    #[serde(default)]
    daily: DailyWeather,
}

#[derive(Deserialize)]
struct CurrentWeather {
    temperature_2m: Option<f64>,
    apparent_temperature: Option<f64>,
    relative_humidity_2m: Option<f64>,
    weather_code: Option<f64>,
    wind_speed_10m: Option<f64>,
}

/// Lists with one value for each day.
#[derive(Default, Deserialize)]
#[serde(default)]
struct DailyWeather {
    time: Vec<String>,
    weather_code: Vec<Option<f64>>,
    temperature_2m_max: Vec<Option<f64>>,
    temperature_2m_min: Vec<Option<f64>>,
    precipitation_sum: Vec<Option<f64>>,
    precipitation_probability_max: Vec<Option<f64>>,
    wind_speed_10m_max: Vec<Option<f64>>,
    sunrise: Vec<String>,
    sunset: Vec<String>,
}

/// The weather now, today and tomorrow, one line each.
pub(crate) fn describe(body: &[u8], place: &WeatherPlace) -> Result<String, WeatherError> {
    let Forecast { error, reason, current, daily } = serde_json::from_slice(body)?;
    if error {
        return Err(WeatherError::Refused(clean(&reason.unwrap_or_default(), 200)));
    }
    let units = Units::of(place.units);
    let mut lines = Vec::new();
    if let Some(place) = &place.place {
        lines.push(format!("Weather in {place}"));
    }
    lines.extend(current.and_then(|current| now(&current, units)));
    for (index, name) in ["Today", "Tomorrow"].into_iter().enumerate().take(DAYS) {
        lines.extend(day(&daily, index, name, units));
    }
    match lines.len() > usize::from(place.place.is_some()) {
        true => Ok(lines.join("\n")),
        false => Err(WeatherError::Empty),
    }
}

/// The names of the units.
#[derive(Clone, Copy)]
struct Units {
    temperature: &'static str,
    speed: &'static str,
    rain: &'static str,
}

impl Units {
    fn of(units: WeatherUnits) -> Self {
        match units {
            WeatherUnits::Metric => Units { temperature: "°C", speed: "km/h", rain: "mm" },
            WeatherUnits::Imperial => Units { temperature: "°F", speed: "mph", rain: "in" },
        }
    }
}

fn now(current: &CurrentWeather, units: Units) -> Option<String> {
    let mut parts = Vec::new();
    parts.extend(current.weather_code.map(|code| words(code).to_owned()));
    parts.extend(current.temperature_2m.map(|degrees| format!("{}{}", whole(degrees), units.temperature)));
    parts.extend(
        current
            .apparent_temperature
            .map(|degrees| format!("feels like {}{}", whole(degrees), units.temperature)),
    );
    parts.extend(current.relative_humidity_2m.map(|percent| format!("humidity {} %", whole(percent))));
    parts.extend(current.wind_speed_10m.map(|speed| format!("wind {} {}", whole(speed), units.speed)));
    (!parts.is_empty()).then(|| format!("Now: {}", parts.join(", ")))
}

fn day(daily: &DailyWeather, index: usize, name: &str, units: Units) -> Option<String> {
    let date = daily.time.get(index).map(|date| clean(date, 10))?;
    let value = |values: &[Option<f64>]| values.get(index).copied().flatten();
    let mut parts = Vec::new();
    parts.extend(value(&daily.weather_code).map(|code| words(code).to_owned()));
    if let (Some(low), Some(high)) = (value(&daily.temperature_2m_min), value(&daily.temperature_2m_max)) {
        parts.push(format!("{} to {}{}", whole(low), whole(high), units.temperature));
    }
    let chance = value(&daily.precipitation_probability_max)
        .map(|percent| format!(" ({} % probability)", whole(percent)))
        .unwrap_or_default();
    parts
        .extend(value(&daily.precipitation_sum).map(|amount| {
            format!("precipitation {} {}{chance}", (amount * 10.0).round() / 10.0, units.rain)
        }));
    parts.extend(
        value(&daily.wind_speed_10m_max).map(|speed| format!("wind up to {} {}", whole(speed), units.speed)),
    );
    let time = |times: &[String]| {
        let time = times.get(index)?.split_once('T')?.1;
        Some(clean(time, 5))
    };
    parts.extend(time(&daily.sunrise).map(|time| format!("sunrise {time}")));
    parts.extend(time(&daily.sunset).map(|time| format!("sunset {time}")));
    (!parts.is_empty()).then(|| format!("{name} ({date}): {}", parts.join(", ")))
}

/// A number without decimals, and without the sign of zero.
fn whole(number: f64) -> String {
    let rounded = number.round();
    format!("{}", if rounded == 0.0 { 0.0 } else { rounded })
}

fn clean(text: &str, most: usize) -> String {
    text.chars().filter(|character| !character.is_control()).take(most).collect()
}

/// A weather code of the WMO in words.
fn words(code: f64) -> &'static str {
    // Codes are small whole numbers; others have no name.
    let code = if code.fract() == 0.0 && (0.0..=99.0).contains(&code) { code as u8 } else { 100 };
    match code {
        0 => "clear sky",
        1 => "mainly clear",
        2 => "partly cloudy",
        3 => "overcast",
        45 => "fog",
        48 => "freezing fog",
        51 => "light drizzle",
        53 => "drizzle",
        55 => "heavy drizzle",
        56 => "light freezing drizzle",
        57 => "freezing drizzle",
        61 => "light rain",
        63 => "rain",
        65 => "heavy rain",
        66 => "light freezing rain",
        67 => "freezing rain",
        71 => "light snow",
        73 => "snow",
        75 => "heavy snow",
        77 => "snow grains",
        80 => "light rain showers",
        81 => "rain showers",
        82 => "violent rain showers",
        85 => "light snow showers",
        86 => "heavy snow showers",
        95 => "thunderstorm",
        96 => "thunderstorm with light hail",
        99 => "thunderstorm with heavy hail",
        _ => "unknown weather",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn place(units: WeatherUnits) -> WeatherPlace {
        WeatherPlace {
            url: "https://weather.example.org/v1/forecast".to_owned(),
            latitude: 52.52,
            longitude: -13.4,
            place: Some("Berlin".to_owned()),
            units,
        }
    }

    #[test]
    fn the_address_names_the_place_and_the_units() {
        let metric = forecast_url(&place(WeatherUnits::Metric)).unwrap();
        assert!(
            metric
                .as_str()
                .starts_with("https://weather.example.org/v1/forecast?latitude=52.52&longitude=-13.4&")
        );
        assert!(!metric.as_str().contains("fahrenheit"));
        let imperial = forecast_url(&place(WeatherUnits::Imperial)).unwrap();
        assert!(imperial.as_str().contains("temperature_unit=fahrenheit&wind_speed_unit=mph"));
    }

    #[test]
    fn the_weather_is_told_in_words() {
        let body = json!({
            "current": { "temperature_2m": 11.6, "apparent_temperature": -0.2, "relative_humidity_2m": 80,
                "weather_code": 61, "wind_speed_10m": 14.4 },
            "daily": { "time": ["2026-03-03", "2026-03-04"], "weather_code": [3, 95],
                "temperature_2m_max": [12.4, null], "temperature_2m_min": [4.5, 1.0],
                "precipitation_sum": [2.26, 0], "precipitation_probability_max": [70, null],
                "wind_speed_10m_max": [30.1], "sunrise": ["2026-03-03T06:42"], "sunset": ["2026-03-03T17:50"] }
        });
        let told = describe(body.to_string().as_bytes(), &place(WeatherUnits::Metric)).unwrap();
        assert_eq!(
            told,
            "Weather in Berlin\n\
             Now: light rain, 12°C, feels like 0°C, humidity 80 %, wind 14 km/h\n\
             Today (2026-03-03): overcast, 5 to 12°C, precipitation 2.3 mm (70 % probability), wind up to 30 km/h, \
             sunrise 06:42, sunset 17:50\n\
             Tomorrow (2026-03-04): thunderstorm, precipitation 0 mm"
        );
    }

    #[test]
    fn errors_and_other_answers_are_said() {
        let fails =
            |body: &str| describe(body.as_bytes(), &place(WeatherUnits::Metric)).unwrap_err().to_string();
        assert_eq!(
            fails(r#"{ "error": true, "reason": "Latitude must be in range" }"#),
            "the weather service refuses the request: Latitude must be in range"
        );
        assert_eq!(fails("{}"), "the forecast has no values for today");
        assert!(fails("<html>").contains("format of Open-Meteo"));
        assert!(fails(r#"{ "daily": { "time": 3 } }"#).contains("format of Open-Meteo"));
    }

    #[test]
    fn odd_codes_have_no_name() {
        for code in [-1.0, 4.0, 100.0, 1e300, 0.5, f64::NAN] {
            assert_eq!(words(code), "unknown weather", "{code}");
        }
        assert_eq!(words(0.0), "clear sky");
    }
}
