//! Vector search. A vector is stored quantized on disk, and as its signs, which are searched first.

use std::collections::HashSet;

use hob_db::{DbResult, Durability};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::memory_file::{Scope, SqliteMemoryStore, SqliteSnapshot};
use crate::store::{ChunkHit, ChunkText, NewVector, SourceScope};
use crate::vector_quantization::{code, from_bytes, normalize, quantize, similarity, to_bytes};
use crate::vector_signs::{CodesVersion, VectorSigns};

/// Up to this many vectors are compared in full.
const FEW: usize = 4_096;

/// The number of nearest vectors by sign that are compared in full, or more on request.
const COMPARED: usize = 512;
const COMPARED_PER_WANTED: usize = 20;

/// Deleted vectors that stay listed, about half a megabyte. A process that missed more reads all codes again.
const DELETED_LISTED: i64 = 65_536;

struct Model {
    id: i64,
    dimensions: usize,
}

/// The condition that a source is among the wanted ones.
fn in_scope(sources: &SourceScope, source: &str) -> String {
    match sources {
        SourceScope::Collections(collections) => Scope::of(collections).condition(source, "?1"),
        SourceScope::Path(_) => format!("{source} = (SELECT id FROM memory_source WHERE path = ?1)"),
    }
}

/// The parameter `?1` of [`in_scope`].
fn scope_value(sources: &SourceScope) -> Option<String> {
    match sources {
        SourceScope::Collections(collections) => Scope::of(collections).0,
        SourceScope::Path(path) => Some(path.clone()),
    }
}

/// At most so many chunks after an id.
pub(super) fn without_vector(
    store: &SqliteMemoryStore,
    sources: &SourceScope,
    model: &str,
    (after, count): (i64, usize),
) -> DbResult<Vec<ChunkText>> {
    let sql = format!(
        "SELECT id, title, text FROM memory_chunk WHERE id > ?3 AND {} AND NOT EXISTS (\
             SELECT 1 FROM memory_vector JOIN memory_model ON memory_model.id = memory_vector.model \
             WHERE memory_vector.chunk = memory_chunk.id AND memory_model.name = ?2) \
         ORDER BY id LIMIT ?4",
        in_scope(sources, "source")
    );
    let value = scope_value(sources);
    store.database.read(|connection| {
        let mut statement = connection.prepare_cached(&sql)?;
        let rows = statement.query_map(params![value, model, after, count as i64], |row| {
            Ok(ChunkText { chunk: row.get(0)?, title: row.get(1)?, text: row.get(2)? })
        })?;
        rows.collect()
    })
}

pub(super) fn count_without_vector(
    store: &SqliteMemoryStore,
    sources: &SourceScope,
    model: &str,
) -> DbResult<u64> {
    // The sums and the codes are small compared to the chunks and vectors.
    let (vectors, in_scope_too) = match *sources == SourceScope::ALL {
        true => ("memory_code", String::new()),
        false => (
            "memory_vector JOIN memory_chunk ON memory_chunk.id = chunk",
            format!("AND {}", in_scope(sources, "memory_chunk.source")),
        ),
    };
    let sql = format!(
        "SELECT (SELECT coalesce(sum(chunks), 0) FROM memory_source WHERE {}) - (\
             SELECT count(*) FROM {vectors} JOIN memory_model ON memory_model.id = model \
             WHERE memory_model.name = ?2 {in_scope_too})",
        in_scope(sources, "id")
    );
    let value = scope_value(sources);
    store.database.read(|connection| {
        let lacking: i64 = connection.query_row(&sql, params![value, model], |row| row.get(0))?;
        Ok(u64::try_from(lacking).unwrap_or(0))
    })
}

pub(super) fn has_vectors(store: &SqliteMemoryStore) -> DbResult<bool> {
    store.database.read(|connection| {
        connection.query_row("SELECT EXISTS (SELECT 1 FROM memory_code)", [], |row| row.get(0))
    })
}

pub(super) fn add_vectors(store: &SqliteMemoryStore, model: &str, vectors: &[NewVector]) -> DbResult<()> {
    let Some(dimensions) = vectors.first().map(|new| new.vector.len()) else { return Ok(()) };
    store.write(Durability::ProcessEnd, |transaction| {
        let model = match find_model(transaction, model)? {
            Some(known) if known.dimensions == dimensions => known.id,
            known => {
                if let Some(Model { id, .. }) = known {
                    transaction.execute("DELETE FROM memory_vector WHERE model = ?1", [id])?;
                    transaction.execute("DELETE FROM memory_model WHERE id = ?1", [id])?;
                }
                transaction.execute(
                    "INSERT INTO memory_model (name, dimensions) VALUES (?1, ?2)",
                    params![model, dimensions as i64],
                )?;
                transaction.last_insert_rowid()
            }
        };
        let mut forget = transaction.prepare_cached("DELETE FROM memory_vector WHERE chunk = ?1")?;
        let mut add_vector = transaction.prepare_cached(
            "INSERT INTO memory_vector (chunk, model, scale, vector) \
             SELECT id, ?2, ?3, ?4 FROM memory_chunk WHERE id = ?1",
        )?;
        let mut add_code =
            transaction.prepare_cached("INSERT INTO memory_code (id, model, code) VALUES (?1, ?2, ?3)")?;
        for NewVector { chunk, vector } in vectors.iter().filter(|new| new.vector.len() == dimensions) {
            let normal = normalize(vector);
            let quantized = quantize(&normal);
            forget.execute([chunk])?;
            if add_vector.execute(params![chunk, model, f64::from(quantized.scale), quantized.bytes])? == 1 {
                add_code.execute(params![
                    transaction.last_insert_rowid(),
                    model,
                    to_bytes(&code(&normal))
                ])?;
            }
        }
        shorten_deleted_list(transaction)
    })
}

pub(super) fn find_vectors(
    snapshot: &SqliteSnapshot<'_>,
    model: &str,
    vector: &[f32],
    count: usize,
) -> DbResult<Option<Vec<ChunkHit>>> {
    snapshot.explained(|connection| {
        let Some(model) = find_model(connection, model)? else { return Ok(None) };
        let normal = normalize(vector);
        let near = match snapshot.vectors_in_scope()? {
            // All are compared, so their signs need not be known, and those of the others are not read.
            Some(own) if own.len() <= FEW && vector.len() == model.dimensions => own,
            own => snapshot.near_by_sign(&model, &normal, count, own)?,
        };
        compare(connection, &model, &normal, &near, count).map(Some)
    })
}

impl SqliteSnapshot<'_> {
    /// First updates the codes with the changes of all processes. The codes are exactly those of this snapshot: otherwise a
    /// source that is being replaced would be missing. The nearest are searched among the vectors of the scope alone, `own`.
    fn near_by_sign(
        &self,
        model: &Model,
        normal: &[f32],
        count: usize,
        own: Option<Vec<i64>>,
    ) -> rusqlite::Result<Vec<i64>> {
        let code = code(normal);
        let own: Option<HashSet<i64>> = own.map(|own| own.into_iter().collect());
        let nearest = |codes: &VectorSigns| {
            let searched = own.as_ref().map_or(codes.len(), HashSet::len);
            let compared = match searched {
                0..=FEW => FEW,
                _ => COMPARED.max(count * COMPARED_PER_WANTED),
            };
            match &own {
                None => codes.nearest(&code, compared),
                Some(own) => codes.nearest_among(&code, compared, own),
            }
        };
        let version = version(self.connection)?;
        {
            let codes = self.codes.read();
            if codes.model == model.id && codes.version == version {
                return Ok(nearest(&codes));
            }
        }
        let mut codes = self.codes.write();
        if codes.model != model.id {
            *codes = VectorSigns::of_model(model.id, model.dimensions);
        }
        if codes.version.is_after(version) {
            // A later search was faster. This one reads its own codes, which is rare.
            drop(codes);
            let mut own = VectorSigns::of_model(model.id, model.dimensions);
            catch_up(self.connection, &mut own, version)?;
            return Ok(nearest(&own));
        }
        if let Err(error) = catch_up(self.connection, &mut codes, version) {
            // A partial update is worse than none.
            *codes = VectorSigns::default();
            return Err(error);
        }
        Ok(nearest(&codes))
    }

    /// The ids of the vectors of the scope, of any model; `None` for all. Reading them takes about a third of a second for a million.
    fn vectors_in_scope(&self) -> rusqlite::Result<Option<Vec<i64>>> {
        let Some(names) = &self.scope.0 else { return Ok(None) };
        let sql = format!(
            "SELECT memory_vector.id FROM memory_chunk JOIN memory_vector ON chunk = memory_chunk.id WHERE {}",
            self.scope.condition("source", "?1")
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        statement.query_map([names], |row| row.get(0))?.collect::<rusqlite::Result<_>>().map(Some)
    }
}

fn find_model(connection: &Connection, name: &str) -> rusqlite::Result<Option<Model>> {
    connection
        .prepare_cached("SELECT id, dimensions FROM memory_model WHERE name = ?1")?
        .query_row([name], |row| {
            Ok(Model { id: row.get(0)?, dimensions: row.get::<_, i64>(1)?.unsigned_abs() as usize })
        })
        .optional()
}

fn version(connection: &Connection) -> rusqlite::Result<CodesVersion> {
    connection
        .prepare_cached(
            "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'memory_vector'), 0), \
                 (SELECT coalesce(max(id), 0) FROM memory_vector_gone)",
        )?
        .query_row([], |row| Ok(CodesVersion { added: row.get(0)?, removed: row.get(1)? }))
}

/// Updates the codes to `version`, the state of the database.
fn catch_up(connection: &Connection, codes: &mut VectorSigns, version: CodesVersion) -> rusqlite::Result<()> {
    if codes.version.removed < version.removed && codes.len() > 0 {
        match gone_since(connection, codes.version.removed)? {
            Some(gone) => codes.remove(&gone),
            None => codes.clear(),
        }
    }
    let known = if codes.len() == 0 { 0 } else { codes.version.added };
    let mut statement = connection
        .prepare_cached("SELECT id, code FROM memory_code WHERE id > ?1 AND model = ?2 ORDER BY id")?;
    let mut rows = statement.query(params![known, codes.model])?;
    while let Some(row) = rows.next()? {
        codes.push(row.get(0)?, from_bytes(row.get_ref(1)?.as_blob()?));
    }
    codes.version = version;
    Ok(())
}

/// The vectors deleted since an entry; `None` if the list does not reach back so far.
fn gone_since(connection: &Connection, entry: i64) -> rusqlite::Result<Option<HashSet<i64>>> {
    let first: i64 =
        connection.query_row("SELECT coalesce(min(id), 0) FROM memory_vector_gone", [], |row| row.get(0))?;
    if first > entry + 1 {
        return Ok(None);
    }
    let mut statement = connection.prepare_cached("SELECT vector FROM memory_vector_gone WHERE id > ?1")?;
    statement.query_map([entry], |row| row.get(0))?.collect::<rusqlite::Result<_>>().map(Some)
}

/// Shortens the list of deleted vectors. Never empties it: its last entry is the version.
pub(super) fn shorten_deleted_list(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "DELETE FROM memory_vector_gone WHERE id <= (SELECT max(id) FROM memory_vector_gone) - ?1",
        )?
        .execute([DELETED_LISTED])?;
    Ok(())
}

/// Compares vectors in full. Those of other models do not count.
fn compare(
    connection: &Connection,
    model: &Model,
    normal: &[f32],
    near: &[i64],
    count: usize,
) -> rusqlite::Result<Vec<ChunkHit>> {
    let mut statement = connection
        .prepare_cached("SELECT chunk, scale, vector FROM memory_vector WHERE id = ?1 AND model = ?2")?;
    let mut hits = Vec::with_capacity(near.len());
    for id in near {
        let hit = statement
            .query_row([id, &model.id], |row| {
                let scale = row.get::<_, f64>(1)? as f32;
                let score = similarity(normal, scale, row.get_ref(2)?.as_blob()?);
                Ok(ChunkHit { chunk: row.get(0)?, score: f64::from(score) })
            })
            .optional()?;
        hits.extend(hit);
    }
    hits.sort_by(|one, other| other.score.total_cmp(&one.score).then(one.chunk.cmp(&other.chunk)));
    hits.truncate(count);
    Ok(hits)
}
