//! Which calls a table shows, newest first, and where its next page begins. Pure.

use hob_core::Moment;
use serde::Serialize;

use crate::call_record::{CallOutcome, CallRecord};

/// The most calls of a page.
pub const MAX_CALL_PAGE: usize = 200;

/// Calls that are read for one page. A search that finds fewer matches among them continues with the next page.
pub(crate) const MAX_READ_CALLS: usize = 100_000;

/// The calls that are wanted. What is `None` does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallQuery {
    pub outcome: Option<CallOutcome>,
    pub model: Option<String>,
    /// The name of the key that paid; empty for calls without a named key.
    pub key: Option<String>,
    /// The id of the request, or of the run.
    pub request: Option<String>,
    /// `None` begins with the newest call.
    pub after: Option<CallCursor>,
    /// At most [`MAX_CALL_PAGE`].
    pub limit: usize,
}

/// The position before the next page. Several calls can begin in the same microsecond, so it also counts those.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallCursor {
    /// No later call is on the next page.
    pub(crate) started: Moment,
    /// Calls of that moment that are on earlier pages.
    pub(crate) seen: usize,
}

/// Some calls, newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct CallPage {
    pub calls: Vec<CallRecord>,
    /// `None` after the last page. A page with a cursor can be empty: then a search has only begun.
    pub next: Option<CallCursor>,
}

impl CallQuery {
    pub(crate) fn limit(&self) -> usize {
        self.limit.clamp(1, MAX_CALL_PAGE)
    }

    /// The latest start, in microseconds, and the calls of that moment to skip.
    pub(crate) fn begin(&self) -> (i64, usize) {
        self.after.map_or((i64::MAX, 0), |cursor| (cursor.started.microseconds(), cursor.seen))
    }
}

impl CallPage {
    /// A page of calls that are sorted by their start, newest first, from the moment where the query begins. `found` has at least one
    /// call more than the page where there are more.
    pub(crate) fn of(query: &CallQuery, mut found: Vec<CallRecord>) -> Self {
        let (begin, seen) = query.begin();
        let skipped = found.iter().take(seen).take_while(|call| call.started.microseconds() == begin).count();
        let has_more = found.len() > skipped + query.limit();
        found.truncate(skipped + query.limit());
        let next = found.last().filter(|_| has_more).map(|last| CallCursor {
            started: last.started,
            seen: found.iter().filter(|call| call.started == last.started).count(),
        });
        found.drain(..skipped);
        CallPage { calls: found, next }
    }
}

impl CallCursor {
    /// The cursor that this text is; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let (started, seen) = text.split_once('.')?;
        let started = Moment::from_microseconds(started.parse().ok()?);
        Some(CallCursor { started, seen: seen.parse().ok().filter(|seen| *seen <= MAX_SEEN)? })
    }
}

/// No clock gives more calls the same microsecond.
const MAX_SEEN: usize = 10_000;

impl Serialize for CallCursor {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}.{}", self.started.microseconds(), self.seen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        let cursor = CallCursor { started: Moment::from_microseconds(1_794_744_000_000_001), seen: 3 };
        let text = serde_json::to_value(cursor).expect("written");
        assert_eq!(text, "1794744000000001.3");
        assert_eq!(CallCursor::parse("1794744000000001.3"), Some(cursor));
        for wrong in ["", "1", "1.", ".1", "a.1", "1.a", "1.-1", "1.99999999999", "1.2.3"] {
            assert_eq!(CallCursor::parse(wrong), None, "{wrong}");
        }
    }
}
