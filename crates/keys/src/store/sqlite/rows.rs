//! Rows of keys.

use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::key::{ApiKey, KeyName, KeyRole, KeyRules, KeyStatus};
use crate::secret::SecretHash;
use crate::store::StoredKey;

const COLUMNS: &str =
    "id, name, role, status, rules, hash, previous_hash, previous_until, created_at, expires_at";

pub(super) fn list(connection: &Connection) -> rusqlite::Result<Vec<StoredKey>> {
    let sql = format!("SELECT {COLUMNS} FROM api_key ORDER BY name");
    connection.prepare_cached(&sql)?.query_map([], read)?.collect()
}

pub(super) fn get(connection: &Connection, name: &str) -> rusqlite::Result<Option<StoredKey>> {
    let sql = format!("SELECT {COLUMNS} FROM api_key WHERE name = ?1");
    connection.prepare_cached(&sql)?.query_row([name], read).optional()
}

pub(super) fn insert(transaction: &Transaction<'_>, stored: &StoredKey) -> rusqlite::Result<()> {
    let sql = format!("INSERT INTO api_key ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
    write(transaction, &sql, stored)
}

pub(super) fn update(transaction: &Transaction<'_>, stored: &StoredKey) -> rusqlite::Result<()> {
    let sql = "UPDATE api_key SET name = ?2, role = ?3, status = ?4, rules = ?5, hash = ?6, previous_hash = ?7, previous_until = ?8,
         created_at = ?9, expires_at = ?10 WHERE id = ?1";
    write(transaction, sql, stored)
}

fn write(transaction: &Transaction<'_>, sql: &str, stored: &StoredKey) -> rusqlite::Result<()> {
    let StoredKey { key, hash, previous_hash } = stored;
    let rules = serde_json::to_string(&key.rules)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    let at = |at: Option<Timestamp>| at.map(Timestamp::as_microsecond);
    transaction
        .prepare_cached(sql)?
        .execute(params![
            key.id,
            key.name.as_str(),
            key.role.as_str(),
            key.status.as_str(),
            rules,
            hash.as_bytes().as_slice(),
            previous_hash.map(|hash| hash.as_bytes().to_vec()),
            at(key.previous_until),
            key.created_at.as_microsecond(),
            at(key.expires_at),
        ])
        .map(drop)
}

fn read(row: &Row<'_>) -> rusqlite::Result<StoredKey> {
    let wrong = |column: usize, reason: String| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, reason.into())
    };
    let name: String = row.get(1)?;
    let role: String = row.get(2)?;
    let status: String = row.get(3)?;
    let rules: String = row.get(4)?;
    let rules: KeyRules = serde_json::from_str(&rules).map_err(|error| wrong(4, error.to_string()))?;
    let status = KeyStatus::ALL.into_iter().find(|known| known.as_str() == status);
    Ok(StoredKey {
        key: ApiKey {
            id: row.get(0)?,
            name: KeyName::parse(&name).map_err(|error| wrong(1, error.to_string()))?,
            role: KeyRole::parse(&role).map_err(|error| wrong(2, error.to_string()))?,
            status: status.ok_or_else(|| wrong(3, "an unknown status".to_owned()))?,
            rules,
            created_at: moment(row, 8)?.ok_or_else(|| wrong(8, "no moment".to_owned()))?,
            expires_at: moment(row, 9)?,
            previous_until: moment(row, 7)?,
        },
        hash: hash(row, 5)?.ok_or_else(|| wrong(5, "no hash".to_owned()))?,
        previous_hash: hash(row, 6)?,
    })
}

fn hash(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<SecretHash>> {
    let bytes: Option<[u8; 32]> = row.get(column)?;
    Ok(bytes.map(SecretHash::from_bytes))
}

fn moment(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    let microseconds: Option<i64> = row.get(column)?;
    let read = |microseconds| {
        Timestamp::from_microsecond(microseconds).map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(column, Type::Integer, Box::new(error))
        })
    };
    microseconds.map(read).transpose()
}
