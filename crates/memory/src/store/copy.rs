//! The tables, for a copy between databases. The words of chunks are indexed again, because each database has its own index. A
//! vector is rounded: SQLite stores 8 bits of each number, PostgreSQL 16.

use hob_db::copy::{CopyRow, CopyTable, CopyValue, PostgresForm, RowConversion, SqliteForm};

use super::postgres::{add_words, create_vector_table};
use crate::vector_quantization::{Quantized, code, quantize, to_bytes};

pub const COPY_TABLES: &[CopyTable] = &[
    CopyTable {
        sqlite: Some(SqliteForm {
            table: "memory_source",
            // Counted with the chunks.
            rows: "(SELECT *, 0 AS words FROM memory_source)",
            key: &["id"],
            columns: None,
            insert: "
                INSERT INTO memory_source (
                    id, path, title, place, hash, modified, size, recipe, indexed, chunks, tokens
                ) SELECT id, path, title, place, hash, modified, size, recipe, indexed, chunks, tokens FROM copied",
            conversion: None,
        }),
        not_compared: &["words"],
        ..CopyTable::new("memory_source", &["id"])
    },
    CopyTable::new("memory_collection", &["name", "source"]),
    CopyTable {
        sqlite: Some(SqliteForm {
            table: "memory_chunk",
            rows: "memory_chunk",
            key: &["id"],
            columns: None,
            insert: "
                INSERT INTO memory_chunk (id, source, position, title, text, line, end_line, tokens)
                SELECT id, source, position, title, text, line, end_line, tokens FROM copied;
                INSERT INTO memory_words (rowid, title, text) SELECT id, title, text FROM copied;
                INSERT INTO memory_sample (rowid, title, text) SELECT id, title, text FROM copied WHERE id % 64 = 0",
            conversion: None,
        }),
        postgres: PostgresForm {
            after_batch: Some(|transaction, rows| {
                let text = |value: &CopyValue| match value {
                    CopyValue::Text(text) => text.clone(),
                    _ => String::new(),
                };
                let chunk = |row: &CopyRow| match row.as_slice() {
                    [CopyValue::Integer(id), _, _, title, body, ..] => Some((*id, text(title), text(body))),
                    _ => None,
                };
                add_words(transaction, &rows.iter().filter_map(chunk).collect::<Vec<_>>())
            }),
            ..CopyTable::new("", &[]).postgres
        },
        ..CopyTable::new("memory_chunk", &["id"])
    },
    CopyTable::new("memory_skipped", &["collection", "path"]),
    CopyTable::new("memory_folder", &["id"]),
    CopyTable::new("memory_model", &["id"]),
    CopyTable {
        sqlite: Some(SqliteForm {
            table: "memory_vector",
            rows: "(SELECT *, NULL AS code FROM memory_vector)",
            key: &["chunk"],
            columns: Some(&["chunk", "model", "scale", "vector", "code"]),
            insert: "
                INSERT INTO memory_vector (chunk, model, scale, vector) SELECT chunk, model, scale, vector FROM copied;
                INSERT INTO memory_code (id, model, code)
                SELECT memory_vector.id, copied.model, copied.code
                FROM copied JOIN memory_vector ON memory_vector.chunk = copied.chunk",
            conversion: Some(RowConversion { to_postgres: to_halves, to_sqlite: to_quantized }),
        }),
        not_compared: &["vector"],
        postgres: PostgresForm {
            prepare: Some(create_vector_table),
            expressions: &[("vector", "halfvec_send(vector)")],
            // An index for another length of vectors would remain.
            clear: Some("DROP TABLE IF EXISTS memory_vector"),
            ..CopyTable::new("", &[]).postgres
        },
        ..CopyTable::new("memory_vector", &["chunk"])
    },
];

fn to_halves(row: CopyRow) -> Option<CopyRow> {
    let row: [CopyValue; 5] = row.try_into().ok()?;
    let [chunk, model, CopyValue::Real(scale), CopyValue::Bytes(numbers), _] = row else { return None };
    let scale = scale as f32;
    let halves = numbers.iter().map(|number| half(f32::from(*number as i8) * scale));
    // pgvector's binary form: the count, an unused number, and the numbers.
    let mut bytes = u16::try_from(numbers.len()).ok()?.to_be_bytes().to_vec();
    bytes.extend([0, 0]);
    bytes.extend(halves.flat_map(u16::to_be_bytes));
    Some(vec![chunk, model, CopyValue::Bytes(bytes)])
}

fn to_quantized(row: CopyRow) -> Option<CopyRow> {
    let row: [CopyValue; 3] = row.try_into().ok()?;
    let [chunk, model, CopyValue::Bytes(bytes)] = row else { return None };
    let halves = bytes.get(4..)?.as_chunks().0.iter();
    let numbers: Vec<f32> = halves.map(|half| single(u16::from_be_bytes(*half))).collect();
    let Quantized { scale, bytes } = quantize(&numbers);
    let code = CopyValue::Bytes(to_bytes(&code(&numbers)));
    Some(vec![chunk, model, CopyValue::Real(scale.into()), CopyValue::Bytes(bytes), code])
}

/// The nearest number of half precision, for numbers up to 1.
fn half(number: f32) -> u16 {
    const SMALLEST_NORMAL: f32 = 6.103_515_6e-5;
    let (bits, size) = (number.to_bits(), number.abs());
    let sign = ((bits >> 16) & 0x8000) as u16;
    if size < SMALLEST_NORMAL {
        return sign | (size * 16_777_216.0).round_ties_even() as u16;
    }
    // The exponent begins at -15 instead of -127. The lower 13 bits are rounded, to an even number in the middle.
    let rebased = (bits & 0x7fff_ffff) - (112 << 23);
    sign | ((rebased + 0xfff + ((rebased >> 13) & 1)) >> 13) as u16
}

fn single(half: u16) -> f32 {
    let (sign, exponent, fraction) = (half & 0x8000, (half >> 10) & 0x1f, half & 0x3ff);
    let size = match exponent {
        0 => f32::from(fraction) / 16_777_216.0,
        _ => f32::from_bits(((u32::from(exponent) + 112) << 23) | (u32::from(fraction) << 13)),
    };
    if sign == 0 { size } else { -size }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use hob_core::{CollectionName, CollectionSet};
    use hob_db::Database;
    use hob_db::copy::{CopyRequest, ExistingRows, copy_to_postgres, copy_to_sqlite};
    use hob_testkit::PostgresServer;
    use proptest::prelude::*;

    use super::*;
    use crate::store::tests::connect;
    use crate::store::{
        CatalogPage, ChunkHit, MIGRATIONS, MemoryStore, NewChunk, NewFolder, NewSource, NewVector,
        PostgresMemoryStore, SourceStamp, SqliteMemoryStore,
    };
    use crate::types::{IndexWarning, PositionUnit};
    use crate::vector_quantization::normalize;
    use crate::word_query::WordQuery;

    const CHUNKS: i64 = 300;

    fn fill(memory: &dyn MemoryStore) {
        let chunk = |number: i64| NewChunk {
            title: format!("Page {number}"),
            text: format!("The boiler number{number} is serviced in Zürich."),
            line: 1,
            end_line: 2,
            tokens: 9,
        };
        let source = NewSource {
            collection: CollectionName::parse("team").expect("a name"),
            path: "/notes/boiler.md".to_owned(),
            title: "Boiler".to_owned(),
            place: PositionUnit::Page,
            stamp: SourceStamp { hash: [7; 32], modified: 5, size: 11, recipe: "512/64".to_owned() },
            chunks: (0..CHUNKS).map(chunk).collect(),
        };
        memory.save(&source, SystemTime::now()).expect("saved");
        let skipped = IndexWarning { path: "/notes/song.mp3".into(), reason: "it is binary".to_owned() };
        let noted = memory.replace_skipped(&source.collection, "/notes", &[], &[skipped], SystemTime::now());
        noted.expect("saved");
        let folder = NewFolder { path: "/notes".to_owned(), collection: source.collection, watched: true };
        memory.save_folder(&folder, SystemTime::now()).expect("saved");
        // Apart by an eighth of the circle, because vectors are rounded.
        let vector = |chunk: i64| {
            let angle = chunk as f32 * std::f32::consts::FRAC_PI_4;
            NewVector { chunk, vector: vec![angle.cos(), angle.sin()] }
        };
        memory.add_vectors("minilm", &(1..=8).map(vector).collect::<Vec<_>>()).expect("added");
    }

    /// The chunks that searches find, in order, and the state of the sources.
    fn searches(memory: &dyn MemoryStore) -> String {
        let ids = |hits: Vec<ChunkHit>| hits.iter().map(|hit| hit.chunk).collect::<Vec<_>>();
        let words = WordQuery::of("number42 boilers zurich").expect("words");
        let near = memory.find_vectors("minilm", &[1.0, 0.2], 3).expect("found").expect("a model");
        memory.check().expect("the words are those of the texts");
        let size = memory.size().expect("read");
        let page = CatalogPage { limit: 9, ..CatalogPage::default() };
        format!(
            "{:?} {:?} {:?} {:?} {:?} {:?}",
            ids(memory.find_words(&words, 1).expect("found")),
            ids(near),
            memory.known_below("/").expect("read"),
            memory.passages(&[43], None).expect("read"),
            (
                size.sources,
                size.chunks,
                size.tokens,
                size.vectors,
                size.models,
                size.collections,
                size.last_indexed
            ),
            (memory.skipped(&CollectionSet::All, &page).expect("read"), memory.folders().expect("read"))
        )
    }

    #[test]
    fn searches_find_the_same_after_a_copy_to_postgresql_and_back() {
        let file = |database: &Database| SqliteMemoryStore::new(database.clone()).expect("opened");
        let source = Database::in_memory(&[MIGRATIONS]).expect("opened");
        fill(&file(&source));
        let expected = searches(&file(&source));

        let created = PostgresServer::shared().create_database();
        let server = connect(&created.url());
        let request = CopyRequest {
            tables: COPY_TABLES,
            source: "here",
            existing: ExistingRows::Continue,
            listener: &|_| {},
        };
        copy_to_postgres(&source, &server, &request).expect("copied");
        let store = PostgresMemoryStore::new(server.clone());
        store.sync().expect("indexed");
        assert_eq!(searches(&store), expected);

        let back = Database::in_memory(&[MIGRATIONS]).expect("opened");
        copy_to_sqlite(&server, &back, &request).expect("copied");
        assert_eq!(searches(&file(&back)), expected);
        // Ids continue, and what was copied can be replaced.
        for memory in [&store as &dyn MemoryStore, &file(&back)] {
            fill_again(memory);
        }
    }

    fn fill_again(memory: &dyn MemoryStore) {
        fill(memory);
        let size = memory.size().expect("read");
        assert_eq!((size.sources, size.chunks, size.vectors), (1, CHUNKS as u64, 0));
        memory.check().expect("the words are those of the texts");
    }

    #[test]
    fn halves_are_those_of_the_standard() {
        for (number, bits) in [
            (0.0, 0),
            (1.0, 0x3c00),
            (-0.5, 0xb800),
            (0.333_251_95, 0x3555),
            (6.103_515_6e-5, 0x0400),
            (5.960_464_5e-8, 1),
        ] {
            assert_eq!((half(number), single(bits)), (bits, number));
        }
    }

    proptest! {
        #[test]
        fn a_vector_of_sqlite_is_the_same_after_the_way_there_and_back(vector in prop::collection::vec(-1.0_f32..1.0, 2..800)) {
            prop_assume!(vector.iter().any(|number| number.abs() > 0.01));
            let Quantized { scale, bytes } = quantize(&normalize(&vector));
            let row = vec![
                CopyValue::Integer(7), CopyValue::Integer(1), CopyValue::Real(scale.into()), CopyValue::Bytes(bytes.clone()),
                CopyValue::Null,
            ];
            let back = to_quantized(to_halves(row).expect("a vector")).expect("a vector");
            prop_assert_eq!(&back[3], &CopyValue::Bytes(bytes));
            let CopyValue::Real(scale_back) = back[2] else { panic!("{:?}", back[2]) };
            prop_assert!((scale_back / f64::from(scale) - 1.0).abs() < 1e-3);
        }
    }
}
