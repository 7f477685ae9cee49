//! The store in PostgreSQL.

use hob_core::Moment;
use hob_db::DbResult;
use hob_db::postgres::{PostgresDatabase, PostgresMigrations, SqlText};

use super::{MAX_PAGES, PageSnapshot, SourceStore};

/// The migrations of its table.
pub const POSTGRES_MIGRATIONS: PostgresMigrations = PostgresMigrations {
    capability: "sources",
    steps: &[include_str!("../../migrations/postgres/1_sources.sql")],
    usable_from: 0,
};

#[derive(Clone)]
pub struct PostgresSourceStore {
    database: PostgresDatabase,
}

impl PostgresSourceStore {
    pub fn new(database: PostgresDatabase) -> Self {
        PostgresSourceStore { database }
    }
}

impl SourceStore for PostgresSourceStore {
    fn page(&self, name: &str) -> DbResult<Option<PageSnapshot>> {
        self.database.read(|transaction| {
            let sql = "SELECT address, earlier, earlier_read, latest, window_began FROM source_page WHERE name = $1";
            let Some(row) = transaction.query_opt(sql, &[&SqlText(name)])? else { return Ok(None) };
            Ok(Some(PageSnapshot {
                address: row.try_get::<_, SqlText<String>>(0)?.0,
                earlier: row.try_get::<_, SqlText<String>>(1)?.0,
                earlier_read: Moment::from_microseconds(row.try_get(2)?),
                latest: row.try_get::<_, SqlText<String>>(3)?.0,
                window_began: Moment::from_microseconds(row.try_get(4)?),
            }))
        })
    }

    fn save_page(&self, name: &str, page: &PageSnapshot) -> DbResult<()> {
        let PageSnapshot { address, earlier, earlier_read, latest, window_began } = page;
        self.database.write(|transaction| {
            let sql = "INSERT INTO source_page (name, address, earlier, earlier_read, latest, window_began)
                VALUES ($1, $2, $3, $4, $5, $6)
                ON CONFLICT (name) DO UPDATE SET
                    address = excluded.address, earlier = excluded.earlier, earlier_read = excluded.earlier_read,
                    latest = excluded.latest, window_began = excluded.window_began";
            let (read, began) = (earlier_read.microseconds(), window_began.microseconds());
            let (name, address) = (SqlText(name), SqlText(address.as_str()));
            let (earlier, latest) = (SqlText(earlier.as_str()), SqlText(latest.as_str()));
            transaction.execute(sql, &[&name, &address, &earlier, &read, &latest, &began])?;
            let sql = "DELETE FROM source_page WHERE name IN (
                    SELECT name FROM source_page
                    WHERE window_began <
                        (SELECT window_began FROM source_page ORDER BY window_began DESC LIMIT 1 OFFSET $1)
                    FOR UPDATE SKIP LOCKED
                )";
            transaction.execute(sql, &[&(MAX_PAGES - 1)])?;
            Ok(())
        })
    }
}
