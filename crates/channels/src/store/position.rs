//! How far a channel has read, where the service does not remember that.

use hob_db::DbResult;

/// Saves one text for each channel.
pub trait PositionStore: Send + Sync {
    /// What was saved last; `None` at first.
    fn position(&self, channel: &str) -> DbResult<Option<String>>;

    fn set_position(&self, channel: &str, position: &str) -> DbResult<()>;
}
