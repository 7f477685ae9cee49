//! Delivers the results of tasks. Knows no channel.

use async_trait::async_trait;
use thiserror::Error;

use crate::task::DeliverTo;

/// Sends the results of tasks to the targets that they name.
#[async_trait]
pub trait Deliver: Send + Sync {
    /// The target as a task saves it, with its recipient. Refuses one that does not exist. A target that cannot be checked now is
    /// accepted.
    async fn check(&self, to: DeliverTo) -> Result<DeliverTo, DeliverError>;

    /// Sends a result.
    async fn deliver(&self, text: &str, to: &DeliverTo) -> Result<(), DeliverError>;
}

/// Why a result cannot be delivered, for the log of its task.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct DeliverError(pub String);

/// Delivers nothing.
pub struct NoDelivery;

#[async_trait]
impl Deliver for NoDelivery {
    async fn check(&self, to: DeliverTo) -> Result<DeliverTo, DeliverError> {
        let shown: String = to.channel.chars().take(60).collect();
        Err(DeliverError(format!("there is no channel '{shown}'")))
    }

    async fn deliver(&self, _text: &str, to: &DeliverTo) -> Result<(), DeliverError> {
        self.check(to.clone()).await.map(drop)
    }
}
