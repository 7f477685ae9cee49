//! Documents, skipped files and folders in PostgreSQL.

use std::time::SystemTime;

use hob_core::time::Moment;
use hob_core::{CollectionName, CollectionSet};
use hob_db::postgres::{QueryResult, Row};
use hob_db::{DbResult, Durability};

use super::memory_database::{PostgresMemoryStore, Scope};
use crate::store::catalog::{
    CatalogPage, CollectionSummary, DocumentCatalog, DocumentFolder, FolderCheck, NewFolder, RecentDocument,
    SkippedFile, StoredDocument, below, folded, row_limit, stems,
};
use crate::store::columns::range_below;
use crate::store::marks::storable;
use crate::types::IndexWarning;

const FOLDER: &str = "id, path, collection, watched, added, checked, fault, due";

const DOCUMENTS: &str = "
    SELECT path, title, chunks, size, indexed, ARRAY(
        SELECT name::text FROM memory_collection
        WHERE source = memory_source.id AND ($1::text[] IS NULL OR name = ANY($1)) ORDER BY name)
    FROM memory_source
    WHERE chunks > 0 AND path > $2::text
        AND ($3::text = '' OR strpos(lower(path), $3) > 0 OR strpos(lower(title COLLATE \"C\"), $3) > 0)
        AND ($4::text IS NULL OR path = $4 OR (path >= $5::text AND path < $6::text)) AND {scope}
    ORDER BY path LIMIT $7";

/// A note has no file, and so no time of a change.
const RECENT: &str = "
    SELECT path, title, changed, coalesce(
        (SELECT text FROM memory_chunk WHERE source = memory_source.id ORDER BY position LIMIT 1), '')
    FROM memory_source,
        LATERAL (SELECT CASE WHEN modified > 0 THEN modified / 1000 ELSE indexed END AS changed) AS change
    WHERE chunks > 0 AND changed >= $2::bigint AND {scope}
    ORDER BY changed DESC, path LIMIT $3::bigint";

const SKIPPED: &str = "
    SELECT path, collection, reason, seen FROM memory_skipped
    WHERE (path, collection) > ($2::text, $3::text) AND ($4::text = '' OR strpos(lower(path), $4) > 0)
        AND ($5::text IS NULL OR path = $5 OR (path >= $6::text AND path < $7::text))
        AND ($1::text[] IS NULL OR collection = ANY($1))
    ORDER BY path, collection LIMIT $8";

/// The skipped files below none of the stems `$5`.
const NOT_SPARED: &str =
    "NOT EXISTS (SELECT 1 FROM unnest($5::text[]) AS spared (stem) WHERE starts_with(path, stem))";

const COLLECTIONS: &str = "
    WITH names AS (
        SELECT name FROM memory_collection UNION SELECT collection FROM memory_skipped
        UNION SELECT collection FROM memory_folder),
    held AS (
        SELECT name, count(*) AS documents, sum(chunks)::bigint AS chunks, sum(size)::bigint AS size,
            max(indexed) AS indexed
        FROM memory_collection JOIN memory_source ON memory_source.id = source WHERE chunks > 0 GROUP BY name)
    SELECT names.name, coalesce(documents, 0), coalesce(chunks, 0), coalesce(size, 0), indexed,
        (SELECT count(*) FROM memory_skipped WHERE collection = names.name)
    FROM names LEFT JOIN held ON held.name = names.name
    WHERE $1::text[] IS NULL OR names.name = ANY($1) ORDER BY names.name";

impl DocumentCatalog for PostgresMemoryStore {
    fn recent(
        &self,
        collections: &CollectionSet,
        since: SystemTime,
        limit: usize,
    ) -> DbResult<Vec<RecentDocument>> {
        let scope = Scope::of(collections);
        let sql = RECENT.replace("{scope}", &scope.has_source("memory_source.id", "$1"));
        let (since, limit) = (Moment::of(since).microseconds(), row_limit(limit));
        self.database.read(|transaction| {
            let rows = transaction.query(&sql, &[&scope.0, &since, &limit])?;
            let document = |row: &Row| {
                Ok(RecentDocument {
                    path: row.try_get(0)?,
                    title: row.try_get(1)?,
                    changed: Moment::from_microseconds(row.try_get(2)?),
                    text: row.try_get(3)?,
                })
            };
            rows.iter().map(document).collect()
        })
    }

    fn documents(&self, collections: &CollectionSet, page: &CatalogPage) -> DbResult<Vec<StoredDocument>> {
        let scope = Scope::of(collections);
        let sql = DOCUMENTS.replace("{scope}", &scope.has_source("id", "$1"));
        let (exact, first, end) = below(page.below.as_deref());
        let text = folded(&page.text);
        self.database.read(|transaction| {
            let rows = transaction.query(
                &sql,
                &[&scope.0, &page.after.path, &text, &exact, &first, &end, &row_limit(page.limit)],
            )?;
            let document = |row: &Row| {
                Ok(StoredDocument {
                    path: row.try_get(0)?,
                    title: row.try_get(1)?,
                    chunks: row.try_get::<_, i64>(2)?.unsigned_abs(),
                    size: row.try_get::<_, i64>(3)?.unsigned_abs(),
                    indexed: Moment::from_microseconds(row.try_get(4)?),
                    collections: row.try_get(5)?,
                })
            };
            rows.iter().map(document).collect()
        })
    }

    fn skipped(&self, collections: &CollectionSet, page: &CatalogPage) -> DbResult<Vec<SkippedFile>> {
        let scope = Scope::of(collections);
        let (exact, first, end) = below(page.below.as_deref());
        let text = folded(&page.text);
        self.database.read(|transaction| {
            let rows = transaction.query(
                SKIPPED,
                &[
                    &scope.0,
                    &page.after.path,
                    &page.after.collection,
                    &text,
                    &exact,
                    &first,
                    &end,
                    &row_limit(page.limit),
                ],
            )?;
            let skipped = |row: &Row| {
                Ok(SkippedFile {
                    path: row.try_get(0)?,
                    collection: row.try_get(1)?,
                    reason: row.try_get(2)?,
                    seen: Moment::from_microseconds(row.try_get(3)?),
                })
            };
            rows.iter().map(skipped).collect()
        })
    }

    fn collections(&self, collections: &CollectionSet) -> DbResult<Vec<CollectionSummary>> {
        let scope = Scope::of(collections);
        self.database.read(|transaction| {
            let rows = transaction.query(COLLECTIONS, &[&scope.0])?;
            let summary = |row: &Row| {
                let number = |column| row.try_get::<_, i64>(column).map(i64::unsigned_abs);
                Ok(CollectionSummary {
                    name: row.try_get(0)?,
                    documents: number(1)?,
                    chunks: number(2)?,
                    size: number(3)?,
                    indexed: row.try_get::<_, Option<i64>>(4)?.map(Moment::from_microseconds),
                    skipped: number(5)?,
                })
            };
            rows.iter().map(summary).collect()
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
        let spared = stems(spared);
        let seen = Moment::of(now).microseconds();
        let paths: Vec<String> =
            skipped.iter().map(|one| storable(&one.path.to_string_lossy()).into_owned()).collect();
        let reasons: Vec<String> = skipped.iter().map(|one| storable(&one.reason).into_owned()).collect();
        self.database.write_with(Durability::ProcessEnd, |transaction| {
            // Two processes that index the same path write one after the other.
            transaction.lock(&format!("hob.memory_skipped.{collection}"))?;
            transaction.execute(
                &format!(
                    "DELETE FROM memory_skipped \
                     WHERE collection = $1 AND (path = $2 OR (path >= $3 AND path < $4)) AND {NOT_SPARED}"
                ),
                &[&collection.as_str(), &exact, &first, &end, &spared],
            )?;
            // A path that is not UTF-8 can look like another one.
            transaction.execute(
                "INSERT INTO memory_skipped (collection, path, reason, seen) \
                 SELECT DISTINCT ON (new.path) $1::text, new.path, new.reason, $4::bigint \
                 FROM unnest($2::text[], $3::text[]) AS new (path, reason) \
                 ON CONFLICT (collection, path) DO UPDATE SET reason = excluded.reason, seen = excluded.seen",
                &[&collection.as_str(), &paths, &reasons, &seen],
            )?;
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
        let spared = stems(spared);
        self.database.write_with(Durability::ProcessEnd, |transaction| {
            transaction.execute(
                &format!(
                    "DELETE FROM memory_skipped \
                     WHERE ($2::text IS NULL OR path = $2 OR (path >= $3::text AND path < $4::text)) \
                         AND ($1::text[] IS NULL OR collection = ANY($1)) AND {NOT_SPARED}"
                ),
                &[&scope.0, &exact, &first, &end, &spared],
            )?;
            Ok(())
        })
    }

    fn paths_in(&self, collection: &CollectionName, count: usize) -> DbResult<Vec<String>> {
        let count = row_limit(count);
        self.database.read(|transaction| {
            let rows = transaction.query(
                "SELECT path FROM memory_collection JOIN memory_source ON memory_source.id = source \
                 WHERE name = $1 LIMIT $2",
                &[&collection.as_str(), &count],
            )?;
            rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
        })
    }

    fn folders(&self) -> DbResult<Vec<DocumentFolder>> {
        let sql = format!("SELECT {FOLDER} FROM memory_folder ORDER BY path, collection");
        self.database.read(|transaction| transaction.query(&sql, &[])?.iter().map(folder).collect())
    }

    fn save_folder(&self, new: &NewFolder, now: SystemTime) -> DbResult<DocumentFolder> {
        let now = Moment::of(now).microseconds();
        let sql = format!(
            "INSERT INTO memory_folder (path, collection, watched, added, due) VALUES ($1, $2, $3, $4, $4) \
             ON CONFLICT (path, collection) DO UPDATE SET watched = excluded.watched, due = excluded.due \
             RETURNING {FOLDER}"
        );
        let values = (new.path.as_str(), new.collection.as_str(), new.watched);
        self.database.write(|transaction| {
            folder(&transaction.query_one(&sql, &[&values.0, &values.1, &values.2, &now])?)
        })
    }

    fn set_watched(&self, id: i64, watched: bool, now: SystemTime) -> DbResult<Option<DocumentFolder>> {
        let now = Moment::of(now).microseconds();
        let sql = format!("UPDATE memory_folder SET watched = $2, due = $3 WHERE id = $1 RETURNING {FOLDER}");
        self.database.write(|transaction| {
            transaction.query(&sql, &[&id, &watched, &now])?.first().map(folder).transpose()
        })
    }

    fn remove_folder(&self, id: i64) -> DbResult<Option<DocumentFolder>> {
        let sql = format!("DELETE FROM memory_folder WHERE id = $1 RETURNING {FOLDER}");
        self.database.write(|transaction| transaction.query(&sql, &[&id])?.first().map(folder).transpose())
    }

    fn claim_folder(&self, id: i64, now: SystemTime, until: SystemTime) -> DbResult<bool> {
        let (now, until) = (Moment::of(now).microseconds(), Moment::of(until).microseconds());
        self.database.write_with(Durability::ProcessEnd, |transaction| {
            let sql = "UPDATE memory_folder SET due = $3 WHERE id = $1 AND watched AND due <= $2";
            Ok(transaction.execute(sql, &[&id, &now, &until])? > 0)
        })
    }

    fn hold_folder(&self, id: i64, until: SystemTime) -> DbResult<bool> {
        let until = Moment::of(until).microseconds();
        self.database.write_with(Durability::ProcessEnd, |transaction| {
            Ok(transaction.execute("UPDATE memory_folder SET due = $2 WHERE id = $1", &[&id, &until])? > 0)
        })
    }

    fn finish_folder(&self, id: i64, check: &FolderCheck) -> DbResult<bool> {
        let (at, next) = (Moment::of(check.at).microseconds(), Moment::of(check.next).microseconds());
        let fault = check.fault.as_deref().map(|fault| storable(fault).into_owned());
        self.database.write_with(Durability::ProcessEnd, |transaction| {
            let sql = "UPDATE memory_folder SET checked = $2, fault = $3, due = $4 WHERE id = $1";
            Ok(transaction.execute(sql, &[&id, &at, &fault, &next])? > 0)
        })
    }
}

fn folder(row: &Row) -> QueryResult<DocumentFolder> {
    Ok(DocumentFolder {
        id: row.try_get(0)?,
        path: row.try_get(1)?,
        collection: row.try_get(2)?,
        watched: row.try_get(3)?,
        added: Moment::from_microseconds(row.try_get(4)?),
        checked: row.try_get::<_, Option<i64>>(5)?.map(Moment::from_microseconds),
        fault: row.try_get(6)?,
        due: Moment::from_microseconds(row.try_get(7)?),
    })
}
