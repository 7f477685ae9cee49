//! All calls as a stream with constant memory.

use std::sync::Arc;

use hob_core::UtcDay;
use hob_db::DbResult;

use crate::call_record::CallRecord;
use crate::store::{ExportPage, ExportPosition, TelemetryStore};

/// Calls that may wait for calls that started earlier.
const MAX_HELD: usize = 16 * 1024;

/// Every call at the time of the first read, oldest first. Reads some pages at a time without a lock in between, so that a slow
/// reader does not block writes. Ends after its first error.
///
/// Pages overlap, because calls are recorded when they end: a call waits until no later page begins before it. Beyond `MAX_HELD`
/// calls, some come too early.
pub struct CallExport {
    store: Arc<dyn TelemetryStore>,
    position: ExportPosition,
    held: Vec<CallRecord>,
    ready: std::vec::IntoIter<CallRecord>,
    state: ExportState,
}

#[derive(PartialEq, Eq)]
enum ExportState {
    More,
    Over,
}

impl CallExport {
    /// Calls from the day `since`, or all.
    pub fn new(store: Arc<dyn TelemetryStore>, since: Option<UtcDay>) -> Self {
        CallExport {
            store,
            position: ExportPosition::before(since),
            held: Vec::new(),
            ready: Vec::new().into_iter(),
            state: ExportState::More,
        }
    }

    fn fetch(&mut self) -> DbResult<()> {
        let ExportPage { calls, position, next } = self.store.page_after(self.position)?;
        self.position = position;
        self.held.extend(calls);
        // A stable sort, fast on nearly sorted data.
        self.held.sort_by_key(|call| call.started);
        let ready = match next {
            Some(next) if self.held.len() <= MAX_HELD => {
                self.held.partition_point(|call| call.started <= next)
            }
            Some(_) => self.held.len(),
            None => {
                self.state = ExportState::Over;
                self.held.len()
            }
        };
        let rest = self.held.split_off(ready);
        self.ready = std::mem::replace(&mut self.held, rest).into_iter();
        Ok(())
    }
}

impl Iterator for CallExport {
    type Item = DbResult<CallRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.len() == 0 && self.state == ExportState::More {
            if let Err(error) = self.fetch() {
                self.state = ExportState::Over;
                return Some(Err(error));
            }
        }
        self.ready.next().map(Ok)
    }
}

#[cfg(test)]
#[path = "export_tests.rs"]
mod tests;
