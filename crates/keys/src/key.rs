//! A key, a key to create, and a change of a key. Knows nothing of secrets.

use std::fmt;
use std::sync::Arc;

use hob_core::{CollectionName, LONGEST_PLAIN_NAME, Reach, is_plain_name};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::limits::{Budget, Period, Quota, Unit};

/// `/v1/keys/self` is the caller's own key, and the logs call a caller without a named key `owner`.
const RESERVED: [&str; 2] = ["self", "owner"];

/// The longest name of an identity from outside, without its prefix.
pub(crate) const LONGEST_IDENTITY: usize = 128;

/// How the name of an identity from outside begins. No named key can have such a name.
const IDENTITY: &str = "identity:";

const MOST_NAMES: usize = 64;
const LONGEST_LISTED: usize = 128;
const MOST_BUDGETS: usize = 4;

/// A part of a key that can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyField {
    Name,
    Role,
    Models,
    Engines,
    Reach,
    Tools,
    Memory,
    RequestsPerMinute,
    TokensPerMinute,
    Parallel,
    Budgets,
    Expires,
}

impl KeyField {
    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            KeyField::Name => "name",
            KeyField::Role => "role",
            KeyField::Models => "models",
            KeyField::Engines => "engines",
            KeyField::Reach => "reach",
            KeyField::Tools => "tools",
            KeyField::Memory => "memory",
            KeyField::RequestsPerMinute => "requests_per_minute",
            KeyField::TokensPerMinute => "tokens_per_minute",
            KeyField::Parallel => "parallel",
            KeyField::Budgets => "budgets",
            KeyField::Expires => "expires",
        }
    }
}

/// Why a key cannot be created or changed.
#[derive(Debug, Error)]
pub enum KeyError {
    #[error("{reason}")]
    Invalid { field: KeyField, reason: String },
    #[error("there is no key '{name}'. 'hob key list' shows the keys")]
    NoSuchKey { name: String },
    #[error(
        "there is a key '{name}' already. Choose another name: names are not used twice, so that records stay clear"
    )]
    NameTaken { name: String },
    #[error("the key '{name}' is revoked, which is final. Create another key")]
    Revoked { name: String },
    #[error(transparent)]
    Database(#[from] hob_db::DatabaseError),
    /// A bug in this crate.
    #[error("the work on the keys failed")]
    Panicked,
}

impl KeyError {
    pub(crate) fn invalid(field: KeyField, reason: impl Into<String>) -> Self {
        KeyError::Invalid { field, reason: reason.into() }
    }
}

/// The name of a key: letters, digits, `-`, `_` and `.`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyName(Arc<str>);

impl KeyName {
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        if RESERVED.contains(&text) || !is_plain_name(text) {
            let shown: String = text.chars().take(60).collect();
            let reason = format!(
                "'{shown}' is not a name for a key; use letters, digits, '-', '_' and '.', at most {LONGEST_PLAIN_NAME}, with a letter or digit first, and not 'self' or 'owner'"
            );
            return Err(KeyError::invalid(KeyField::Name, reason));
        }
        Ok(KeyName(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    /// The account of an identity from outside: `identity:ana@example.org`. `None` for a name that would be unclear in a log.
    pub(crate) fn identity(name: &str) -> Option<Self> {
        let is_clear = |byte: u8| byte.is_ascii_graphic() && !b"\"'`<>[]{}\\".contains(&byte);
        let is_name = (1..=LONGEST_IDENTITY).contains(&name.len()) && name.bytes().all(is_clear);
        is_name.then(|| KeyName(format!("{IDENTITY}{name}").into()))
    }

    /// The account that a task has stored.
    pub(crate) fn read_identity(stored: &str) -> Option<Self> {
        KeyName::identity(stored.strip_prefix(IDENTITY)?)
    }

    /// The name of an identity as its provider knows it.
    pub(crate) fn without_prefix(&self) -> &str {
        self.0.strip_prefix(IDENTITY).unwrap_or(&self.0)
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyRole {
    /// Everything that the person may do whose machine this is.
    Owner,
    /// Its own conversations, responses and tasks, and what the key allows.
    Member,
}

impl KeyRole {
    pub fn as_str(self) -> &'static str {
        match self {
            KeyRole::Owner => "owner",
            KeyRole::Member => "member",
        }
    }

    pub fn parse(word: &str) -> Result<Self, KeyError> {
        [KeyRole::Owner, KeyRole::Member].into_iter().find(|role| role.as_str() == word).ok_or_else(|| {
            let shown: String = word.chars().take(60).collect();
            KeyError::invalid(KeyField::Role, format!("'{shown}' is not owner or member"))
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyStatus {
    Active,
    /// Not valid until it is enabled again.
    Disabled,
    /// Not valid any more.
    Revoked,
}

hob_core::named_variants! {
    KeyStatus {
        Active => "active",
        Disabled => "disabled",
        Revoked => "revoked",
    }
}

/// What a key may use, and how much. `None` is no limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRules {
    pub models: Option<Vec<String>>,
    pub engines: Option<Vec<String>>,
    pub cloud: bool,
    #[serde(serialize_with = "write_reach", deserialize_with = "read_reach")]
    pub reach: Reach,
    pub tools: Option<Vec<String>>,
    /// The collections of documents that may be read. Unlike the others, `None` is all for an owner and none for a member.
    #[serde(default)]
    pub memory: Option<Vec<String>>,
    pub requests_per_minute: Option<u64>,
    pub tokens_per_minute: Option<u64>,
    pub parallel: Option<u32>,
    pub budgets: Vec<Budget>,
}

impl KeyRules {
    /// What a key of this role may use if nothing else is said. A member gets no cloud, which costs money, no documents, and no tool
    /// that reads or changes what is the owner's.
    pub fn of(role: KeyRole) -> Self {
        KeyRules {
            models: None,
            engines: None,
            cloud: role == KeyRole::Owner,
            reach: if role == KeyRole::Owner { Reach::Act } else { Reach::Pure },
            tools: None,
            memory: None,
            requests_per_minute: None,
            tokens_per_minute: None,
            parallel: None,
            budgets: Vec::new(),
        }
    }

    /// The limits that are counted in windows of time.
    pub fn quotas(&self) -> Vec<Quota> {
        let per_minute =
            |unit, limit: Option<u64>| limit.map(|limit| Quota { unit, period: Period::Minute, limit });
        let minutes = [
            per_minute(Unit::Requests, self.requests_per_minute),
            per_minute(Unit::Tokens, self.tokens_per_minute),
        ];
        minutes.into_iter().flatten().chain(self.budgets.iter().map(|budget| budget.quota())).collect()
    }

    fn check(&self) -> Result<(), KeyError> {
        check_names(KeyField::Models, self.models.as_ref())?;
        check_names(KeyField::Engines, self.engines.as_ref())?;
        check_names(KeyField::Tools, self.tools.as_ref())?;
        check_names(KeyField::Memory, self.memory.as_ref())?;
        for name in self.memory.iter().flatten() {
            CollectionName::parse(name)
                .map_err(|error| KeyError::invalid(KeyField::Memory, error.to_string()))?;
        }
        if self.requests_per_minute == Some(0) {
            return Err(KeyError::invalid(
                KeyField::RequestsPerMinute,
                "requests_per_minute must be at least 1",
            ));
        }
        if self.tokens_per_minute == Some(0) {
            return Err(KeyError::invalid(KeyField::TokensPerMinute, "tokens_per_minute must be at least 1"));
        }
        if self.parallel == Some(0) {
            return Err(KeyError::invalid(KeyField::Parallel, "parallel must be at least 1"));
        }
        let ids: Vec<&str> = self.budgets.iter().map(|budget| budget.quota().id()).collect();
        let is_twice = ids.iter().enumerate().any(|(index, id)| ids[..index].contains(id));
        if ids.len() > MOST_BUDGETS || is_twice {
            let reason =
                "at most one budget of each kind: USD a day, USD a month, tokens a day, tokens a month";
            return Err(KeyError::invalid(KeyField::Budgets, reason));
        }
        Ok(())
    }
}

/// Refuses names that no engine has. Without known names, every name is accepted.
pub(crate) fn check_engines(named: Option<&Vec<String>>, known: &[&str]) -> Result<(), KeyError> {
    let is_known = |name: &&String| known.contains(&name.as_str());
    match named.into_iter().flatten().find(|name| !known.is_empty() && !is_known(name)) {
        None => Ok(()),
        Some(name) => {
            let shown: String = name.chars().take(60).collect();
            let reason = format!("unknown engine '{shown}'; known engines: {}", known.join(", "));
            Err(KeyError::invalid(KeyField::Engines, reason))
        }
    }
}

fn check_names(field: KeyField, names: Option<&Vec<String>>) -> Result<(), KeyError> {
    let Some(names) = names else { return Ok(()) };
    let is_good = |name: &String| !name.trim().is_empty() && name.len() <= LONGEST_LISTED;
    if names.is_empty() || names.len() > MOST_NAMES || !names.iter().all(is_good) {
        let reason = format!(
            "{} must have 1 to {MOST_NAMES} names of at most {LONGEST_LISTED} letters each",
            field.as_str()
        );
        return Err(KeyError::invalid(field, reason));
    }
    Ok(())
}

fn write_reach<S: Serializer>(reach: &Reach, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(reach.as_str())
}

fn read_reach<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Reach, D::Error> {
    let word = String::deserialize(deserializer)?;
    Reach::parse(&word).ok_or_else(|| serde::de::Error::custom("reach is pure, read or act"))
}

/// A key as everyone with the owner's rights may see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// The part of the secret that finds the key.
    pub id: Arc<str>,
    pub name: KeyName,
    pub role: KeyRole,
    pub status: KeyStatus,
    pub rules: KeyRules,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    /// Until when the secret before the last rotation is valid.
    pub previous_until: Option<Timestamp>,
}

impl ApiKey {
    /// The key as it is shown: without the end of an old secret that is not valid any more.
    pub(crate) fn shown_at(self, now: Timestamp) -> Self {
        let is_revoked = self.status == KeyStatus::Revoked;
        ApiKey { previous_until: self.previous_until.filter(|until| !is_revoked && now < *until), ..self }
    }

    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

impl Serialize for ApiKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rules = &self.rules;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("object", "key")?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("name", self.name.as_str())?;
        map.serialize_entry("role", self.role.as_str())?;
        map.serialize_entry("status", self.status.as_str())?;
        map.serialize_entry("models", &rules.models)?;
        map.serialize_entry("engines", &rules.engines)?;
        map.serialize_entry("cloud", &rules.cloud)?;
        map.serialize_entry("reach", rules.reach.as_str())?;
        map.serialize_entry("tools", &rules.tools)?;
        map.serialize_entry("memory", &rules.memory)?;
        map.serialize_entry("requests_per_minute", &rules.requests_per_minute)?;
        map.serialize_entry("tokens_per_minute", &rules.tokens_per_minute)?;
        map.serialize_entry("parallel", &rules.parallel)?;
        map.serialize_entry("budgets", &rules.budgets)?;
        map.serialize_entry("created_at", &self.created_at.to_string())?;
        map.serialize_entry("expires_at", &self.expires_at.map(|at| at.to_string()))?;
        map.serialize_entry("previous_secret_until", &self.previous_until.map(|at| at.to_string()))?;
        map.end()
    }
}

/// Changes to what a key may use. `None` changes nothing; `Some(None)` removes a limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeyPatch {
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub models: Option<Option<Vec<String>>>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub engines: Option<Option<Vec<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cloud: Option<bool>,
    #[serde(
        serialize_with = "write_given_reach",
        deserialize_with = "given_reach",
        skip_serializing_if = "Option::is_none"
    )]
    pub reach: Option<Reach>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub tools: Option<Option<Vec<String>>>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub memory: Option<Option<Vec<String>>>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<Option<u64>>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<Option<u64>>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub parallel: Option<Option<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budgets: Option<Vec<Budget>>,
    /// A date, a moment, or a time from now such as `30d`.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub expires: Option<Option<String>>,
}

fn write_given_reach<S: Serializer>(reach: &Option<Reach>, serializer: S) -> Result<S::Ok, S::Error> {
    reach.map(|reach| reach.as_str()).serialize(serializer)
}

fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(deserializer).map(Some)
}

fn given_reach<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Reach>, D::Error> {
    read_reach(deserializer).map(Some)
}

impl KeyPatch {
    /// Changes `rules` and `expires_at`, if the result is valid.
    pub(crate) fn apply(
        self,
        rules: &mut KeyRules,
        expires_at: &mut Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), KeyError> {
        let KeyPatch {
            models,
            engines,
            cloud,
            reach,
            tools,
            memory,
            requests_per_minute,
            tokens_per_minute,
            parallel,
            budgets,
            expires,
        } = self;
        let new = KeyRules {
            models: models.unwrap_or_else(|| rules.models.clone()),
            engines: engines.unwrap_or_else(|| rules.engines.clone()),
            cloud: cloud.unwrap_or(rules.cloud),
            reach: reach.unwrap_or(rules.reach),
            tools: tools.unwrap_or_else(|| rules.tools.clone()),
            memory: memory.unwrap_or_else(|| rules.memory.clone()),
            requests_per_minute: requests_per_minute.unwrap_or(rules.requests_per_minute),
            tokens_per_minute: tokens_per_minute.unwrap_or(rules.tokens_per_minute),
            parallel: parallel.unwrap_or(rules.parallel),
            budgets: budgets.unwrap_or_else(|| rules.budgets.clone()),
        };
        new.check()?;
        if let Some(expires) = expires {
            *expires_at = expires.map(|text| parse_expiry(&text, now)).transpose()?;
        }
        *rules = new;
        Ok(())
    }
}

/// A key to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    pub name: KeyName,
    pub role: KeyRole,
    /// Over the rules of the role.
    pub rules: KeyPatch,
}

/// When a key expires: `30d`, `12h`, `2027-01-31` or `2027-01-31T12:00:00Z`. A date is its first moment in UTC.
fn parse_expiry(text: &str, now: Timestamp) -> Result<Timestamp, KeyError> {
    let wrong = |reason: &str| {
        let shown: String = text.chars().take(60).collect();
        KeyError::invalid(KeyField::Expires, format!("'{shown}' {reason}"))
    };
    let read = || {
        if let Ok(at) = text.parse::<Timestamp>() {
            return Some(at);
        }
        if let Ok(date) = text.parse::<Date>() {
            return Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp());
        }
        let split = text.find(|letter: char| !letter.is_ascii_digit())?;
        let number: i64 = text[..split].parse().ok()?;
        let seconds = match &text[split..] {
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            "w" => 604_800,
            _ => return None,
        };
        now.checked_add(SignedDuration::from_secs(number.checked_mul(seconds)?)).ok()
    };
    let at = read().ok_or_else(|| wrong("is not a date or a time; write '2027-01-31', '30d' or '12h'"))?;
    if at <= now {
        return Err(wrong("is in the past"));
    }
    // The stored precision.
    Timestamp::from_microsecond(at.as_microsecond()).map_err(|_| wrong("is too far away"))
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
