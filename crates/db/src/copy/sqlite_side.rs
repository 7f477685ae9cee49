//! Rows of a file.

use rusqlite::types::FromSqlError;
use rusqlite::{Connection, Row, Transaction, params_from_iter};

use super::CopyTable;
use super::page::{Described, Page, Position};
use super::value::{CopyRow, CopyValue};

pub(super) fn count(connection: &Connection, table: &CopyTable) -> rusqlite::Result<u64> {
    let sql = format!("SELECT count(*) FROM {}", table.sqlite_rows());
    connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
}

pub(super) fn page(
    connection: &Connection,
    table: &CopyTable,
    described: &Described,
    position: &Position,
    limit: i64,
) -> rusqlite::Result<Page> {
    let columns = columns(table, described);
    let (rows, key) = (table.sqlite_rows(), table.sqlite_key());
    let (first, key) = (key.first().copied().unwrap_or("rowid"), key.join(", "));
    let from = format!("SELECT {}, {key} FROM {rows}", quoted(&columns));
    let ordered = format!("ORDER BY {key} LIMIT {limit}");
    let (sql, parameters): (String, &[CopyValue]) = match position {
        Position::Offset(offset) => (format!("{from} {ordered} OFFSET {offset}"), &[]),
        Position::After(last) => {
            let places: Vec<String> = (1..=last.len()).map(|place| format!("?{place}")).collect();
            // The first condition is for the index.
            let after = format!("{first} >= ?1 AND ({key}) > ({})", places.join(", "));
            (format!("{from} WHERE {after} {ordered}"), last)
        }
    };
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(parameters))?;
    let mut page = Page::default();
    while let Some(row) = rows.next()? {
        let mut values = read(row)?;
        page.last = values.split_off(columns.len());
        page.rows.push(to_postgres(table, described, values)?);
    }
    Ok(page)
}

fn read(row: &Row<'_>) -> rusqlite::Result<CopyRow> {
    let width = row.as_ref().column_count();
    (0..width).map(|column| CopyValue::of_sqlite(row.get_ref(column)?)).collect()
}

fn to_postgres(table: &CopyTable, described: &Described, row: CopyRow) -> rusqlite::Result<CopyRow> {
    let row = match table.sqlite.and_then(|form| form.conversion) {
        Some(conversion) => (conversion.to_postgres)(row).ok_or_else(|| unreadable(table))?,
        None => row,
    };
    let kinds = described.columns.iter().map(|(_, kind)| *kind);
    Ok(row.into_iter().zip(kinds).map(|(value, kind)| value.into_kind(kind, table.texts)).collect())
}

fn unreadable(table: &CopyTable) -> rusqlite::Error {
    FromSqlError::other(std::io::Error::other(format!("a row of {} has another form", table.name))).into()
}

pub(super) fn insert(
    transaction: &Transaction<'_>,
    table: &CopyTable,
    described: &Described,
    rows: &[CopyRow],
) -> rusqlite::Result<()> {
    let columns = columns(table, described);
    let names = quoted(&columns);
    transaction
        .execute_batch(&format!("DROP TABLE IF EXISTS temp.copied; CREATE TEMP TABLE copied ({names})"))?;
    let places: Vec<String> = (1..=columns.len()).map(|place| format!("?{place}")).collect();
    let mut insert =
        transaction.prepare(&format!("INSERT INTO temp.copied VALUES ({})", places.join(", ")))?;
    for row in rows {
        match table.sqlite.and_then(|form| form.conversion) {
            Some(conversion) => {
                let row = (conversion.to_sqlite)(row.clone()).ok_or_else(|| unreadable(table))?;
                insert.execute(params_from_iter(&row))?
            }
            None => insert.execute(params_from_iter(row))?,
        };
    }
    drop(insert);
    match table.sqlite {
        Some(form) => transaction.execute_batch(form.insert)?,
        None => transaction.execute_batch(&format!(
            "INSERT INTO {} ({names}) SELECT {names} FROM copied ORDER BY rowid",
            table.name
        ))?,
    }
    transaction.execute_batch("DROP TABLE temp.copied")
}

/// Deletes all rows, of the tables that reference others first.
pub(super) fn clear(transaction: &Transaction<'_>, tables: &[CopyTable]) -> rusqlite::Result<()> {
    for table in tables.iter().rev() {
        let name = table.sqlite.map_or(table.name, |form| form.table);
        match table.sqlite_clear {
            Some(script) => transaction.execute_batch(script)?,
            None => transaction.execute_batch(&format!("DELETE FROM {name}"))?,
        }
    }
    Ok(())
}

fn columns<'d>(table: &CopyTable, described: &'d Described) -> Vec<&'d str> {
    match table.sqlite.and_then(|form| form.columns) {
        Some(columns) => columns.to_vec(),
        None => described.columns.iter().map(|(name, _)| name.as_str()).collect(),
    }
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}
