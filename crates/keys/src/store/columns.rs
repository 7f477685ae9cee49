//! Keys as columns, the same in every database. Knows no SQL.

use hob_db::UnreadableColumn;
use jiff::Timestamp;

use super::StoredKey;
use crate::key::{ApiKey, KeyName, KeyRole, KeyStatus};
use crate::secret::SecretHash;

/// The columns of [`KeyColumns`], in their order.
pub(super) const KEY_COLUMNS: &str =
    "id, name, role, status, rules, hash, previous_hash, previous_until, created_at, expires_at";

/// The columns of an entry of the audit log.
pub(super) const AUDIT_COLUMNS: &str = "number, at, actor, origin, action, subject, detail, previous, hash";

/// A key as it is stored. Times are microseconds.
pub(super) struct KeyColumns {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) role: String,
    pub(super) status: String,
    pub(super) rules: String,
    pub(super) hash: Vec<u8>,
    pub(super) previous_hash: Option<Vec<u8>>,
    pub(super) previous_until: Option<i64>,
    pub(super) created_at: i64,
    pub(super) expires_at: Option<i64>,
}

impl KeyColumns {
    pub(super) fn of(stored: &StoredKey) -> Result<Self, UnreadableColumn> {
        let StoredKey { key, hash, previous_hash } = stored;
        Ok(KeyColumns {
            id: key.id.to_string(),
            name: key.name.as_str().to_owned(),
            role: key.role.as_str().to_owned(),
            status: key.status.as_str().to_owned(),
            rules: serde_json::to_string(&key.rules)
                .map_err(|error| UnreadableColumn::new("rules", error))?,
            hash: hash.as_bytes().to_vec(),
            previous_hash: previous_hash.map(|hash| hash.as_bytes().to_vec()),
            previous_until: key.previous_until.map(Timestamp::as_microsecond),
            created_at: key.created_at.as_microsecond(),
            expires_at: key.expires_at.map(Timestamp::as_microsecond),
        })
    }

    pub(super) fn read(self) -> Result<StoredKey, UnreadableColumn> {
        let status = KeyStatus::parse(&self.status);
        Ok(StoredKey {
            key: ApiKey {
                id: self.id.into(),
                name: KeyName::parse(&self.name).map_err(|error| UnreadableColumn::new("name", error))?,
                role: KeyRole::parse(&self.role).map_err(|error| UnreadableColumn::new("role", error))?,
                status: status.ok_or_else(|| UnreadableColumn::new("status", "an unknown status"))?,
                rules: serde_json::from_str(&self.rules)
                    .map_err(|error| UnreadableColumn::new("rules", error))?,
                created_at: moment("created_at", self.created_at)?,
                expires_at: optional_moment("expires_at", self.expires_at)?,
                previous_until: optional_moment("previous_until", self.previous_until)?,
            },
            hash: secret_hash("hash", &self.hash)?,
            previous_hash: self
                .previous_hash
                .map(|bytes| secret_hash("previous_hash", &bytes))
                .transpose()?,
        })
    }
}

fn secret_hash(column: &'static str, bytes: &[u8]) -> Result<SecretHash, UnreadableColumn> {
    let bytes = bytes.try_into().map_err(|error| UnreadableColumn::new(column, error))?;
    Ok(SecretHash::from_bytes(bytes))
}

pub(super) fn moment(column: &'static str, microseconds: i64) -> Result<Timestamp, UnreadableColumn> {
    Timestamp::from_microsecond(microseconds).map_err(|error| UnreadableColumn::new(column, error))
}

fn optional_moment(
    column: &'static str,
    microseconds: Option<i64>,
) -> Result<Option<Timestamp>, UnreadableColumn> {
    microseconds.map(|microseconds| moment(column, microseconds)).transpose()
}

/// An amount as a column stores it.
pub(super) fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// The most rows of a list.
pub(super) fn limited(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
