//! Responses of the HTTP API, and its conversations, which callers read again and continue by their ids.
//!
//! What is in a response is text here: knows no wire format. Each belongs to a caller, and only that caller finds it. Old ones make room
//! for new ones of the same caller, or of other strangers, within limits. Every call but `save_soon` blocks.

mod buffered;
pub mod limits;
mod prune;
mod store;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hob_core::Moment;
use hob_db::{DbResult, Storage};

pub use buffered::BufferedResponseStore;
pub use store::{PostgresResponseStore, SqliteResponseStore};

/// The responses and conversations in a database. Opens nothing yet.
///
/// In SQLite, a response is written a moment later. In PostgreSQL it is written before its caller gets its end, because the next
/// request may reach another process, which must find it.
pub fn response_store(storage: impl Into<Storage>) -> Arc<dyn ResponseStore> {
    match storage.into() {
        Storage::Sqlite(database) => Arc::new(BufferedResponseStore::new(SqliteResponseStore::new(database))),
        Storage::Postgres(database) => Arc::new(PostgresResponseStore::new(database)),
    }
}

/// The caller that a response belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResponseOwner(String);

const OWNER: &str = "owner";
const MEMBER: &str = "member";
const STRANGER: &str = "stranger";

impl ResponseOwner {
    /// The person whose machine this is.
    pub fn owner() -> Self {
        ResponseOwner(OWNER.to_owned())
    }

    /// A member of the owner's team, by the id of its key.
    pub fn member(key: &str) -> Self {
        ResponseOwner(format!("{MEMBER} {key}"))
    }

    /// A caller without a key who is not the owner, by what distinguishes it from others, such as its address.
    pub fn stranger(name: &str) -> Self {
        ResponseOwner(format!("{STRANGER} {name}"))
    }

    pub fn is_owner(&self) -> bool {
        self.0 == OWNER
    }

    /// Whether the owner gave this caller a key.
    pub fn is_member(&self) -> bool {
        self.0.starts_with(MEMBER)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The first and the last name of the callers that share limits with this one.
    pub(crate) fn all_like(&self) -> [&'static str; 2] {
        match self {
            owner if owner.is_owner() => [OWNER, OWNER],
            member if member.is_member() => [MEMBER, "member~"],
            _ => [STRANGER, "stranger~"],
        }
    }
}

/// A response that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResponse {
    pub id: String,
    /// The response that this one continues.
    pub previous: Option<String>,
    /// The response as JSON.
    pub body: String,
    /// The items that were asked, a JSON array.
    pub input: String,
    /// The lease of a response that is being written.
    pub lease: Option<ResponseLease>,
}

/// How long a response that is being written stays so without a renewal.
pub const RESPONSE_LEASE: Duration = Duration::from_secs(60);

/// Whether a process still writes a response. By the clock of the database, because those of several processes may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseLease {
    /// For up to [`RESPONSE_LEASE`] from the moment when it is written to the database or renewed.
    Held,
    /// The process has ended before the response was complete.
    Expired,
}

impl ResponseLease {
    /// How long it lasts from now on, in microseconds.
    fn microseconds(self) -> i64 {
        match self {
            ResponseLease::Held => i64::try_from(RESPONSE_LEASE.as_micros()).unwrap_or(i64::MAX),
            ResponseLease::Expired => 0,
        }
    }

    fn read(is_held: bool) -> Self {
        if is_held { ResponseLease::Held } else { ResponseLease::Expired }
    }
}

/// An item of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationItem {
    pub id: String,
    /// The item as JSON.
    pub item: String,
}

/// A conversation of the HTTP API, without its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredConversation {
    pub id: String,
    pub created: Moment,
    /// JSON.
    pub metadata: String,
}

/// The items that a response adds to a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationAppend {
    pub conversation: String,
    pub items: Vec<ConversationItem>,
}

/// A response and those that it continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseChain {
    /// Oldest first; the response itself is the last.
    Whole(Vec<StoredResponse>),
    /// This one is not stored, or not any more.
    Missing(String),
    /// It continues more responses than `limits::MAX_CHAIN`, or larger ones than `limits::MAX_CHAIN_BYTES`.
    TooLong,
}

/// Whether items were added to a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appended {
    Yes,
    NoSuchConversation,
    /// The conversation has no room for them.
    Full,
    /// The conversation has an item of this id already, or the new items have it twice.
    IdTaken(String),
}

/// Which items of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemPage {
    /// The id of the item before the first one.
    pub after: Option<String>,
    pub limit: usize,
    pub order: ItemOrder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemOrder {
    OldestFirst,
    NewestFirst,
}

impl ItemPage {
    /// All items, oldest first.
    pub const ALL: ItemPage = ItemPage { after: None, limit: usize::MAX, order: ItemOrder::OldestFirst };
}

/// Items that were looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundItems {
    Items {
        items: Vec<ConversationItem>,
        /// Whether further ones follow.
        has_more: bool,
    },
    NoSuchConversation,
    /// `ItemPage::after` is not an item of the conversation.
    NothingAfter,
}

/// Stores responses and conversations.
pub trait ResponseStore: Send + Sync {
    /// Stores a new response without blocking: it is found at once, and on the disk a moment later. Gives it back if it must be
    /// stored with `save`.
    fn save_soon(
        &self,
        owner: &ResponseOwner,
        response: StoredResponse,
        now: SystemTime,
    ) -> Result<(), StoredResponse> {
        let _ = (owner, now);
        Err(response)
    }

    /// Fails if the database was away when it was last used. Asks nothing, so it is fast.
    fn check_known_state(&self) -> DbResult<()> {
        Ok(())
    }

    /// Writes what waits to be written.
    fn flush(&self) -> DbResult<()> {
        Ok(())
    }

    /// Stores a response, or replaces the one of its id, and adds what it says to a conversation. The response is stored also if
    /// the conversation takes nothing.
    fn save(
        &self,
        owner: &ResponseOwner,
        response: &StoredResponse,
        append: Option<&ConversationAppend>,
        now: SystemTime,
    ) -> DbResult<Appended>;

    /// The same for a response that is being written; `None` if it was deleted or ended meanwhile.
    fn update(
        &self,
        owner: &ResponseOwner,
        response: &StoredResponse,
        append: Option<&ConversationAppend>,
        now: SystemTime,
    ) -> DbResult<Option<Appended>>;

    /// Extends the lease of a response that is being written; `false` if it was deleted or ended meanwhile.
    fn renew(&self, owner: &ResponseOwner, id: &str) -> DbResult<bool>;

    fn find(&self, owner: &ResponseOwner, id: &str) -> DbResult<Option<StoredResponse>>;

    /// A response with all that it continues. Counts as a use of each of them.
    fn chain(&self, owner: &ResponseOwner, id: &str, now: SystemTime) -> DbResult<ResponseChain>;

    /// Deletes a response; `false` when there is none.
    fn delete(&self, owner: &ResponseOwner, id: &str) -> DbResult<bool>;

    /// Begins a conversation without items.
    fn create_conversation(&self, owner: &ResponseOwner, conversation: &StoredConversation) -> DbResult<()>;

    fn conversation(&self, owner: &ResponseOwner, id: &str) -> DbResult<Option<StoredConversation>>;

    /// Replaces the metadata; `false` when there is no such conversation.
    fn set_metadata(&self, owner: &ResponseOwner, id: &str, metadata: &str) -> DbResult<bool>;

    /// Deletes a conversation and its items; `false` when there is none.
    fn delete_conversation(&self, owner: &ResponseOwner, id: &str) -> DbResult<bool>;

    /// Items of a conversation. Counts as a use of it.
    fn items(
        &self,
        owner: &ResponseOwner,
        id: &str,
        page: &ItemPage,
        now: SystemTime,
    ) -> DbResult<FoundItems>;

    fn item(&self, owner: &ResponseOwner, id: &str, item: &str) -> DbResult<Option<ConversationItem>>;

    /// Adds items at the end of a conversation: all of them or none.
    fn append(
        &self,
        owner: &ResponseOwner,
        append: &ConversationAppend,
        now: SystemTime,
    ) -> DbResult<Appended>;

    /// Deletes an item; `false` when there is no such item or conversation.
    fn delete_item(&self, owner: &ResponseOwner, id: &str, item: &str) -> DbResult<bool>;
}

#[cfg(test)]
mod tests;
