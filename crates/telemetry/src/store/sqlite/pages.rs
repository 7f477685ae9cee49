//! Writes pages: one row for up to 2,048 inferences of one day.

use hob_core::time::Moment;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Transaction, params};

use crate::entry::Entry;
use crate::packed::pack;

/// Inferences of a page. Reading one of them reads the whole page.
pub(crate) const MAX_INFERENCES: usize = 2048;

/// The size after which a page is full, because errors may be long.
const MAX_BYTES: usize = 1 << 20;

/// The usual bytes of an inference.
const USUAL: usize = 128;

const INSERT: &str = "
    INSERT INTO telemetry_page (first_started, last_started, count, inferences) VALUES (?1, ?2, ?3, ?4)";

/// The current page; earlier ones are written.
pub(super) struct Pages<'t> {
    insert: CachedStatement<'t>,
    text: Vec<u8>,
    span: Option<Span>,
}

struct Span {
    first: Moment,
    last: Moment,
    count: usize,
}

impl<'t> Pages<'t> {
    /// For about this many inferences.
    pub(super) fn new(transaction: &'t Transaction<'_>, inferences: usize) -> rusqlite::Result<Self> {
        let text = Vec::with_capacity(inferences.min(MAX_INFERENCES) * USUAL);
        Ok(Pages { insert: transaction.prepare_cached(INSERT)?, text, span: None })
    }

    /// Must be called in the order of the starts.
    pub(super) fn add(&mut self, series: i64, entry: &Entry<'_>) -> rusqlite::Result<()> {
        if self.is_closed_to(entry) {
            self.write()?;
        }
        self.text.push(if self.span.is_none() { b'[' } else { b',' });
        pack(series, entry, &mut self.text)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        let span = self.span.get_or_insert(Span { first: entry.started, last: entry.started, count: 0 });
        span.last = entry.started;
        span.count += 1;
        Ok(())
    }

    pub(super) fn finish(mut self) -> rusqlite::Result<()> {
        self.write()
    }

    fn is_closed_to(&self, entry: &Entry<'_>) -> bool {
        self.span.as_ref().is_some_and(|span| {
            span.count >= MAX_INFERENCES
                || self.text.len() >= MAX_BYTES
                || span.first.day() != entry.started.day()
        })
    }

    fn write(&mut self) -> rusqlite::Result<()> {
        let Some(span) = self.span.take() else { return Ok(()) };
        self.text.push(b']');
        let (first, last) = (span.first.microseconds(), span.last.microseconds());
        let text = ToSqlOutput::Borrowed(ValueRef::Text(&self.text));
        self.insert.execute(params![first, last, span.count as i64, text])?;
        self.text.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use hob_db::Database;

    use super::*;
    use crate::inference::{Inference, InferenceEnd};
    use crate::savings::Prices;
    use crate::store::sqlite::MIGRATIONS;
    use crate::store::tests::{DAY, inference, noon, rows};
    use crate::store::{SqliteTelemetryStore, TelemetryStore};

    fn telemetry() -> SqliteTelemetryStore {
        SqliteTelemetryStore::new(Database::in_memory(&[MIGRATIONS]).expect("opened"))
    }

    /// How many inferences each page has, and its bytes.
    fn pages(telemetry: &SqliteTelemetryStore) -> Vec<(usize, usize)> {
        let read =
            |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)? as usize, row.get::<_, i64>(1)? as usize));
        let found = telemetry.database.read(|connection| {
            let mut statement = connection
                .prepare("SELECT count, octet_length(inferences) FROM telemetry_page ORDER BY id")?;
            statement.query_map([], read)?.collect()
        });
        found.expect("readable")
    }

    #[test]
    fn a_page_has_one_day_and_a_limited_size() {
        let telemetry = telemetry();
        let began = |time| Inference { started: time, ..inference() };
        let mut batch = vec![began(noon()), began(noon() - DAY), began(noon() + DAY)];
        batch.extend((0..MAX_INFERENCES as u64).map(|number| began(noon() + Duration::from_millis(number))));
        telemetry.record_batch(&batch, &Prices::standard()).expect("recorded");
        let counts: Vec<usize> = pages(&telemetry).into_iter().map(|(count, _)| count).collect();
        assert_eq!(counts, [1, MAX_INFERENCES, 1, 1]);
        let store: Arc<dyn TelemetryStore> = Arc::new(telemetry);
        assert_eq!(rows(&store).len(), MAX_INFERENCES + 3);
    }

    #[test]
    fn long_errors_do_not_make_a_huge_page() {
        let telemetry = telemetry();
        // A control character is six in JSON.
        let failed = Inference { ending: InferenceEnd::Failed("\u{1}".repeat(2000)), ..inference() };
        telemetry.record_batch(&vec![failed; 200], &Prices::standard()).expect("recorded");
        let pages = pages(&telemetry);
        assert!(pages.len() > 1);
        assert!(pages.iter().all(|(_, bytes)| *bytes < MAX_BYTES + 16 * 1024), "{pages:?}");
    }
}
