//! The store in SQLite.

use hob_core::Moment;
use hob_db::{DbResult, LazyDatabase, Migrations};
use rusqlite::{OptionalExtension, params};

use super::{MAX_PAGES, PageSnapshot, SourceStore};

/// The migrations of its table.
pub const MIGRATIONS: Migrations = Migrations {
    capability: "sources",
    steps: &[include_str!("../../migrations/1_sources.sql")],
    legacy_versions: &[],
};

#[derive(Clone)]
pub struct SqliteSourceStore {
    database: LazyDatabase,
}

impl SqliteSourceStore {
    pub fn new(database: LazyDatabase) -> Self {
        SqliteSourceStore { database }
    }
}

impl SourceStore for SqliteSourceStore {
    fn page(&self, name: &str) -> DbResult<Option<PageSnapshot>> {
        let Some(database) = self.database.find()? else { return Ok(None) };
        database.read(|connection| {
            let sql = "SELECT address, earlier, earlier_read, latest, window_began FROM source_page WHERE name = ?1";
            let mut statement = connection.prepare_cached(sql)?;
            let page = statement.query_row([name], |row| {
                Ok(PageSnapshot {
                    address: row.get(0)?,
                    earlier: row.get(1)?,
                    earlier_read: Moment::from_microseconds(row.get(2)?),
                    latest: row.get(3)?,
                    window_began: Moment::from_microseconds(row.get(4)?),
                })
            });
            page.optional()
        })
    }

    fn save_page(&self, name: &str, page: &PageSnapshot) -> DbResult<()> {
        let PageSnapshot { address, earlier, earlier_read, latest, window_began } = page;
        self.database.open()?.write(|transaction| {
            let sql = "INSERT OR REPLACE INTO source_page
                (name, address, earlier, earlier_read, latest, window_began) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let (read, began) = (earlier_read.microseconds(), window_began.microseconds());
            transaction.execute(sql, params![name, address, earlier, read, latest, began])?;
            let sql = "DELETE FROM source_page WHERE window_began <
                (SELECT window_began FROM source_page ORDER BY window_began DESC LIMIT 1 OFFSET ?1)";
            transaction.execute(sql, [MAX_PAGES - 1])?;
            Ok(())
        })
    }
}
