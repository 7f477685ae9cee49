//! The tables, for a copy between databases. The words of chunks are indexed again, because each database has its own index. A
//! vector is rounded: SQLite stores 8 bits of each number, PostgreSQL 16.

use hob_db::copy::{CopyRow, CopyTable, CopyValue, PostgresForm, RowConversion, SqliteForm};

use super::postgres::{add_words, create_vector_table};
use crate::quantise::{Quantised, code, quantise, to_bytes};

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
            conversion: Some(RowConversion { to_postgres: to_halves, to_sqlite: to_quantised }),
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
    let [chunk, model, CopyValue::Real(scale), CopyValue::Bytes(numbers), _] = row.try_into().ok()? else {
        return None;
    };
    let scale = scale as f32;
    let halves = numbers.iter().map(|number| half(f32::from(*number as i8) * scale));
    // pgvector's binary form: the count, an unused number, and the numbers.
    let mut bytes = u16::try_from(numbers.len()).ok()?.to_be_bytes().to_vec();
    bytes.extend([0, 0]);
    bytes.extend(halves.flat_map(u16::to_be_bytes));
    Some(vec![chunk, model, CopyValue::Bytes(bytes)])
}

fn to_quantised(row: CopyRow) -> Option<CopyRow> {
    let [chunk, model, CopyValue::Bytes(bytes)] = row.try_into().ok()? else { return None };
    let halves = bytes.get(4..)?.as_chunks().0.iter();
    let numbers: Vec<f32> = halves.map(|half| single(u16::from_be_bytes(*half))).collect();
    let Quantised { scale, bytes } = quantise(&numbers);
    let code = CopyValue::Bytes(to_bytes(&code(&numbers)));
    Some(vec![chunk, model, CopyValue::Real(scale.into()), CopyValue::Bytes(bytes), code])
}

/// The nearest number of half precision, for numbers up to 1.
fn half(number: f32) -> u16 {
    const SMALLEST_NORMAL: f32 = 6.103_515_6e-5;
    let (bits, size) = (number.to_bits(), number.abs());
    let sign = (bits >> 16) as u16 & 0x8000;
    if size < SMALLEST_NORMAL {
        return sign | (size * 16_777_216.0).round_ties_even() as u16;
    }
    // The exponent begins at -15 instead of -127. The lower 13 bits are rounded, to an even number in the middle.
    let rebased = (bits & 0x7fff_ffff) - (112 << 23);
    sign | ((rebased + 0xfff + (rebased >> 13 & 1)) >> 13) as u16
}

fn single(half: u16) -> f32 {
    let (sign, exponent, fraction) = (half & 0x8000, half >> 10 & 0x1f, half & 0x3ff);
    let size = match exponent {
        0 => f32::from(fraction) / 16_777_216.0,
        _ => f32::from_bits((u32::from(exponent) + 112) << 23 | u32::from(fraction) << 13),
    };
    if sign == 0 { size } else { -size }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::quantise::normalise;

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
            let Quantised { scale, bytes } = quantise(&normalise(&vector));
            let row = vec![
                CopyValue::Integer(7), CopyValue::Integer(1), CopyValue::Real(scale.into()), CopyValue::Bytes(bytes.clone()),
                CopyValue::Null,
            ];
            let back = to_quantised(to_halves(row).expect("a vector")).expect("a vector");
            prop_assert_eq!(&back[3], &CopyValue::Bytes(bytes));
            let CopyValue::Real(scale_back) = back[2] else { panic!("{:?}", back[2]) };
            prop_assert!((scale_back / f64::from(scale) - 1.0).abs() < 1e-3);
        }
    }
}
