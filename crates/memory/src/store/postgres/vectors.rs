//! Vector search with pgvector.
//!
//! Vectors have length 1 and half precision, so that the inner product is the cosine of SQLite's search. All models share a table.
//! An index needs one length of vectors, so each model with many vectors has its own, over its part of the table.

use hob_db::postgres::{PostgresTransaction, QueryError, QueryResult, Row};
use hob_db::{DbResult, Durability};

use super::memory_database::{PostgresMemoryStore, PostgresSnapshot, Scope};
use crate::store::marks::storable;
use crate::store::{ChunkHit, ChunkText, NewVector, SourceScope};
use crate::vector_quantization::normalize;

/// The first vectors create the table, because it needs pgvector.
const CREATE_TABLE: &str = "
    CREATE TABLE IF NOT EXISTS memory_vector (
        chunk BIGINT PRIMARY KEY REFERENCES memory_chunk (id) ON DELETE CASCADE,
        model BIGINT NOT NULL REFERENCES memory_model (id) ON DELETE CASCADE,
        vector HALFVEC NOT NULL
    ) WITH (toast_tuple_target = 8160);
    CREATE INDEX IF NOT EXISTS memory_vector_model ON memory_vector (model)";

/// The oldest pgvector that continues a search whose first results were deleted.
const LEAST_PGVECTOR: (u32, u32) = (0, 8);

/// Up to this many vectors of a model are compared in full.
const FEW: i64 = 5_000;

/// Up to this many vectors of some collections are compared in full, because the index has those of all.
const FEW_IN_SCOPE: i64 = 10_000;

/// The most numbers of a vector that pgvector can index. Longer ones are compared in full.
const MAX_INDEXED_DIMENSIONS: i64 = 4_000;

/// How many candidates a search follows in the index: more find more of the nearest, and take longer. 1,000 is pgvector's limit.
const LEAST_CANDIDATES: usize = 200;
const CANDIDATES_PER_WANTED: usize = 4;
const MAX_CANDIDATES: usize = 1_000;

/// An index may miss a vector among many that were deleted, until the server has repaired it. So the newest are compared in full: what
/// was just saved is found.
const NEWEST: i64 = 1_000;

/// The memory for building an index, unless the server allows more by itself. A graph that does not fit takes much longer: this is
/// enough for some 400,000 vectors of 384 numbers.
const BUILD_MEMORY: &str = "512MB";

/// Under this lock the tables of vectors and their indexes are created.
const LOCK: &str = "hob.memory.vectors";

struct Model {
    id: i64,
    dimensions: i64,
}

impl Model {
    fn index(&self) -> String {
        format!("memory_vector_of_{}", self.id)
    }

    /// The indexed expression.
    fn vector(&self) -> String {
        format!("(vector::halfvec({}))", self.dimensions)
    }
}

/// The condition that a source is among the wanted ones.
fn in_scope(sources: &SourceScope, source: &str) -> String {
    match sources {
        SourceScope::Collections(collections) => Scope::of(collections).has_source(source, "$1"),
        SourceScope::Path(_) => {
            format!("{source} = (SELECT id FROM memory_source WHERE path = ($1::text[])[1])")
        }
    }
}

/// The parameter `$1` of [`in_scope`].
fn scope_value(sources: &SourceScope) -> Option<Vec<String>> {
    match sources {
        SourceScope::Collections(collections) => Scope::of(collections).0,
        SourceScope::Path(path) => Some(vec![path.clone()]),
    }
}

/// At most so many chunks after an id.
pub(super) fn without_vector(
    store: &PostgresMemoryStore,
    sources: &SourceScope,
    model: &str,
    (after, count): (i64, usize),
) -> DbResult<Vec<ChunkText>> {
    let (value, count) = (scope_value(sources), count as i64);
    let chunks =
        format!("SELECT id, title, text FROM memory_chunk WHERE id > $2 AND {}", in_scope(sources, "source"));
    store.database.read(|transaction| {
        let rows = match find_model(transaction, model)? {
            Some(model) => transaction.query(
                &format!(
                    "{chunks} AND NOT EXISTS (\
                         SELECT FROM memory_vector WHERE chunk = memory_chunk.id AND model = $4) \
                     ORDER BY id LIMIT $3"
                ),
                &[&value, &after, &count, &model.id],
            )?,
            None => {
                transaction.query(&format!("{chunks} ORDER BY id LIMIT $3"), &[&value, &after, &count])?
            }
        };
        let text = |row: &Row| {
            Ok(ChunkText { chunk: row.try_get(0)?, title: row.try_get(1)?, text: row.try_get(2)? })
        };
        rows.iter().map(text).collect()
    })
}

pub(super) fn count_without_vector(
    store: &PostgresMemoryStore,
    sources: &SourceScope,
    model: &str,
) -> DbResult<u64> {
    let value = scope_value(sources);
    let chunks = format!(
        "SELECT coalesce(sum(chunks), 0)::bigint FROM memory_source WHERE {}",
        in_scope(sources, "id")
    );
    let of_chunks = match *sources == SourceScope::ALL {
        true => "",
        false => "JOIN memory_chunk ON memory_chunk.id = chunk",
    };
    let vectors = format!(
        "SELECT count(*) FROM memory_vector {of_chunks} WHERE model = $2 AND {}",
        in_scope(sources, "source")
    );
    store.database.read(|transaction| {
        let chunks: i64 = transaction.query_one(&chunks, &[&value])?.try_get(0)?;
        let vectors: i64 = match find_model(transaction, model)? {
            Some(model) => transaction.query_one(&vectors, &[&value, &model.id])?.try_get(0)?,
            None => 0,
        };
        Ok(u64::try_from(chunks - vectors).unwrap_or(0))
    })
}

/// The models with the number of their vectors in the scope, by name. Models without one are listed only without a scope.
pub(super) fn count_vectors(
    transaction: &mut PostgresTransaction<'_>,
    scope: &Scope,
) -> QueryResult<Vec<(String, u64)>> {
    // Without a model, the table of vectors may not exist.
    if transaction.query_opt("SELECT FROM memory_model LIMIT 1", &[])?.is_none() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT name, coalesce(vectors, 0) FROM memory_model LEFT JOIN ( \
             SELECT model, count(*) AS vectors FROM memory_vector WHERE {} GROUP BY model \
         ) AS counted ON model = memory_model.id \
         WHERE $1::text[] IS NULL OR vectors > 0 ORDER BY name",
        scope.has_chunk("chunk", "$1")
    );
    let rows = transaction.query(&sql, &[&scope.0])?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get::<_, i64>(1)?.unsigned_abs()))).collect()
}

pub(super) fn has_vectors(store: &PostgresMemoryStore) -> DbResult<bool> {
    store.database.read(|transaction| {
        // Without a model, the table of vectors may not exist.
        if transaction.query_opt("SELECT FROM memory_model LIMIT 1", &[])?.is_none() {
            return Ok(false);
        }
        Ok(transaction.query_opt("SELECT FROM memory_vector LIMIT 1", &[])?.is_some())
    })
}

pub(super) fn add_vectors(store: &PostgresMemoryStore, model: &str, vectors: &[NewVector]) -> DbResult<()> {
    let Some(dimensions) = vectors.first().map(|new| new.vector.len()) else { return Ok(()) };
    let dimensions = dimensions as i64;
    let mut new: Vec<&NewVector> =
        vectors.iter().filter(|new| new.vector.len() as i64 == dimensions).collect();
    // Always in the same order, so that two processes do not wait for each other. The last vector of a chunk counts.
    new.reverse();
    new.sort_by_key(|new| new.chunk);
    new.dedup_by_key(|new| new.chunk);
    let chunks: Vec<i64> = new.iter().map(|new| new.chunk).collect();
    let numbers: Vec<f32> = new.iter().flat_map(|new| normalize(&new.vector)).collect();
    store.database.write_with(Durability::ProcessEnd, |transaction| {
        let model = open_model(transaction, model, dimensions)?;
        // Another process may write a vector of the same chunk, or delete the chunk.
        transaction.query(
            "SELECT FROM memory_chunk WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE",
            &[&chunks],
        )?;
        // Not an update: an index of another model would keep its entry.
        transaction.execute("DELETE FROM memory_vector WHERE chunk = ANY($1)", &[&chunks])?;
        transaction.execute(
            "INSERT INTO memory_vector (chunk, model, vector) \
             SELECT id, $2, (($3::real[])[(place - 1) * $4 + 1 : place * $4])::halfvec \
             FROM unnest($1::bigint[]) WITH ORDINALITY AS new (chunk, place) JOIN memory_chunk ON id = new.chunk",
            &[&chunks, &model.id, &numbers, &dimensions],
        )?;
        Ok(())
    })
}

/// The model, which is new or begins again if its vectors had another length.
fn open_model(transaction: &mut PostgresTransaction<'_>, name: &str, dimensions: i64) -> QueryResult<Model> {
    if let Some(known) = find_model(transaction, name)?
        && known.dimensions == dimensions
    {
        return Ok(known);
    }
    transaction.lock(LOCK)?;
    create_table(transaction)?;
    // Another process may have been faster.
    if let Some(known) = find_model(transaction, name)? {
        if known.dimensions == dimensions {
            return Ok(known);
        }
        transaction.run_script(&format!("DROP INDEX IF EXISTS {}", known.index()))?;
        transaction.execute("DELETE FROM memory_model WHERE id = $1", &[&known.id])?;
    }
    let row = transaction.query_one(
        "INSERT INTO memory_model (name, dimensions) VALUES ($1, $2) RETURNING id",
        &[&storable(name), &dimensions],
    )?;
    Ok(Model { id: row.try_get(0)?, dimensions })
}

pub(in crate::store) fn create_table(transaction: &mut PostgresTransaction<'_>) -> QueryResult<()> {
    const NAME: &str = "pgvector";
    let version = "SELECT extversion FROM pg_extension WHERE extname = 'vector'";
    if transaction.query_opt(version, &[])?.is_none() {
        let created = transaction.run_script("CREATE EXTENSION vector");
        created.map_err(|error| QueryError::needs_extension(NAME, "vector", error))?;
    }
    let version: String = transaction.query_one(version, &[])?.try_get(0)?;
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found < LEAST_PGVECTOR {
        let (major, minor) = LEAST_PGVECTOR;
        let reason = format!("its version is {version}, and Hob needs {major}.{minor} or newer");
        return Err(QueryError::needs_extension(
            NAME,
            "vector",
            QueryError::unreadable("extversion", reason),
        ));
    }
    transaction.run_script(CREATE_TABLE)
}

fn find_model(transaction: &mut PostgresTransaction<'_>, name: &str) -> QueryResult<Option<Model>> {
    let row = transaction
        .query_opt("SELECT id, dimensions FROM memory_model WHERE name = $1", &[&storable(name)])?;
    row.map(|row| Ok(Model { id: row.try_get(0)?, dimensions: row.try_get(1)? })).transpose()
}

/// Builds the indexes of models that have many vectors and no index. Until then their vectors are compared in full. An index over
/// vectors that are there is built much faster than one that gets them one by one.
pub(super) fn build_indexes(store: &PostgresMemoryStore) -> DbResult<()> {
    let lacking = |transaction: &mut PostgresTransaction<'_>| {
        let rows = transaction.query(
            "SELECT id, dimensions FROM memory_model WHERE dimensions <= $1 \
                 AND to_regclass('memory_vector_of_' || id) IS NULL",
            &[&MAX_INDEXED_DIMENSIONS],
        )?;
        let mut models = Vec::new();
        for row in rows {
            let model = Model { id: row.try_get(0)?, dimensions: row.try_get(1)? };
            let many = transaction.query_opt(
                "SELECT FROM memory_vector WHERE model = $1 OFFSET $2 LIMIT 1",
                &[&model.id, &FEW],
            )?;
            if many.is_some() {
                models.push(model);
            }
        }
        Ok(models)
    };
    if store.database.read(lacking)?.is_empty() {
        return Ok(());
    }
    store.database.write(|transaction| {
        transaction.wait_without_limit()?;
        transaction.lock(LOCK)?;
        allow_build_memory(transaction)?;
        for model in lacking(transaction)? {
            transaction.run_script(&format!(
                "CREATE INDEX {} ON memory_vector USING hnsw ({} halfvec_ip_ops) WHERE model = {}",
                model.index(),
                model.vector(),
                model.id
            ))?;
        }
        Ok(())
    })?;
    // Until the server has counted the vectors, it may compare all of them instead of using the index.
    store.database.write(|transaction| {
        transaction.wait_without_limit()?;
        transaction.run_script("ANALYZE memory_vector")
    })
}

/// Raises the limit of the memory for building an index in this transaction. A higher one of the server stays.
pub(super) fn allow_build_memory(transaction: &mut PostgresTransaction<'_>) -> QueryResult<()> {
    transaction.query(
        "SELECT set_config('maintenance_work_mem', $1, true) \
         WHERE pg_size_bytes(current_setting('maintenance_work_mem')) < pg_size_bytes($1)",
        &[&BUILD_MEMORY],
    )?;
    Ok(())
}

fn chunks_in(transaction: &mut PostgresTransaction<'_>, scope: &Scope) -> QueryResult<i64> {
    let sql = format!(
        "SELECT coalesce(sum(chunks), 0)::bigint FROM memory_source WHERE {}",
        scope.has_source("id", "$1")
    );
    Ok(transaction.query_one(&sql, &[&scope.0])?.try_get(0)?)
}

pub(super) fn find_vectors(
    snapshot: &PostgresSnapshot<'_, '_>,
    model: &str,
    vector: &[f32],
    count: usize,
) -> DbResult<Option<Vec<ChunkHit>>> {
    snapshot.run(|transaction| nearest(transaction, &snapshot.scope, model, vector, count))
}

/// An index has the vectors of all collections. A search of some follows it past the others, and pgvector ends it after so many of
/// them. So the vectors of a small collection are compared in full, and also those of a large one if the index gave too few.
pub(super) fn nearest(
    transaction: &mut PostgresTransaction<'_>,
    scope: &Scope,
    model: &str,
    vector: &[f32],
    count: usize,
) -> QueryResult<Option<Vec<ChunkHit>>> {
    let Some(model) = find_model(transaction, model)? else { return Ok(None) };
    let mut normal = normalize(vector);
    // A question of another length is compared as far as it goes, as in SQLite.
    normal.resize(usize::try_from(model.dimensions).unwrap_or(0), 0.0);
    let candidates = (count * CANDIDATES_PER_WANTED).clamp(LEAST_CANDIDATES, MAX_CANDIDATES);
    // Without the second setting, a search ends after the candidates, even if most of them were deleted.
    transaction.query(
        "SELECT set_config('hnsw.ef_search', $1, true), set_config('hnsw.iterative_scan', 'strict_order', true)",
        &[&candidates.to_string()],
    )?;
    let is_small = scope.0.is_some() && chunks_in(transaction, scope)? <= FEW_IN_SCOPE;
    let (expression, dimensions, id) = (model.vector(), model.dimensions, model.id);
    let distance = format!("{expression} <#> $1::real[]::halfvec({dimensions})");
    let own = format!("model = {id} AND {}", scope.has_chunk("chunk", "$3"));
    let by_index =
        format!("SELECT chunk, -({distance}) FROM memory_vector WHERE {own} ORDER BY {distance} LIMIT $2");
    let newest = format!(
        "SELECT chunk, -({distance}) FROM (\
             SELECT chunk, vector FROM memory_vector WHERE {own} ORDER BY chunk DESC LIMIT {NEWEST}) AS newest \
         ORDER BY {distance}, chunk LIMIT $2"
    );
    // Read first, because the planner would use the index again.
    let in_full = format!(
        "WITH own AS MATERIALIZED (SELECT chunk, vector FROM memory_vector WHERE {own}) \
         SELECT chunk, -({distance}) FROM own ORDER BY {distance}, chunk LIMIT $2"
    );
    let mut hits: Vec<ChunkHit> = Vec::new();
    let mut add = |statement: &str| {
        for row in transaction.query(statement, &[&normal, &(count as i64), &scope.0])? {
            let hit = ChunkHit { chunk: row.try_get(0)?, score: row.try_get(1)? };
            if hits.iter().all(|known| known.chunk != hit.chunk) {
                hits.push(hit);
            }
        }
        Ok::<_, QueryError>(hits.len())
    };
    if is_small {
        add(&in_full)?;
    } else {
        let found = add(&by_index)?;
        add(&newest)?;
        if scope.0.is_some() && found < count {
            add(&in_full)?;
        }
    }
    hits.sort_by(|one, other| other.score.total_cmp(&one.score).then(one.chunk.cmp(&other.chunk)));
    hits.truncate(count);
    Ok(Some(hits))
}
