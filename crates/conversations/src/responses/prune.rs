//! Keeps what is stored within its limits, which are looked at now and then.

use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use hob_core::Moment;
use rusqlite::{Transaction, params};

use super::ResponseOwner;
use super::limits::StoredLimits;

/// Responses that are stored between two looks at the limits, unless they are large. Looking takes longer than storing a response.
pub(super) const PRUNE_EVERY: u64 = 32;

/// The part of the limit in bytes that is stored between two looks.
const PRUNED_SHARE: usize = 4;

/// When to look at the limits of responses: by what strangers stored since the last look, and what the owner did.
#[derive(Default)]
pub(super) struct PruneSchedule {
    /// `None` before the first look.
    saved: Mutex<[Option<Saved>; 2]>,
}

#[derive(Default)]
struct Saved {
    responses: u64,
    bytes: usize,
}

impl PruneSchedule {
    /// Counts a response of this size.
    pub(super) fn is_due(&self, owner: &ResponseOwner, bytes: usize) -> bool {
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let [strangers, owners] = &mut *saved;
        let since = if owner.is_owner() { owners } else { strangers };
        let most = StoredLimits::of_all_like(owner).response_bytes / PRUNED_SHARE;
        match since {
            Some(Saved { responses, bytes: so_far })
                if *responses + 1 < PRUNE_EVERY && *so_far + bytes <= most =>
            {
                *responses += 1;
                *so_far += bytes;
                false
            }
            _ => {
                *since = Some(Saved::default());
                true
            }
        }
    }
}

/// A limit as SQLite takes it.
pub(super) fn number(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// What is stored within limits.
#[derive(Clone, Copy)]
pub(super) enum Stored {
    Responses,
    Conversations,
}

impl Stored {
    fn table(self) -> &'static str {
        match self {
            Stored::Responses => "stored_response",
            Stored::Conversations => "stored_conversation",
        }
    }

    /// The most rows, and the most bytes.
    fn most(self, limits: &StoredLimits) -> [i64; 2] {
        match self {
            Stored::Responses => [number(limits.responses), number(limits.response_bytes)],
            Stored::Conversations => [number(limits.conversations), number(limits.conversation_bytes)],
        }
    }
}

/// Deletes what is beyond the limits of a caller, and of all callers like it: what was not used for the longest time goes first.
pub(super) fn prune(
    transaction: &Transaction<'_>,
    stored: Stored,
    owner: &ResponseOwner,
    newest: &str,
    now: SystemTime,
) -> rusqlite::Result<()> {
    let (limits, all) = (StoredLimits::of(owner), StoredLimits::of_all_like(owner));
    let oldest = now.checked_sub(limits.age).map_or(0, |oldest| Moment::of(oldest).microseconds());
    let ([rows, bytes], [all_rows, all_bytes]) = (stored.most(&limits), stored.most(&all));
    let [first, last] = owner.all_like();
    let table = stored.table();
    transaction
        .prepare_cached(&format!(
            "DELETE FROM {table} WHERE owner BETWEEN ?1 AND ?2 AND id <> ?3 AND (last_used < ?4 OR rowid IN (
                SELECT rowid FROM (
                    SELECT rowid,
                        row_number() OVER own AS place,
                        sum(bytes) OVER own AS total,
                        row_number() OVER every AS place_of_all,
                        sum(bytes) OVER every AS total_of_all
                    FROM {table} WHERE owner BETWEEN ?1 AND ?2
                    WINDOW own AS (PARTITION BY owner ORDER BY last_used DESC, rowid DESC),
                        every AS (ORDER BY last_used DESC, rowid DESC))
                WHERE place > ?5 OR total > ?6 OR place_of_all > ?7 OR total_of_all > ?8))"
        ))?
        .execute(params![first, last, newest, oldest, rows, bytes, all_rows, all_bytes])
        .map(drop)
}
