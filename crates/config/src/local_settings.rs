//! Writes settings that the person at this machine has chosen, for commands that set something up. Unlike
//! [`SettingsFile`](crate::SettingsFile), which serves other machines too, it may write every setting.

use hob_process::{FileLock, Overwrite, write_new};
use serde_json::Value;

use crate::edit::{literal, set_text};
use crate::env::Environment;
use crate::load::{LARGEST, read_file, shown};
use crate::read::{Source, read};
use crate::settings_file::{SettingsError, first_bad_value};

/// A setting to write. Its value may be a password, so it cannot be printed.
#[derive(Clone, PartialEq)]
pub struct LocalSetting {
    /// With its outer sections: `sources.weather`.
    pub section: String,
    pub key: String,
    pub value: Value,
}

impl LocalSetting {
    pub fn new(section: &str, key: &str, value: impl Into<Value>) -> Self {
        LocalSetting { section: section.to_owned(), key: key.to_owned(), value: value.into() }
    }
}

/// Writes these values into the configuration file, and keeps all else that is in it. The result must be a valid configuration, or
/// nothing changes. Returns the path of the file, as a person would write it.
pub fn write_local_settings(
    environment: &Environment,
    settings: &[LocalSetting],
) -> Result<String, SettingsError> {
    let path = environment.config_file()?;
    let file = shown(&path, environment.home());
    let _lock = FileLock::take(&path)?;
    let before = read_file(&path, &file)?.unwrap_or_default();
    let mut text = before.clone();
    for LocalSetting { section, key, value } in settings {
        let form = || SettingsError::Form { key: format!("{section}.{key}"), file: file.clone() };
        let literal = literal(value).ok_or_else(form)?;
        text = set_text(&text, section, key, &literal).ok_or_else(form)?;
        if text.len() > LARGEST {
            return Err(SettingsError::TooLarge);
        }
    }
    read(Source { file: &file, text: &text, home: environment.home() }).map_err(first_bad_value)?;
    if text != before {
        write_new(&path, &text, Overwrite::Force)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;
    use crate::load::load;

    #[test]
    fn settings_are_added_and_the_rest_of_the_file_stays() {
        let home = tempfile::tempdir().expect("a directory");
        let environment: Environment =
            [("HOB_HOME", home.path().as_os_str().to_owned())].into_iter().collect();
        let path = environment.config_file().expect("a path");
        fs::write(&path, "# mine\n[server]\nport = 9000\n").expect("written");
        let settings = [
            LocalSetting::new("sources.calendar", "main", json!({ "url": "https://example.org/a.ics" })),
            LocalSetting::new("sources.weather", "latitude", json!(52.52)),
            LocalSetting::new("sources.weather", "longitude", json!(-13)),
            LocalSetting::new("sources.feeds", "example-org", json!("https://example.org/feed.xml")),
        ];
        write_local_settings(&environment, &settings).expect("written");
        let text = fs::read_to_string(&path).expect("read");
        assert!(text.starts_with("# mine\n[server]\nport = 9000\n"), "{text}");
        let config = load(&environment).expect("valid").config;
        assert_eq!((config.server.port, config.sources.weather.latitude), (9000, Some(52.52)));
        assert!(
            config.sources.calendar.contains_key("main") && config.sources.feeds.contains_key("example-org")
        );

        let wrong = [LocalSetting::new("sources.weather", "latitude", json!(500))];
        let error = write_local_settings(&environment, &wrong).expect_err("refused").to_string();
        assert!(error.contains("sources.weather.latitude"), "{error}");
        assert_eq!(fs::read_to_string(&path).expect("read"), text, "nothing changed");
    }
}
