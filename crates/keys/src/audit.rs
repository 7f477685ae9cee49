//! The audit log: every change of keys, models, tasks and settings, with who made it and from where.
//!
//! Each entry has the hash of the entry before it, so a changed, removed or inserted entry breaks the chain. What cannot be seen is a log
//! whose end was cut off; for that, note the last hash elsewhere, such as with an export.

use std::fmt::Write;

use jiff::Timestamp;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// What the first entry has in place of a hash.
pub(crate) const FIRST: &str = "";

/// The part of a name or a detail that is stored. Callers choose some of them.
const LONGEST: usize = 512;
const LONGEST_DETAIL: usize = 8 * 1024;

/// Who made a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditActor {
    /// The name of a key, or `owner`.
    pub name: String,
    /// An address, `terminal`, or another way to reach Hob.
    pub origin: String,
}

impl AuditActor {
    /// The person at this machine.
    pub fn terminal() -> Self {
        AuditActor { name: "owner".to_owned(), origin: "terminal".to_owned() }
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEvent {
    pub at: Timestamp,
    pub actor: AuditActor,
    /// Such as `key.create`.
    pub action: String,
    /// What was changed, such as the name of a key.
    pub subject: String,
    /// JSON. Never a secret.
    pub detail: String,
}

impl AuditEvent {
    pub fn new(at: Timestamp, actor: AuditActor, action: &str, subject: &str, detail: &Value) -> Self {
        let mut text = detail.to_string();
        if text.len() > LONGEST_DETAIL {
            text = r#"{"omitted":"too long"}"#.to_owned();
        }
        AuditEvent {
            // The stored precision, because the hash is of it.
            at: Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at),
            actor,
            action: action.to_owned(),
            subject: subject.chars().take(LONGEST).collect(),
            detail: text,
        }
    }
}

/// A change in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// The first is 1.
    pub number: i64,
    pub event: AuditEvent,
    /// The hash of the entry before.
    pub previous: String,
    pub hash: String,
}

impl AuditEntry {
    /// The entry after the one of this number and hash.
    pub(crate) fn after(number: i64, previous: String, event: AuditEvent) -> Self {
        let number = number + 1;
        let hash = hash(number, &previous, &event);
        AuditEntry { number, event, previous, hash }
    }
}

impl Serialize for AuditEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let detail: Value = serde_json::from_str(&self.event.detail).unwrap_or(Value::Null);
        let mut map = serializer.serialize_map(Some(9))?;
        map.serialize_entry("number", &self.number)?;
        map.serialize_entry("at", &self.event.at.to_string())?;
        map.serialize_entry("actor", &self.event.actor.name)?;
        map.serialize_entry("origin", &self.event.actor.origin)?;
        map.serialize_entry("action", &self.event.action)?;
        map.serialize_entry("subject", &self.event.subject)?;
        map.serialize_entry("detail", &detail)?;
        map.serialize_entry("previous", &self.previous)?;
        map.serialize_entry("hash", &self.hash)?;
        map.end()
    }
}

/// The hash of an entry. Every part is preceded by its length, so that no two entries are the same text.
fn hash(number: i64, previous: &str, event: &AuditEvent) -> String {
    let AuditEvent { at, actor, action, subject, detail } = event;
    let number = number.to_string();
    let at = at.as_microsecond().to_string();
    let mut digest = Sha256::new();
    for part in [&number, previous, &at, &actor.name, &actor.origin, action, subject, detail] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    let mut text = String::with_capacity(64);
    for byte in digest.finalize() {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The place where the chain breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditFault {
    /// An entry is missing before this one, or was added.
    Gap { number: i64 },
    /// The entry does not have the hash of the one before it.
    Unlinked { number: i64 },
    /// The entry was changed.
    Changed { number: i64 },
}

/// A chain that is checked entry by entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditChain {
    /// The number of the last entry.
    pub last: i64,
    /// Its hash.
    pub hash: String,
}

impl Default for AuditChain {
    fn default() -> Self {
        AuditChain { last: 0, hash: FIRST.to_owned() }
    }
}

impl AuditChain {
    /// Checks the next entry.
    pub fn check(&mut self, entry: &AuditEntry) -> Result<(), AuditFault> {
        let number = entry.number;
        if number != self.last + 1 {
            return Err(AuditFault::Gap { number });
        }
        if entry.previous != self.hash {
            return Err(AuditFault::Unlinked { number });
        }
        if entry.hash != hash(number, &entry.previous, &entry.event) {
            return Err(AuditFault::Changed { number });
        }
        *self = AuditChain { last: number, hash: entry.hash.clone() };
        Ok(())
    }
}
