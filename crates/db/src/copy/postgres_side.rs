//! Rows of a server.

use super::page::{Described, Page, Position};
use super::value::{ColumnKind, CopyRow, CopyValue, escaped};
use super::{CopyTable, CopyTexts};
use crate::postgres::{PostgresTransaction, QueryResult, ToSql, Type};

const COLUMNS: &str = "
    SELECT attname::text, format_type(atttypid, NULL), attidentity::text <> ''
    FROM pg_attribute WHERE attrelid = to_regclass($1::text) AND attnum > 0 AND NOT attisdropped ORDER BY attnum";

/// `None` if there is no such table.
pub(super) fn describe(
    transaction: &mut PostgresTransaction<'_>,
    table: &CopyTable,
) -> QueryResult<Option<Described>> {
    let mut described = Described::default();
    for row in transaction.query(COLUMNS, &[&table.name])? {
        let name: String = row.try_get(0)?;
        if row.try_get(2)? {
            described.identity = Some(name.clone());
        }
        if !table.server_columns.contains(&name.as_str()) {
            described.columns.push((name, ColumnKind::of(row.try_get(1)?)?));
        }
    }
    Ok((!described.columns.is_empty()).then_some(described))
}

/// 0 if there is no such table.
pub(super) fn count(transaction: &mut PostgresTransaction<'_>, table: &CopyTable) -> QueryResult<u64> {
    if describe(transaction, table)?.is_none() {
        return Ok(0);
    }
    let row = transaction.query_one(&format!("SELECT count(*) FROM {}", table.name), &[])?;
    Ok(row.try_get::<_, i64>(0)?.unsigned_abs())
}

pub(super) fn page(
    transaction: &mut PostgresTransaction<'_>,
    table: &CopyTable,
    described: &Described,
    position: &Position,
    limit: i64,
) -> QueryResult<Page> {
    let expression = |name: &str| {
        let special = table.postgres.expressions.iter().find(|(column, _)| *column == name);
        special.map_or_else(|| format!("\"{name}\""), |(_, expression)| (*expression).to_owned())
    };
    let columns: Vec<String> = described.columns.iter().map(|(name, _)| expression(name)).collect();
    let (columns, key) = (columns.join(", "), table.key.join(", "));
    let ordered = format!("ORDER BY {key} LIMIT $1");
    let from = format!("SELECT {columns}, {key} FROM {}", table.name);
    let rows = match position {
        Position::Offset(offset) => {
            let offset = i64::try_from(*offset).unwrap_or(i64::MAX);
            transaction.query(&format!("{from} {ordered} OFFSET $2"), &[&limit, &offset])?
        }
        Position::After(last) => {
            let places: Vec<String> = (0..last.len()).map(|place| format!("${}", place + 2)).collect();
            let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&limit];
            parameters.extend(last.iter().map(|value| value as &(dyn ToSql + Sync)));
            let sql = format!("{from} WHERE ({key}) > ({}) {ordered}", places.join(", "));
            transaction.query(&sql, &parameters)?
        }
    };
    let mut page = Page::default();
    let width = described.columns.len();
    for row in &rows {
        let values = described.columns.iter().enumerate();
        let values = values.map(|(place, (_, kind))| CopyValue::of_postgres(row, place, *kind, table.texts));
        page.rows.push(values.collect::<Result<CopyRow, _>>()?);
    }
    if let Some(last) = rows.last() {
        // As it is stored, because it is compared with what is stored.
        let key = last.columns().iter().enumerate().skip(width).map(|(place, column)| {
            let kind = if *column.type_() == Type::TEXT { ColumnKind::Text } else { ColumnKind::Integer };
            CopyValue::of_postgres(last, place, kind, CopyTexts::Plain)
        });
        page.last = key.collect::<Result<_, _>>()?;
    }
    Ok(page)
}

pub(super) fn insert(
    transaction: &mut PostgresTransaction<'_>,
    table: &CopyTable,
    described: &Described,
    rows: &[CopyRow],
) -> QueryResult<()> {
    let names: Vec<String> = described.columns.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let types: Vec<Type> = described.columns.iter().map(|(_, kind)| kind.copy_type()).collect();
    let sql = format!("COPY {} ({}) FROM STDIN BINARY", table.name, names.join(", "));
    let stored: Vec<CopyRow> = match table.texts {
        CopyTexts::Plain => Vec::new(),
        CopyTexts::Escaped => rows.iter().map(|row| row.iter().map(escaped).collect()).collect(),
    };
    let stored = if table.texts == CopyTexts::Plain { rows } else { &stored };
    let borrowed =
        stored.iter().map(|row| row.iter().map(|value| value as &(dyn ToSql + Sync)).collect::<Vec<_>>());
    transaction.copy_in(&sql, &types, borrowed)?;
    if let Some(after_batch) = table.postgres.after_batch {
        after_batch(transaction, rows)?;
    }
    Ok(())
}

/// New ids begin after the copied ones.
pub(super) fn finish(
    transaction: &mut PostgresTransaction<'_>,
    table: &CopyTable,
    described: &Described,
) -> QueryResult<()> {
    let name = table.name;
    if let Some(identity) = &described.identity {
        transaction.run_script(&format!(
            "SELECT setval(pg_get_serial_sequence('{name}', '{identity}'), \
                 (SELECT coalesce(max(\"{identity}\"), 0) + 1 FROM {name}), false)"
        ))?;
    }
    transaction.run_script(&format!("ANALYZE {name}"))
}

/// Deletes all rows, of the tables that reference others first.
pub(super) fn clear(transaction: &mut PostgresTransaction<'_>, tables: &[CopyTable]) -> QueryResult<()> {
    transaction.wait_without_limit()?;
    for table in tables.iter().rev() {
        match table.postgres.clear {
            Some(script) => transaction.run_script(script)?,
            None => transaction.run_script(&format!("DELETE FROM {}", table.name))?,
        }
    }
    Ok(())
}
