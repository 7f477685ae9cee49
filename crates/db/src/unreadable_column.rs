//! A stored value that cannot be read, whichever database it is in.

use std::error::Error;

use thiserror::Error;

/// A stored value that does not mean anything.
#[derive(Debug, Error)]
#[error("the column '{column}' cannot be read: {source}")]
pub struct UnreadableColumn {
    pub column: &'static str,
    source: Box<dyn Error + Send + Sync>,
}

impl UnreadableColumn {
    pub fn new(column: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        UnreadableColumn { column, source: source.into() }
    }
}
