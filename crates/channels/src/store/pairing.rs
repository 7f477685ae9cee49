//! The senders whom the owner has approved, and those who wait for it.

use std::time::SystemTime;

use hob_core::Moment;
use hob_db::DbResult;

/// Senders of one channel who may wait. Everyone can write, so the others get no code.
pub(super) const MAX_PENDING: i64 = 100;

/// Senders of one channel who are listed.
pub(super) const MAX_LISTED: i64 = 10_000;

/// Stores who is approved. A code is upper case and has no separators.
pub trait PairingStore: Send + Sync {
    fn is_approved(&self, sender: SenderKey<'_>) -> DbResult<bool>;

    /// Saves a code for a sender who has no valid one. Deletes codes that are not valid anymore.
    fn begin_pairing(&self, pairing: NewPairing<'_>, now: SystemTime) -> DbResult<PairingOutcome>;

    /// The senders with a valid code, oldest first.
    fn pending_senders(&self, now: SystemTime) -> DbResult<Vec<PendingSender>>;

    /// Approves the sender who got this code; `None` if it is not valid.
    fn approve_code(&self, code: &str, now: SystemTime) -> DbResult<Option<ApprovedSender>>;

    /// Approves a sender without a code.
    fn approve_sender(&self, sender: SenderKey<'_>, name: &str, now: SystemTime) -> DbResult<()>;

    /// The approved senders, by channel and sender.
    fn approved_senders(&self) -> DbResult<Vec<ApprovedSender>>;

    /// Withdraws an approval; `false` if there is none.
    fn remove_sender(&self, sender: SenderKey<'_>) -> DbResult<bool>;
}

/// A sender of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderKey<'a> {
    pub channel: &'a str,
    pub sender: &'a str,
}

/// A code for a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewPairing<'a> {
    pub sender: SenderKey<'a>,
    /// What the sender calls itself.
    pub name: &'a str,
    pub code: &'a str,
    pub ends: SystemTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairingOutcome {
    /// The code is saved.
    Begun,
    /// The sender has a valid code already.
    Waiting,
    /// Too many senders wait.
    Full,
}

/// A sender who waits for an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingSender {
    pub channel: String,
    pub sender: String,
    pub name: String,
    pub code: String,
    pub ends: Moment,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovedSender {
    pub channel: String,
    pub sender: String,
    pub name: String,
    pub approved: Moment,
}
