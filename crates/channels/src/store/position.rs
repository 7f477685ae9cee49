//! How far a channel has read, where the service does not remember that.

use hob_db::DatabaseError;

/// Saves one text for each channel.
pub trait PositionStore: Send + Sync {
    /// What was saved last; `None` at first.
    fn position(&self, channel: &str) -> Result<Option<String>, DatabaseError>;

    fn set_position(&self, channel: &str, position: &str) -> Result<(), DatabaseError>;
}
