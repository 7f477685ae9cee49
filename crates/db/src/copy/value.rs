//! Values, and their form in both databases.

use std::error::Error;
use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::BytesMut;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use tokio_postgres::Row;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::CopyTexts;
use crate::postgres::{QueryError, QueryResult, clean_name, escape, unescape};

pub type CopyRow = Vec<CopyValue>;

#[derive(Debug, Clone, PartialEq)]
pub enum CopyValue {
    Null,
    Integer(i64),
    Boolean(bool),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
}

impl CopyValue {
    /// About how much memory it takes.
    pub(super) fn size(&self) -> usize {
        match self {
            CopyValue::Text(text) => text.len(),
            CopyValue::Bytes(bytes) => bytes.len(),
            _ => 8,
        }
    }

    pub(super) fn of_sqlite(value: ValueRef<'_>) -> rusqlite::Result<Self> {
        Ok(match value {
            ValueRef::Null => CopyValue::Null,
            ValueRef::Integer(number) => CopyValue::Integer(number),
            ValueRef::Real(number) => CopyValue::Real(number),
            ValueRef::Text(_) => CopyValue::Text(value.as_str()?.to_owned()),
            ValueRef::Blob(bytes) => CopyValue::Bytes(bytes.to_owned()),
        })
    }

    /// A value of a file in the form that PostgreSQL gives it.
    pub(super) fn into_kind(self, kind: ColumnKind, texts: CopyTexts) -> Self {
        match (self, kind) {
            (CopyValue::Integer(number), ColumnKind::Boolean) => CopyValue::Boolean(number != 0),
            (CopyValue::Integer(number), ColumnKind::Real) => CopyValue::Real(number as f64),
            (CopyValue::Text(text), _) if texts == CopyTexts::Plain => {
                CopyValue::Text(clean_name(&text).into_owned())
            }
            (value, _) => value,
        }
    }

    pub(super) fn of_postgres(
        row: &Row,
        column: usize,
        kind: ColumnKind,
        texts: CopyTexts,
    ) -> QueryResult<Self> {
        let value = match kind {
            ColumnKind::Integer => row.try_get::<_, Option<i64>>(column)?.map(CopyValue::Integer),
            ColumnKind::Boolean => row.try_get::<_, Option<bool>>(column)?.map(CopyValue::Boolean),
            ColumnKind::Real => row.try_get::<_, Option<f64>>(column)?.map(CopyValue::Real),
            ColumnKind::Bytes => row.try_get::<_, Option<Vec<u8>>>(column)?.map(CopyValue::Bytes),
            ColumnKind::Text => row.try_get::<_, Option<String>>(column)?.map(|text| {
                CopyValue::Text(match texts {
                    CopyTexts::Plain => text,
                    CopyTexts::Escaped => unescape(&text),
                })
            }),
        };
        Ok(value.unwrap_or(CopyValue::Null))
    }
}

impl rusqlite::ToSql for CopyValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            CopyValue::Null => ToSqlOutput::Owned(Value::Null),
            CopyValue::Integer(number) => ToSqlOutput::Owned(Value::Integer(*number)),
            CopyValue::Boolean(is_true) => ToSqlOutput::Owned(Value::Integer(i64::from(*is_true))),
            CopyValue::Real(number) => ToSqlOutput::Owned(Value::Real(*number)),
            CopyValue::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            CopyValue::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

impl ToSql for CopyValue {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            CopyValue::Null => Ok(IsNull::Yes),
            CopyValue::Integer(number) => number.to_sql(kind, out),
            CopyValue::Boolean(is_true) => is_true.to_sql(kind, out),
            CopyValue::Real(number) => number.to_sql(kind, out),
            CopyValue::Text(text) => text.to_sql(kind, out),
            CopyValue::Bytes(bytes) => bytes.to_sql(kind, out),
        }
    }

    /// The kind of a column was compared with its type before.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A text with the escapes of [`crate::postgres::SqlText`].
pub(super) fn escaped(value: &CopyValue) -> CopyValue {
    match value {
        CopyValue::Text(text) => CopyValue::Text(escape(text).into_owned()),
        other => other.clone(),
    }
}

/// The kind of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Integer,
    Boolean,
    Real,
    Text,
    Bytes,
}

impl ColumnKind {
    pub(super) fn of(type_name: &str) -> QueryResult<Self> {
        Ok(match type_name.rsplit('.').next().unwrap_or(type_name) {
            "bigint" => ColumnKind::Integer,
            "boolean" => ColumnKind::Boolean,
            "double precision" => ColumnKind::Real,
            "text" => ColumnKind::Text,
            // Vectors are copied in their binary form.
            "bytea" | "halfvec" => ColumnKind::Bytes,
            other => return Err(QueryError::unreadable("type", format!("'{other}' cannot be copied"))),
        })
    }

    pub(super) fn copy_type(self) -> Type {
        match self {
            ColumnKind::Integer => Type::INT8,
            ColumnKind::Boolean => Type::BOOL,
            ColumnKind::Real => Type::FLOAT8,
            ColumnKind::Text => Type::TEXT,
            ColumnKind::Bytes => Type::BYTEA,
        }
    }
}

/// The number of rows and a sum over their contents, in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    pub(super) rows: u64,
    sum: u64,
}

impl Tally {
    pub(super) fn add<'v>(&mut self, row: impl Iterator<Item = &'v CopyValue>) {
        let mut hasher = DefaultHasher::new();
        for value in row {
            match value {
                CopyValue::Null => 0_u8.hash(&mut hasher),
                CopyValue::Integer(number) => (1_u8, number).hash(&mut hasher),
                CopyValue::Boolean(is_true) => (2_u8, is_true).hash(&mut hasher),
                CopyValue::Real(number) => (3_u8, number.to_bits()).hash(&mut hasher),
                CopyValue::Text(text) => (4_u8, text).hash(&mut hasher),
                CopyValue::Bytes(bytes) => (5_u8, bytes).hash(&mut hasher),
            }
        }
        self.rows += 1;
        self.sum = self.sum.wrapping_add(hasher.finish());
    }
}
