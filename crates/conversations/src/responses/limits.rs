//! How many responses and conversations are stored, and for how long. Each caller has limits of its own, so that no single caller can
//! displace what others stored.

use std::time::Duration;

use super::ResponseOwner;

/// Bytes of one response with its input. A larger one is not stored.
pub const MAX_RESPONSE_BYTES: usize = 16 << 20;

/// Responses that a response may continue, one after the other.
pub const MAX_CHAIN: usize = 1_000;

/// Bytes of a response with all that it continues.
pub const MAX_CHAIN_BYTES: usize = 64 << 20;

/// Items of a conversation.
pub const MAX_CONVERSATION_ITEMS: usize = 10_000;

/// Bytes of the items of a conversation.
pub const MAX_CONVERSATION_BYTES: usize = 16 << 20;

/// What one caller may have stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredLimits {
    pub responses: usize,
    /// Of all responses.
    pub response_bytes: usize,
    pub conversations: usize,
    /// Of all conversations.
    pub conversation_bytes: usize,
    /// After the last use.
    pub age: Duration,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

const OWNER: StoredLimits = StoredLimits {
    responses: 10_000,
    response_bytes: 256 << 20,
    conversations: 2_000,
    conversation_bytes: 256 << 20,
    age: DAY.saturating_mul(30),
};

/// All members together.
const MEMBERS: StoredLimits = StoredLimits {
    responses: OWNER.responses * 4,
    response_bytes: OWNER.response_bytes * 4,
    conversations: OWNER.conversations * 4,
    conversation_bytes: OWNER.conversation_bytes * 4,
    age: OWNER.age,
};

/// One member: a quarter of the owner's, so that a team fits.
const MEMBER: StoredLimits = StoredLimits {
    responses: OWNER.responses / 4,
    response_bytes: OWNER.response_bytes / 4,
    conversations: OWNER.conversations / 4,
    conversation_bytes: OWNER.conversation_bytes / 4,
    age: OWNER.age,
};

/// All strangers together.
const STRANGERS: StoredLimits = StoredLimits {
    responses: 1_000,
    response_bytes: 32 << 20,
    conversations: 200,
    conversation_bytes: 32 << 20,
    age: DAY,
};

/// One of them: a quarter, so that it takes several to displace what the others stored.
const STRANGER: StoredLimits = StoredLimits {
    responses: STRANGERS.responses / 4,
    response_bytes: STRANGERS.response_bytes / 4,
    conversations: STRANGERS.conversations / 4,
    conversation_bytes: STRANGERS.conversation_bytes / 4,
    age: DAY,
};

impl StoredLimits {
    pub fn of(owner: &ResponseOwner) -> Self {
        match owner {
            owner if owner.is_owner() => OWNER,
            member if member.is_member() => MEMBER,
            _ => STRANGER,
        }
    }

    /// Of all callers of this kind.
    pub fn of_all_like(owner: &ResponseOwner) -> Self {
        match owner {
            owner if owner.is_owner() => OWNER,
            member if member.is_member() => MEMBERS,
            _ => STRANGERS,
        }
    }
}
