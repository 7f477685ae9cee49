//! The settings one by one: each with its value, its description and where the value comes from; and a safe way to change some of them in
//! the file. Knows nothing of HTTP.

use std::collections::BTreeMap;

use hob_process::{FileLock, Overwrite, WriteError, write_new};
use serde_json::{Map, Number, Value};
use thiserror::Error;
use toml::Table;
use toml::de::DeTable;

use crate::config::Config;
use crate::did_you_mean::nearest;
use crate::edit::{has_key, literal, remove_text, set_text};
use crate::engine_name::EngineName;
use crate::env::Environment;
use crate::error::{BadValue, ConfigError};
use crate::listing::{ListedKey, join, list};
use crate::load::{LARGEST, load_with_text, overridden, shown};
use crate::read::{Source, read};
use crate::settings_schema::Exposure;

/// What may be changed from outside of this machine. Everything else is read-only there, so that a new key is safe until it is listed: the
/// rest decides who may reach the server, which programs it starts, which files it reads, or where it sends data.
const CHANGEABLE: [&str; 38] = [
    "server.agent",
    "server.model",
    "server.limit_failure",
    "server.access_log",
    "server.max_body_mb",
    "server.max_in_flight",
    "server.max_waiting",
    "server.queue_timeout",
    "server.header_timeout",
    "server.body_timeout",
    "server.write_timeout",
    "server.drain_seconds",
    "server.shutdown_grace",
    "engine.default",
    "engine.pool",
    "engine.ollama.timeout",
    "engine.vllm.timeout",
    "engine.sglang.timeout",
    "engine.llamacpp.timeout",
    "engine.litellm.timeout",
    "engine.cloud.timeout",
    "engine.embedded.*",
    "intelligence.default_model",
    "intelligence.router",
    "intelligence.fallback_model",
    "intelligence.temperature",
    "intelligence.max_tokens",
    "agent.*",
    "memory.*",
    "channel.reply",
    "channel.messages_per_minute",
    "channel.history",
    "channel.whatsapp.assistant_name",
    "scheduler.*",
    "telemetry.enabled",
    "telemetry.retention_days",
    "telemetry.metrics",
    "telemetry.energy",
];

/// The keys that a variable of the environment overrides.
const OVERRIDDEN: [(&str, &str); 4] = [
    ("server.api_key", "HOB_API_KEY"),
    ("mail.password", "HOB_MAIL_PASSWORD"),
    ("database.url", "HOB_DATABASE_URL"),
    ("channel.telegram.token", "HOB_TELEGRAM_TOKEN"),
];

/// The key that turns the WhatsApp channel on.
const WHATSAPP_SWITCH: &str = "channel.whatsapp.enabled";

/// The most keys that one change may name.
const MOST_CHANGES: usize = 100;

/// The most characters of a text in a change.
const LONGEST_TEXT: usize = 10_000;

/// A section and its own settings.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingSection {
    /// With its outer sections: `engine.ollama`.
    pub name: String,
    pub about: &'static str,
    pub settings: Vec<Setting>,
}

/// One key of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// With its section: `server.port`.
    pub key: String,
    pub about: &'static str,
    /// Completes "expected …".
    pub expected: &'static str,
    /// The names that it may have, where there is a fixed set.
    pub choices: &'static [&'static str],
    pub default: Value,
    /// `None` for a secret.
    pub value: Option<Value>,
    /// Whether it has another value than the default.
    pub is_set: bool,
    pub source: SettingSource,
    /// Whether [`SettingsFile::change`] may change it.
    pub is_changeable: bool,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingSource {
    Default,
    File,
    /// A variable with this name.
    Environment(&'static str),
}

/// What a change did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedSettings {
    /// The keys whose values differ now.
    pub keys: Vec<String>,
}

/// Why settings were not changed.
#[derive(Debug, Error)]
pub enum SettingsError {
    #[error("there is no setting '{key}'.{}", nearest.as_ref().map(|name| format!(" Did you mean '{name}'?")).unwrap_or_default())]
    Unknown { key: String, nearest: Option<String> },
    #[error("{key} is set by ${variable}. Change or unset that variable, and restart Hob.")]
    FromEnvironment { key: String, variable: &'static str },
    #[error("{key} cannot be changed here, for safety. Edit {file} on the machine that runs Hob.")]
    Locked { key: String, file: String },
    #[error(
        "{key} cannot be changed to the cloud here, because a provider then sees the questions. Edit {file} on the machine that runs Hob."
    )]
    Cloud { key: &'static str, file: String },
    #[error("{}: expected {}, got {}", .0.key, .0.expected, .0.got)]
    Invalid(Box<BadValue>),
    #[error("name at most {} settings at once", MOST_CHANGES)]
    TooMany,
    #[error("the file with these values would be larger than {} KiB, which Hob does not read. Send shorter values.", LARGEST / 1024)]
    TooLarge,
    #[error("cannot change {key} in {file} because of the form it is written in. Change it with an editor.")]
    Form { key: String, file: String },
    #[error(transparent)]
    Read(ConfigError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl From<ConfigError> for SettingsError {
    fn from(error: ConfigError) -> Self {
        SettingsError::Read(error)
    }
}

/// The configuration file with what overrides it.
#[derive(Debug, Clone)]
pub struct SettingsFile {
    environment: Environment,
}

impl SettingsFile {
    pub fn new(environment: Environment) -> Self {
        SettingsFile { environment }
    }

    /// The path as a person would write it.
    pub fn shown_path(&self) -> Result<String, ConfigError> {
        Ok(shown(&self.environment.config_file()?, self.environment.home()))
    }

    /// All settings, as the file and the environment have them now. Reads the file.
    pub fn list(&self) -> Result<Vec<SettingSection>, ConfigError> {
        let (text, config) = self.read()?;
        Ok(self.sections(&text, &config))
    }

    /// Writes these values into the file, and keeps all else that is in it; `None` removes one, so that the default applies. The result must
    /// be a valid configuration, or nothing changes. Callers wait for each other, also those of other processes. Blocks.
    pub fn change(&self, wanted: &BTreeMap<String, Option<Value>>) -> Result<ChangedSettings, SettingsError> {
        let _lock = self.lock()?;
        self.change_those(wanted, |setting| setting.is_changeable)
    }

    /// Changes the settings as `wanted` says, and calls `apply` before another change can begin, also one of another process. So what is in
    /// effect is what is in the file. If the file cannot be changed, `apply` is not called. Blocks.
    pub fn change_and_apply(
        &self,
        wanted: impl FnOnce(&[SettingSection]) -> BTreeMap<String, Option<Value>>,
        apply: impl FnOnce(),
    ) -> Result<ChangedSettings, SettingsError> {
        let _lock = self.lock()?;
        let wanted = wanted(&self.list()?);
        let changed = self.change_those(&wanted, |setting| setting.is_changeable)?;
        apply();
        Ok(changed)
    }

    /// Turns the WhatsApp channel on. Only for a caller on this machine who has just linked an account: the channel sends answers out.
    pub fn turn_on_whatsapp(&self) -> Result<ChangedSettings, SettingsError> {
        let _lock = self.lock()?;
        let wanted = BTreeMap::from([(WHATSAPP_SWITCH.to_owned(), Some(Value::Bool(true)))]);
        self.change_those(&wanted, |setting| setting.key == WHATSAPP_SWITCH)
    }

    /// Waits until nothing else changes the file.
    fn lock(&self) -> Result<FileLock, SettingsError> {
        Ok(FileLock::take(&self.environment.config_file()?)?)
    }

    /// Changes values of the settings that may be changed. The caller holds the lock.
    fn change_those(
        &self,
        wanted: &BTreeMap<String, Option<Value>>,
        may_change: impl Fn(&Setting) -> bool,
    ) -> Result<ChangedSettings, SettingsError> {
        if wanted.len() > MOST_CHANGES {
            return Err(SettingsError::TooMany);
        }
        let (before, old) = self.read()?;
        let file = self.shown_path()?;
        let sections = self.sections(&before, &old);
        let known: Vec<Setting> = sections.into_iter().flat_map(|section| section.settings).collect();
        let mut text = before.clone();
        for (name, value) in wanted {
            let setting =
                known.iter().find(|setting| setting.key == *name).ok_or_else(|| unknown(name, &known))?;
            if let SettingSource::Environment(variable) = setting.source {
                return Err(SettingsError::FromEnvironment { key: name.clone(), variable });
            }
            if !may_change(setting) {
                return Err(SettingsError::Locked { key: name.clone(), file });
            }
            let Some((section, key)) = name.rsplit_once('.') else { return Err(unknown(name, &known)) };
            let edited = match value {
                None => remove_text(&text, section, key),
                Some(value) => {
                    if has_long_text(value) {
                        return Err(too_long(setting, &file));
                    }
                    let literal = if has_object(value) { None } else { literal(value) };
                    let literal = literal.ok_or_else(|| wrong_type(setting, value, &file))?;
                    // Before it is parsed.
                    if literal.len() > LARGEST {
                        return Err(SettingsError::TooLarge);
                    }
                    set_text(&text, section, key, &literal)
                }
            };
            text = edited.ok_or_else(|| SettingsError::Form { key: name.clone(), file: file.clone() })?;
            if text.len() > LARGEST {
                return Err(SettingsError::TooLarge);
            }
        }
        let new = match read(Source { file: &file, text: &text, home: self.environment.home() }) {
            Ok((config, _)) => overridden(config, &self.environment)?,
            Err(error) => return Err(first_bad_value(error)),
        };
        if let Some(key) = newly_in_the_cloud(&old, &new) {
            return Err(SettingsError::Cloud { key, file });
        }
        if text != before {
            write_new(&self.environment.config_file()?, &text, Overwrite::Force)?;
        }
        Ok(ChangedSettings { keys: old.changed_keys(&new) })
    }

    /// The text of the file, and the configuration that it makes.
    fn read(&self) -> Result<(String, Config), ConfigError> {
        let (loaded, text) = load_with_text(&self.environment)?;
        Ok((text, loaded.config))
    }

    /// All settings of a configuration, and whether the text that makes it has them.
    fn sections(&self, text: &str, config: &Config) -> Vec<SettingSection> {
        // Once for all of them, because a file can be large.
        let document = DeTable::parse(text);
        let written = |section: &str, key: &ListedKey| {
            document.as_ref().is_ok_and(|document| has_key(document.get_ref(), section, key.name))
        };
        let sections = list(config).into_iter().zip(list(&Config::default()));
        let sections = sections.map(|(section, default)| SettingSection {
            settings: section
                .keys
                .iter()
                .zip(&default.keys)
                .map(|(key, default)| self.setting(&section.name, key, default, written(&section.name, key)))
                .collect(),
            name: section.name,
            about: section.about,
        });
        sections.collect()
    }

    /// One of them. `is_written` says whether the file has a value for it.
    fn setting(&self, section: &str, key: &ListedKey, default: &ListedKey, is_written: bool) -> Setting {
        let name = join(section, key.name);
        let is_secret = key.exposure == Exposure::Secret;
        let is_set = key.value != default.value;
        let variable = OVERRIDDEN
            .into_iter()
            .find(|(overridden, variable)| *overridden == name && self.environment.has(variable));
        let source = match variable {
            Some((_, variable)) => SettingSource::Environment(variable),
            // A former name of the key counts too.
            None if is_set || is_written => SettingSource::File,
            None => SettingSource::Default,
        };
        let choices = match key.exposure {
            Exposure::OneOf(names) => names,
            Exposure::Open | Exposure::Secret => &[],
        };
        Setting {
            about: key.about,
            expected: key.expected,
            choices,
            default: json_of(&default.value),
            value: (!is_secret).then(|| json_of(&key.value)),
            is_set,
            source,
            is_changeable: !is_secret && is_changeable(&name),
            key: name,
        }
    }
}

fn is_changeable(key: &str) -> bool {
    CHANGEABLE.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(section) => key.strip_prefix(section).is_some_and(|name| !name.contains('.')),
        None => *pattern == key,
    })
}

/// The file was valid before, so the first bad value is one of the change.
pub(crate) fn first_bad_value(error: ConfigError) -> SettingsError {
    match error {
        ConfigError::BadValues(mut bad) if !bad.is_empty() => {
            SettingsError::Invalid(Box::new(bad.swap_remove(0)))
        }
        error => error.into(),
    }
}

fn unknown(name: &str, known: &[Setting]) -> SettingsError {
    let names: Vec<&str> = known.iter().map(|setting| setting.key.as_str()).collect();
    let key: String = name.chars().take(60).collect();
    SettingsError::Unknown { nearest: nearest(&key, &names).map(str::to_owned), key }
}

fn wrong_type(setting: &Setting, value: &Value, file: &str) -> SettingsError {
    let got = if value.is_object() { "an object" } else { "a list with other things than texts and numbers" };
    invalid(setting, file, setting.expected.to_owned(), got)
}

fn too_long(setting: &Setting, file: &str) -> SettingsError {
    invalid(setting, file, format!("at most {LONGEST_TEXT} characters"), "a longer text")
}

fn invalid(setting: &Setting, file: &str, expected: String, got: &str) -> SettingsError {
    SettingsError::Invalid(Box::new(BadValue {
        file: file.to_owned(),
        line: 0,
        key: setting.key.clone(),
        expected,
        got: got.to_owned(),
        nearest: None,
    }))
}

fn has_long_text(value: &Value) -> bool {
    match value {
        Value::String(text) => text.chars().nth(LONGEST_TEXT).is_some(),
        Value::Array(values) => values.iter().any(has_long_text),
        _ => false,
    }
}

/// The key that names the cloud engine in `new` and not in `old`. It decides where questions are sent.
fn newly_in_the_cloud(old: &Config, new: &Config) -> Option<&'static str> {
    let is_default = |config: &Config| config.engine.default == Some(EngineName::Cloud);
    let is_in_pool = |config: &Config| config.engine.pool.contains(&EngineName::Cloud);
    if is_default(new) && !is_default(old) {
        Some("engine.default")
    } else if is_in_pool(new) && !is_in_pool(old) {
        Some("engine.pool")
    } else {
        None
    }
}

fn has_object(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::Array(values) => values.iter().any(has_object),
        _ => false,
    }
}

/// A value that is written as TOML.
fn json_of(literal: &str) -> Value {
    let table = format!("value = {literal}").parse::<Table>();
    table.ok().and_then(|mut table| table.remove("value")).map_or(Value::Null, json)
}

fn json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(integer) => Value::from(integer),
        toml::Value::Float(float) => Number::from_f64(float).map_or(Value::Null, Value::Number),
        toml::Value::Boolean(flag) => Value::Bool(flag),
        toml::Value::Datetime(moment) => Value::String(moment.to_string()),
        toml::Value::Array(values) => Value::Array(values.into_iter().map(json).collect()),
        toml::Value::Table(table) => {
            Value::Object(table.into_iter().map(|(name, value)| (name, json(value))).collect::<Map<_, _>>())
        }
    }
}

#[cfg(test)]
#[path = "settings_file_tests.rs"]
mod tests;
