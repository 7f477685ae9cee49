//! The handle of a connection: sends commands, and waits for their confirmation.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::openclaw;
use super::pending::Receipt;
use crate::outgoing::{Outgoing, SendFailure};

/// The protocol of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Simple,
    OpenClaw,
}

/// A command to a connection.
pub(super) enum Order {
    Send(Outgoing),
    ListChannels,
}

pub(super) struct Command {
    pub order: Order,
    pub receipt: Receipt,
}

#[derive(Clone)]
pub(crate) struct ConnectionHandle {
    pub protocol: Protocol,
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) confirm_within: Duration,
}

impl ConnectionHandle {
    pub async fn send(&self, message: &Outgoing) -> Result<(), SendFailure> {
        self.ask(Order::Send(message.clone())).await.map(drop)
    }

    /// The channels. Only OpenClaw's protocol can list them.
    pub async fn channels(&self) -> Result<Vec<String>, String> {
        let answer = self.ask(Order::ListChannels).await.map_err(|error| error.to_string())?;
        openclaw::channels(&answer)
    }

    async fn ask(&self, order: Order) -> Result<Value, SendFailure> {
        let deadline = Instant::now() + self.confirm_within;
        let (receipt, confirmed) = oneshot::channel();
        match timeout_at(deadline, self.commands.send(Command { order, receipt })).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(SendFailure::NotSent("the connection was lost".to_owned())),
            Err(_) => return Err(SendFailure::NotSent("the gateway accepts no data".to_owned())),
        }
        match timeout_at(deadline, confirmed).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(SendFailure::Unknown("the connection was closed".to_owned())),
            Err(_) => {
                let after = self.confirm_within.as_secs_f32();
                Err(SendFailure::Unknown(format!("the gateway did not confirm it within {after} s")))
            }
        }
    }
}
