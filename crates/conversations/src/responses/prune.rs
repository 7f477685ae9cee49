//! When the limits of what is stored are looked at. Pure: shared by all databases.

use std::sync::{Mutex, PoisonError};

use super::ResponseOwner;
use super::limits::StoredLimits;

/// Responses, or changes of conversations, between two looks at the limits, unless they are large. Looking takes longer than storing
/// one. Each process counts its own: with several, so many times more may be stored for a while.
pub(super) const PRUNE_EVERY: u64 = 32;

/// The part of the limit in bytes that is stored between two looks.
const PRUNED_SHARE: usize = 4;

/// When to look at the limits: by what strangers stored since the last look, and what the owner did.
pub(super) struct PruneSchedule {
    stored: Stored,
    /// `None` before the first look.
    saved: Mutex<[Option<Saved>; 2]>,
}

#[derive(Default)]
struct Saved {
    responses: u64,
    bytes: usize,
}

impl PruneSchedule {
    pub(super) fn of(stored: Stored) -> Self {
        PruneSchedule { stored, saved: Mutex::default() }
    }

    /// Counts something of this size.
    pub(super) fn is_due(&self, owner: &ResponseOwner, bytes: usize) -> bool {
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let [strangers, owners] = &mut *saved;
        let since = if owner.is_owner() { owners } else { strangers };
        let [_, most] = self.stored.most(&StoredLimits::of_all_like(owner));
        let most = usize::try_from(most).unwrap_or(usize::MAX) / PRUNED_SHARE;
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

/// A limit as the databases take it.
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
    pub(super) fn table(self) -> &'static str {
        match self {
            Stored::Responses => "stored_response",
            Stored::Conversations => "stored_conversation",
        }
    }

    /// The most rows, and the most bytes.
    pub(super) fn most(self, limits: &StoredLimits) -> [i64; 2] {
        match self {
            Stored::Responses => [number(limits.responses), number(limits.response_bytes)],
            Stored::Conversations => [number(limits.conversations), number(limits.conversation_bytes)],
        }
    }
}
