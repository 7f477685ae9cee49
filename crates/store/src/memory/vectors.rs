//! Chunks by their meaning. A vector is kept twice: in whole numbers on disk, and as its signs, which are searched first.

use std::sync::PoisonError;

use rusqlite::{Connection, OptionalExtension, params};

use super::codes::Codes;
use super::quantise::{code, from_bytes, normalise, quantise, similarity, to_bytes};
use super::{Hit, MemoryStore};
use crate::error::StoreError;

/// Up to so many vectors are compared one by one.
const FEW: usize = 4_096;

/// So many of the nearest by sign are compared in full; more when more are wanted.
const COMPARED: usize = 512;
const COMPARED_PER_WANTED: usize = 20;

/// A chunk that is to get a vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkText {
    pub chunk: i64,
    pub title: String,
    pub text: String,
}

/// A chunk's vector.
#[derive(Debug, Clone, PartialEq)]
pub struct NewVector {
    pub chunk: i64,
    pub vector: Vec<f32>,
}

/// A model as the database knows it.
struct Model {
    id: i64,
    dimensions: usize,
}

impl MemoryStore {
    /// Chunks without a vector of this model, by their ids behind `after`.
    pub fn without_vector(
        &self,
        model: &str,
        after: i64,
        count: usize,
    ) -> Result<Vec<ChunkText>, StoreError> {
        self.store.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, title, text FROM memory_chunk WHERE id > ?2 AND NOT EXISTS (\
                     SELECT 1 FROM memory_vector JOIN memory_model ON memory_model.id = memory_vector.model \
                     WHERE memory_vector.chunk = memory_chunk.id AND memory_model.name = ?1) \
                 ORDER BY id LIMIT ?3",
            )?;
            let rows = statement.query_map(params![model, after, count as i64], |row| {
                Ok(ChunkText { chunk: row.get(0)?, title: row.get(1)?, text: row.get(2)? })
            })?;
            rows.collect()
        })
    }

    /// How many chunks have no vector of this model.
    pub fn count_without_vector(&self, model: &str) -> Result<u64, StoreError> {
        self.store.read(|connection| {
            // The sums and the codes are small beside the chunks and the vectors they stand for.
            let lacking: i64 = connection.query_row(
                "SELECT (SELECT coalesce(sum(chunks), 0) FROM memory_source) - (\
                     SELECT count(*) FROM memory_code JOIN memory_model ON memory_model.id = memory_code.model \
                     WHERE memory_model.name = ?1)",
                [model],
                |row| row.get(0),
            )?;
            Ok(u64::try_from(lacking).unwrap_or(0))
        })
    }

    /// Gives chunks their vectors, in place of those they had. A chunk that is gone by now gets none, and a model whose
    /// vectors have another length than before starts anew.
    pub fn add_vectors(&self, model: &str, vectors: &[NewVector]) -> Result<(), StoreError> {
        let Some(dimensions) = vectors.first().map(|new| new.vector.len()) else { return Ok(()) };
        self.write(|transaction| {
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
            let mut add_code = transaction
                .prepare_cached("INSERT INTO memory_code (id, model, code) VALUES (?1, ?2, ?3)")?;
            for NewVector { chunk, vector } in vectors.iter().filter(|new| new.vector.len() == dimensions) {
                let normal = normalise(vector);
                let quantised = quantise(&normal);
                forget.execute([chunk])?;
                if add_vector.execute(params![chunk, model, f64::from(quantised.scale), quantised.bytes])?
                    == 1
                {
                    add_code.execute(params![
                        transaction.last_insert_rowid(),
                        model,
                        to_bytes(&code(&normal))
                    ])?;
                }
            }
            Ok(())
        })
    }

    /// The chunks nearest to a vector of this model, at most `count`; `None` when no chunk has a vector of it.
    pub fn find_vectors(
        &self,
        model: &str,
        vector: &[f32],
        count: usize,
    ) -> Result<Option<Vec<Hit>>, StoreError> {
        self.store.read(|connection| {
            let Some(model) = find_model(connection, model)? else { return Ok(None) };
            let normal = normalise(vector);
            let near = self.near_by_sign(connection, &model, &normal, count)?;
            if near.is_empty() {
                return Ok(None);
            }
            compare(connection, &normal, &near, count).map(Some)
        })
    }

    fn near_by_sign(
        &self,
        connection: &Connection,
        model: &Model,
        normal: &[f32],
        count: usize,
    ) -> rusqlite::Result<Vec<i64>> {
        let newest: i64 =
            connection.query_row("SELECT coalesce(max(id), 0) FROM memory_code", [], |row| row.get(0))?;
        let wanted = |codes: &Codes| match codes.len() {
            0..=FEW => FEW,
            _ => COMPARED.max(count * COMPARED_PER_WANTED),
        };
        let code = code(normal);
        {
            let codes = self.codes.read().unwrap_or_else(PoisonError::into_inner);
            if codes.model == model.id && codes.last() >= newest {
                return Ok(codes.nearest(&code, wanted(&codes)));
            }
        }
        let mut codes = self.codes.write().unwrap_or_else(PoisonError::into_inner);
        if codes.model != model.id {
            *codes = Codes::of_model(model.id, model.dimensions);
        }
        read_codes(connection, &mut codes)?;
        Ok(codes.nearest(&code, wanted(&codes)))
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

/// Reads what came since. What went stays until the process ends: it is found to be gone when it is compared.
fn read_codes(connection: &Connection, codes: &mut Codes) -> rusqlite::Result<()> {
    let mut statement = connection
        .prepare_cached("SELECT id, code FROM memory_code WHERE id > ?1 AND model = ?2 ORDER BY id")?;
    let mut rows = statement.query(params![codes.last(), codes.model])?;
    while let Some(row) = rows.next()? {
        codes.push(row.get(0)?, from_bytes(row.get_ref(1)?.as_blob()?));
    }
    Ok(())
}

fn compare(
    connection: &Connection,
    normal: &[f32],
    near: &[i64],
    count: usize,
) -> rusqlite::Result<Vec<Hit>> {
    let mut statement =
        connection.prepare_cached("SELECT chunk, scale, vector FROM memory_vector WHERE id = ?1")?;
    let mut hits = Vec::with_capacity(near.len());
    for id in near {
        let hit = statement
            .query_row([id], |row| {
                let scale = row.get::<_, f64>(1)? as f32;
                let score = similarity(normal, scale, row.get_ref(2)?.as_blob()?);
                Ok(Hit { chunk: row.get(0)?, score: f64::from(score) })
            })
            .optional()?;
        hits.extend(hit);
    }
    hits.sort_by(|one, other| other.score.total_cmp(&one.score).then(one.chunk.cmp(&other.chunk)));
    hits.truncate(count);
    Ok(hits)
}
