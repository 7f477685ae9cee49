//! One connection to the gateway: protocol detection, authentication, and the exchange of frames.

use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use secrecy::SecretString;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;

use super::address::Address;
use super::handle::{Command, ConnectionHandle, Protocol};
use super::openclaw::{self, Incoming};
use super::reader::Reader;
use super::shared::{GatewayTimeouts, MAX_FRAME_BYTES, Shared};
use super::socket::{Socket, open, reason};
use super::writer::Writer;
use crate::message_queue::MessageQueue;
use crate::outgoing::SendFailure;

/// Commands that may wait for the socket.
const WAITING_COMMANDS: usize = 64;

pub(crate) struct Connection {
    socket: Socket,
    protocol: Protocol,
    /// The frame that arrived while the protocol was detected.
    first: Option<String>,
    timeouts: GatewayTimeouts,
    commands: (mpsc::Sender<Command>, mpsc::Receiver<Command>),
}

impl Connection {
    /// Opens the socket, detects the protocol and authenticates if the gateway asks for it.
    pub async fn open(
        address: &Address,
        token: Option<&SecretString>,
        timeouts: GatewayTimeouts,
    ) -> Result<Self, String> {
        let mut socket = open(address, token, timeouts.open_within).await?;
        let first = match timeout(timeouts.detect_within, first_text(&mut socket)).await {
            Ok(first) => Some(first?),
            Err(_) => None,
        };
        let is_openclaw = first.as_deref().is_some_and(openclaw::is_challenge);
        let (protocol, first) = if is_openclaw {
            match timeout(timeouts.open_within, introduce(&mut socket, token)).await {
                Ok(introduced) => introduced?,
                Err(_) => return Err("it did not answer the authentication".to_owned()),
            }
            (Protocol::OpenClaw, None)
        } else {
            (Protocol::Simple, first)
        };
        Ok(Connection { socket, protocol, first, timeouts, commands: mpsc::channel(WAITING_COMMANDS) })
    }

    pub fn handle(&self) -> ConnectionHandle {
        ConnectionHandle {
            protocol: self.protocol,
            commands: self.commands.0.clone(),
            confirm_within: self.timeouts.confirm_within,
        }
    }

    /// Passes on messages until the connection ends. Returns why it ended. Without a message queue, messages are ignored.
    pub async fn run(self, queue: Option<&MessageQueue>, stop: &CancellationToken) -> String {
        let Connection { socket, protocol, first, timeouts, commands: (sender, mut commands) } = self;
        // Only the handles keep the command channel open.
        drop(sender);
        let (mut sink, stream) = socket.split();
        let shared = Arc::new(Shared::new());
        let mut reader = Reader { protocol, shared: Arc::clone(&shared), queue, skipped: 0 };
        let mut writer = Writer { protocol, shared: Arc::clone(&shared), timeouts, number: 0 };
        let reason = tokio::select! {
            reason = reader.run(first, stream) => reason,
            reason = writer.run(&mut sink, &mut commands) => reason,
            () = stop.cancelled() => {
                // A close frame is polite, but not worth a long wait.
                let _ = timeout(Duration::from_secs(1), sink.close()).await;
                "it was stopped".to_owned()
            }
        };
        commands.close();
        while let Ok(command) = commands.try_recv() {
            let _ = command.receipt.send(Err(SendFailure::NotSent(reason.clone())));
        }
        shared.pending.abandon(&reason);
        reason
    }
}

/// The first text frame.
async fn first_text(socket: &mut Socket) -> Result<String, String> {
    while let Some(frame) = socket.next().await {
        match frame {
            Ok(Message::Text(text)) if text.len() <= MAX_FRAME_BYTES => return Ok(text.to_string()),
            Ok(Message::Close(_)) => break,
            Ok(_) => {}
            Err(error) => return Err(reason(&error)),
        }
    }
    Err("it closed the connection".to_owned())
}

async fn introduce(socket: &mut Socket, token: Option<&SecretString>) -> Result<(), String> {
    let id = "connect";
    socket.send(Message::text(openclaw::connect(id, token))).await.map_err(|error| reason(&error))?;
    loop {
        let text = first_text(socket).await?;
        if let Ok(Incoming::Answer { id: answered, outcome }) = openclaw::read(&text)
            && answered == id
        {
            return outcome.map(drop).map_err(|complaint| {
                let advice = if token.is_none() { "; set [channel] token" } else { "" };
                format!("it refused the connection: {complaint}{advice}")
            });
        }
    }
}
