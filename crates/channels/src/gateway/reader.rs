//! Reads from a connection: messages, confirmations and pongs.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::SplitStream;
use tokio_tungstenite::tungstenite::Message;

use super::handle::Protocol;
use super::openclaw::Incoming;
use super::shared::{MAX_FRAME_BYTES, SUBSCRIPTION, Shared};
use super::socket::{Socket, reason};
use super::{frames, openclaw};
use crate::message_queue::MessageQueue;
use crate::types::ChannelMessage;

pub(super) struct Reader<'a> {
    pub protocol: Protocol,
    pub shared: Arc<Shared>,
    pub queue: Option<&'a MessageQueue>,
    /// The number of frames that could not be parsed.
    pub skipped: u64,
}

impl Reader<'_> {
    /// Reads until the connection ends. Returns why it ended.
    pub async fn run(&mut self, first: Option<String>, mut stream: SplitStream<Socket>) -> String {
        if let Some(first) = first {
            self.text(&first).await;
        }
        while let Some(frame) = stream.next().await {
            self.shared.mark_activity();
            match frame {
                Ok(Message::Text(text)) => {
                    if let Some(reason) = self.text(&text).await {
                        return reason;
                    }
                }
                Ok(Message::Binary(bytes)) => self.skip(bytes.len(), "it is binary"),
                Ok(Message::Pong(payload)) => {
                    if let Ok(number) = payload.as_ref().try_into() {
                        self.shared.pending.pong(u64::from_be_bytes(number));
                    }
                }
                Ok(Message::Close(Some(frame))) if !frame.reason.is_empty() => {
                    return format!("the gateway closed it: {}", frame.reason);
                }
                Ok(Message::Close(_)) => return "the gateway closed it".to_owned(),
                // The library has already answered a ping.
                Ok(Message::Ping(_) | Message::Frame(_)) => {}
                Err(error) => return reason(&error),
            }
        }
        "it ended".to_owned()
    }

    /// Handles a frame. Returns a reason if the connection is useless.
    async fn text(&mut self, text: &str) -> Option<String> {
        if text.len() > MAX_FRAME_BYTES {
            self.skip(text.len(), "it is too long");
            return None;
        }
        match self.protocol {
            Protocol::Simple => match frames::read(text) {
                Ok(message) => self.receive(message).await,
                Err(reason) => self.skip(text.len(), &reason),
            },
            Protocol::OpenClaw => match openclaw::read(text) {
                Ok(Incoming::Message(message)) => self.receive(*message).await,
                Ok(Incoming::Answer { id, outcome: Err(complaint) }) if id == SUBSCRIPTION => {
                    return Some(format!("the gateway refuses the subscription to messages: {complaint}"));
                }
                Ok(Incoming::Answer { id, outcome }) => self.shared.pending.answer(&id, outcome),
                Ok(Incoming::Challenge | Incoming::Other) => {}
                Err(reason) => self.skip(text.len(), &reason),
            },
        }
        None
    }

    async fn receive(&self, message: ChannelMessage) {
        if let Some(queue) = self.queue {
            queue.accept(message).await;
        }
    }

    /// Skips a frame. Logs at powers of two, so that a broken gateway does not fill the log.
    fn skip(&mut self, bytes: usize, reason: &str) {
        self.skipped += 1;
        if self.skipped.is_power_of_two() {
            tracing::warn!(
                bytes,
                reason,
                skipped = self.skipped,
                "a frame of the gateway is skipped, and its message is lost. Update the gateway if this \
                 repeats"
            );
        }
    }
}
