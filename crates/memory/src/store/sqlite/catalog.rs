//! Documents, skipped files and folders in SQLite.

use std::time::SystemTime;

use hob_core::time::Moment;
use hob_core::{CollectionName, CollectionSet};
use hob_db::{DbResult, Durability};
use rusqlite::{OptionalExtension, Row, params};

use super::memory_file::{Scope, SqliteMemoryStore};
use crate::store::catalog::{
    CatalogPage, CollectionSummary, DocumentCatalog, DocumentFolder, FolderCheck, NewFolder, RecentDocument,
    SkippedFile, StoredDocument, below, folded, row_limit, stems,
};
use crate::store::columns::range_below;
use crate::store::marks::storable;
use crate::types::IndexWarning;

const FOLDER: &str = "id, path, collection, watched, added, checked, fault, due";

/// The names of the scope `?1`; all if it is NULL.
const NAMED: &str = "(?1 IS NULL OR {name} IN (SELECT value FROM json_each(?1)))";

/// The skipped files below none of the stems `?5`. The table of stems has a column `path`, too.
const NOT_SPARED: &str =
    "NOT EXISTS (SELECT 1 FROM json_each(?5) WHERE substr(memory_skipped.path, 1, length(value)) = value)";

/// Microseconds since 1970. A note has no file.
const CHANGED: &str = "CASE WHEN modified > 0 THEN modified / 1000 ELSE indexed END";

impl DocumentCatalog for SqliteMemoryStore {
    fn recent(
        &self,
        collections: &CollectionSet,
        since: SystemTime,
        limit: usize,
    ) -> DbResult<Vec<RecentDocument>> {
        let scope = Scope::of(collections);
        let sql = format!(
            "SELECT path, title, {CHANGED} AS changed, coalesce(( \
                 SELECT text FROM memory_chunk WHERE source = memory_source.id ORDER BY position LIMIT 1), '') \
             FROM memory_source WHERE chunks > 0 AND {CHANGED} >= ?2 AND {} ORDER BY changed DESC, path LIMIT ?3",
            scope.condition("id", "?1"),
        );
        let limit = row_limit(limit);
        self.database.read(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let rows =
                statement.query_map(params![scope.0, Moment::of(since).microseconds(), limit], |row| {
                    Ok(RecentDocument {
                        path: row.get(0)?,
                        title: row.get(1)?,
                        changed: Moment::from_microseconds(row.get(2)?),
                        text: row.get(3)?,
                    })
                })?;
            rows.collect()
        })
    }

    fn documents(&self, collections: &CollectionSet, page: &CatalogPage) -> DbResult<Vec<StoredDocument>> {
        let scope = Scope::of(collections);
        let (exact, first, end) = below(page.below.as_deref());
        let sql = format!(
            "SELECT path, title, chunks, size, indexed, ( \
                 SELECT json_group_array(name) FROM ( \
                     SELECT name FROM memory_collection WHERE source = memory_source.id AND {} ORDER BY name)) \
             FROM memory_source \
             WHERE chunks > 0 AND path > ?2 AND (?3 = '' OR instr(lower(path), ?3) > 0 OR instr(lower(title), ?3) > 0) \
                 AND (?4 IS NULL OR path = ?4 OR (path >= ?5 AND path < ?6)) AND {} \
             ORDER BY path LIMIT ?7",
            NAMED.replace("{name}", "name"),
            scope.condition("id", "?1"),
        );
        self.database.read(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let values = params![
                scope.0,
                page.after.path,
                folded(&page.text),
                exact,
                first,
                end,
                row_limit(page.limit)
            ];
            let rows = statement.query_map(values, |row| {
                let names: String = row.get(5)?;
                Ok(StoredDocument {
                    path: row.get(0)?,
                    title: row.get(1)?,
                    // SQLite made the list, so it can be read.
                    collections: serde_json::from_str(&names).unwrap_or_default(),
                    chunks: row.get::<_, i64>(2)?.unsigned_abs(),
                    size: row.get::<_, i64>(3)?.unsigned_abs(),
                    indexed: Moment::from_microseconds(row.get(4)?),
                })
            })?;
            rows.collect()
        })
    }

    fn skipped(&self, collections: &CollectionSet, page: &CatalogPage) -> DbResult<Vec<SkippedFile>> {
        let scope = Scope::of(collections);
        let (exact, first, end) = below(page.below.as_deref());
        let sql = format!(
            "SELECT path, collection, reason, seen FROM memory_skipped \
             WHERE (path, collection) > (?2, ?3) AND (?4 = '' OR instr(lower(path), ?4) > 0) \
                 AND (?5 IS NULL OR path = ?5 OR (path >= ?6 AND path < ?7)) AND {} \
             ORDER BY path, collection LIMIT ?8",
            NAMED.replace("{name}", "collection"),
        );
        self.database.read(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let values = params![
                scope.0,
                page.after.path,
                page.after.collection,
                folded(&page.text),
                exact,
                first,
                end,
                row_limit(page.limit)
            ];
            let rows = statement.query_map(values, |row| {
                Ok(SkippedFile {
                    path: row.get(0)?,
                    collection: row.get(1)?,
                    reason: row.get(2)?,
                    seen: Moment::from_microseconds(row.get(3)?),
                })
            })?;
            rows.collect()
        })
    }

    fn collections(&self, collections: &CollectionSet) -> DbResult<Vec<CollectionSummary>> {
        let scope = Scope::of(collections);
        let sql = format!(
            "WITH names (name) AS ( \
                 SELECT name FROM memory_collection UNION SELECT collection FROM memory_skipped \
                 UNION SELECT collection FROM memory_folder), \
             held AS ( \
                 SELECT name, count(*) AS documents, sum(chunks) AS chunks, sum(size) AS size, max(indexed) AS indexed \
                 FROM memory_collection JOIN memory_source ON memory_source.id = source WHERE chunks > 0 GROUP BY name) \
             SELECT names.name, coalesce(documents, 0), coalesce(chunks, 0), coalesce(size, 0), indexed, \
                 (SELECT count(*) FROM memory_skipped WHERE collection = names.name) \
             FROM names LEFT JOIN held ON held.name = names.name WHERE {} ORDER BY names.name",
            NAMED.replace("{name}", "names.name"),
        );
        self.database.read(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map([&scope.0], |row| {
                let number = |index| row.get::<_, i64>(index).map(i64::unsigned_abs);
                Ok(CollectionSummary {
                    name: row.get(0)?,
                    documents: number(1)?,
                    chunks: number(2)?,
                    size: number(3)?,
                    indexed: row.get::<_, Option<i64>>(4)?.map(Moment::from_microseconds),
                    skipped: number(5)?,
                })
            })?;
            rows.collect()
        })
    }

    fn replace_skipped(
        &self,
        collection: &CollectionName,
        path: &str,
        spared: &[String],
        skipped: &[IndexWarning],
        now: SystemTime,
    ) -> DbResult<()> {
        let (exact, first, end) = range_below(path);
        let spared = serde_json::json!(stems(spared)).to_string();
        let seen = Moment::of(now).microseconds();
        self.write(Durability::ProcessEnd, |transaction| {
            transaction
                .prepare_cached(&format!(
                    "DELETE FROM memory_skipped \
                     WHERE collection = ?1 AND (path = ?2 OR (path >= ?3 AND path < ?4)) AND {NOT_SPARED}"
                ))?
                .execute(params![collection.as_str(), exact, first, end, spared])?;
            let mut insert = transaction.prepare_cached(
                "INSERT INTO memory_skipped (collection, path, reason, seen) VALUES (?1, ?2, ?3, ?4) \
                 ON CONFLICT DO UPDATE SET reason = excluded.reason, seen = excluded.seen",
            )?;
            for IndexWarning { path, reason } in skipped {
                let path = path.to_string_lossy();
                insert.execute(params![collection.as_str(), storable(&path), storable(reason), seen])?;
            }
            Ok(())
        })
    }

    fn remove_skipped(
        &self,
        collections: &CollectionSet,
        path: Option<&str>,
        spared: &[String],
    ) -> DbResult<()> {
        let scope = Scope::of(collections);
        let (exact, first, end) = below(path);
        let spared = serde_json::json!(stems(spared)).to_string();
        let sql = format!(
            "DELETE FROM memory_skipped \
             WHERE (?2 IS NULL OR path = ?2 OR (path >= ?3 AND path < ?4)) AND {NOT_SPARED} AND {}",
            NAMED.replace("{name}", "collection"),
        );
        self.write(Durability::ProcessEnd, |transaction| {
            transaction.prepare_cached(&sql)?.execute(params![scope.0, exact, first, end, spared])?;
            Ok(())
        })
    }

    fn paths_in(&self, collection: &CollectionName, count: usize) -> DbResult<Vec<String>> {
        let count = row_limit(count);
        self.database.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT path FROM memory_collection JOIN memory_source ON memory_source.id = source \
                 WHERE name = ?1 LIMIT ?2",
            )?;
            let rows = statement.query_map(params![collection.as_str(), count], |row| row.get(0))?;
            rows.collect()
        })
    }

    fn folders(&self) -> DbResult<Vec<DocumentFolder>> {
        self.database.read(|connection| {
            let mut statement = connection
                .prepare_cached(&format!("SELECT {FOLDER} FROM memory_folder ORDER BY path, collection"))?;
            let rows = statement.query_map([], folder)?;
            rows.collect()
        })
    }

    fn save_folder(&self, new: &NewFolder, now: SystemTime) -> DbResult<DocumentFolder> {
        let now = Moment::of(now).microseconds();
        self.write(Durability::PowerCut, |transaction| {
            transaction.query_row(
                &format!(
                    "INSERT INTO memory_folder (path, collection, watched, added, due) VALUES (?1, ?2, ?3, ?4, ?4) \
                     ON CONFLICT (path, collection) DO UPDATE SET watched = excluded.watched, due = excluded.due \
                     RETURNING {FOLDER}"
                ),
                params![new.path, new.collection.as_str(), new.watched, now],
                folder,
            )
        })
    }

    fn set_watched(&self, id: i64, watched: bool, now: SystemTime) -> DbResult<Option<DocumentFolder>> {
        let now = Moment::of(now).microseconds();
        self.write(Durability::PowerCut, |transaction| {
            transaction
                .query_row(
                    &format!(
                        "UPDATE memory_folder SET watched = ?2, due = ?3 WHERE id = ?1 RETURNING {FOLDER}"
                    ),
                    params![id, watched, now],
                    folder,
                )
                .optional()
        })
    }

    fn remove_folder(&self, id: i64) -> DbResult<Option<DocumentFolder>> {
        self.write(Durability::PowerCut, |transaction| {
            let sql = format!("DELETE FROM memory_folder WHERE id = ?1 RETURNING {FOLDER}");
            transaction.query_row(&sql, [id], folder).optional()
        })
    }

    fn claim_folder(&self, id: i64, now: SystemTime, until: SystemTime) -> DbResult<bool> {
        let (now, until) = (Moment::of(now).microseconds(), Moment::of(until).microseconds());
        self.write(Durability::ProcessEnd, |transaction| {
            let sql = "UPDATE memory_folder SET due = ?3 WHERE id = ?1 AND watched AND due <= ?2";
            Ok(transaction.execute(sql, [id, now, until])? > 0)
        })
    }

    fn hold_folder(&self, id: i64, until: SystemTime) -> DbResult<bool> {
        let until = Moment::of(until).microseconds();
        self.write(Durability::ProcessEnd, |transaction| {
            Ok(transaction.execute("UPDATE memory_folder SET due = ?2 WHERE id = ?1", [id, until])? > 0)
        })
    }

    fn finish_folder(&self, id: i64, check: &FolderCheck) -> DbResult<bool> {
        let (at, next) = (Moment::of(check.at).microseconds(), Moment::of(check.next).microseconds());
        self.write(Durability::ProcessEnd, |transaction| {
            let sql = "UPDATE memory_folder SET checked = ?2, fault = ?3, due = ?4 WHERE id = ?1";
            Ok(transaction.execute(sql, params![id, at, check.fault, next])? > 0)
        })
    }
}

fn folder(row: &Row<'_>) -> rusqlite::Result<DocumentFolder> {
    Ok(DocumentFolder {
        id: row.get(0)?,
        path: row.get(1)?,
        collection: row.get(2)?,
        watched: row.get(3)?,
        added: Moment::from_microseconds(row.get(4)?),
        checked: row.get::<_, Option<i64>>(5)?.map(Moment::from_microseconds),
        fault: row.get(6)?,
        due: Moment::from_microseconds(row.get(7)?),
    })
}
