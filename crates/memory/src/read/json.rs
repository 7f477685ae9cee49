//! JSON as text: a line for each value with its path. Scans the text once and builds no tree.

use std::cell::Cell;
use std::fmt::{self, Write};
use std::io::{self, Read};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::draft::Draft;
use super::{BlockKind, Document, ReadError, ReadLimits, code};
use crate::types::PositionUnit;

/// The longest path that is written.
const MAX_PATH: usize = 400;

/// One or several values. Invalid or deeply nested JSON is read as plain text.
pub fn read(text: &str, limits: &ReadLimits) -> Result<Document, ReadError> {
    let line = Cell::new(1);
    let mut flat = Flat {
        draft: Draft::new(PositionUnit::Line, limits),
        path: String::new(),
        line: &line,
        failed: None,
    };
    let reader = Counted { rest: text.as_bytes(), line: &line };
    let mut json = serde_json::Deserializer::from_reader(reader);
    loop {
        let is_over = json.end().is_ok();
        if is_over {
            return Ok(flat.draft.finish());
        }
        if Value(&mut flat).deserialize(&mut json).is_err() {
            return match flat.failed {
                Some(error) => Err(error),
                None => code::read(text, limits),
            };
        }
    }
}

/// Counts lines. The parser reads one byte at a time and looks one ahead.
struct Counted<'a> {
    rest: &'a [u8],
    line: &'a Cell<u32>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.rest.read(buffer)?;
        let feeds = buffer[..read].iter().filter(|byte| **byte == b'\n').count();
        self.line.set(self.line.get().saturating_add(u32::try_from(feeds).unwrap_or(u32::MAX)));
        Ok(read)
    }
}

struct Flat<'a> {
    draft: Draft,
    path: String,
    line: &'a Cell<u32>,
    failed: Option<ReadError>,
}

impl Flat<'_> {
    fn leaf<E: Error>(&mut self, value: &str) -> Result<(), E> {
        let value = value.trim();
        if value.is_empty() {
            return Ok(());
        }
        let line = self.line.get();
        let text = if self.path.is_empty() { value.to_owned() } else { format!("{}: {value}", self.path) };
        let added = match text.contains('\n') {
            true => self.draft.push(BlockKind::Paragraph, &text, (line, line)),
            false => self.draft.row(&text, line),
        };
        added.map_err(|error| {
            self.failed = Some(error);
            E::custom("too much text")
        })
    }

    /// Adds a step to the path for `inner`.
    fn below<T>(&mut self, step: impl fmt::Display, inner: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        if length < MAX_PATH {
            // Writing to a string never fails.
            let _ = write!(self.path, "{step}");
        }
        let found = inner(self);
        self.path.truncate(length);
        found
    }
}

struct Value<'a, 'b>(&'a mut Flat<'b>);

impl<'de> DeserializeSeed<'de> for Value<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.0.leaf(if value { "true" } else { "false" })
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.0.leaf(&value.to_string())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.0.leaf(&value.to_string())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.0.leaf(&value.to_string())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.0.leaf(value)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        let mut index = 0_usize;
        while let Some(()) =
            self.0.below(format_args!("[{index}]"), |flat| values.next_element_seed(Value(flat)))?
        {
            index += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        while let Some(key) = values.next_key::<String>()? {
            let dot = if self.0.path.is_empty() { "" } else { "." };
            let key = key.split_whitespace().collect::<Vec<_>>().join(" ");
            self.0.below(format_args!("{dot}{key}"), |flat| values.next_value_seed(Value(flat)))?;
        }
        Ok(())
    }
}
