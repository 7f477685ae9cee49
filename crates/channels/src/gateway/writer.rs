//! Writes to a connection: commands, and the pings that confirm them and detect a lost gateway.

use std::sync::Arc;

use futures::SinkExt;
use futures::stream::SplitSink;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at, timeout};
use tokio_tungstenite::tungstenite::Message;

use super::handle::{Command, Order, Protocol};
use super::shared::{GatewayTimeouts, SUBSCRIPTION, Shared};
use super::socket::{Socket, reason};
use super::{frames, openclaw};
use crate::outgoing::SendFailure;

pub(super) struct Writer {
    pub protocol: Protocol,
    pub shared: Arc<Shared>,
    pub timeouts: GatewayTimeouts,
    /// The number of the last ping or request.
    pub number: u64,
}

pub(super) type Sink = SplitSink<Socket, Message>;

impl Writer {
    /// Writes until the connection ends. Returns why it ended.
    pub async fn run(&mut self, sink: &mut Sink, commands: &mut mpsc::Receiver<Command>) -> String {
        match self.talk(sink, commands).await {
            Ok(never) => match never {},
            Err(reason) => reason,
        }
    }

    async fn talk(
        &mut self,
        sink: &mut Sink,
        commands: &mut mpsc::Receiver<Command>,
    ) -> Result<std::convert::Infallible, String> {
        if self.protocol == Protocol::OpenClaw {
            self.write(sink, Message::text(openclaw::subscribe(SUBSCRIPTION))).await?;
        }
        let mut pings = interval_at(Instant::now() + self.timeouts.ping_every, self.timeouts.ping_every);
        loop {
            tokio::select! {
                command = commands.recv() => match command {
                    Some(command) => self.execute(sink, command).await?,
                    // No caller can send a command anymore, but the gateway can still send messages.
                    None => std::future::pending().await,
                },
                _ = pings.tick() => {
                    let silent_for = self.shared.silent_for();
                    if silent_for >= self.timeouts.silent_for {
                        return Err(format!("the gateway sent nothing for {} s", silent_for.as_secs()));
                    }
                    self.ping(sink).await?;
                }
            }
        }
    }

    async fn execute(&mut self, sink: &mut Sink, Command { order, receipt }: Command) -> Result<(), String> {
        if self.shared.pending.is_full() {
            let _ = receipt.send(Err(SendFailure::NotSent("too many messages are unconfirmed".to_owned())));
            return Ok(());
        }
        self.number += 1;
        let (number, id) = (self.number, self.number.to_string());
        let frame = match (self.protocol, &order) {
            (Protocol::Simple, Order::Send(message)) => Ok(frames::write(message)),
            (Protocol::OpenClaw, Order::Send(message)) => openclaw::send(&id, message),
            (Protocol::OpenClaw, Order::ListChannels) => Ok(openclaw::channels_status(&id)),
            (Protocol::Simple, Order::ListChannels) => {
                Err(SendFailure::Invalid("the simple protocol lists its channels over HTTP".to_owned()))
            }
        };
        let frame = match frame {
            Ok(frame) => frame,
            Err(refused) => {
                let _ = receipt.send(Err(refused));
                return Ok(());
            }
        };
        match self.protocol {
            Protocol::Simple => self.shared.pending.await_pong(number, receipt),
            Protocol::OpenClaw => self.shared.pending.await_answer(id.clone(), receipt),
        }
        let written = timeout(self.timeouts.write_within, sink.send(Message::text(frame))).await;
        match written {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                let reason = reason(&error);
                // A partial frame cannot have been read.
                if let Some(receipt) = self.shared.pending.take_back(number, &id) {
                    let _ = receipt.send(Err(SendFailure::NotSent(reason.clone())));
                }
                return Err(reason);
            }
            Err(_) => return Err(self.write_timeout()),
        }
        match self.protocol {
            Protocol::Simple => self.write(sink, ping(number)).await,
            Protocol::OpenClaw => Ok(()),
        }
    }

    async fn ping(&mut self, sink: &mut Sink) -> Result<(), String> {
        self.number += 1;
        self.write(sink, ping(self.number)).await
    }

    async fn write(&self, sink: &mut Sink, frame: Message) -> Result<(), String> {
        match timeout(self.timeouts.write_within, sink.send(frame)).await {
            Ok(written) => written.map_err(|error| reason(&error)),
            Err(_) => Err(self.write_timeout()),
        }
    }

    fn write_timeout(&self) -> String {
        format!("the gateway read nothing for {} s", self.timeouts.write_within.as_secs_f32())
    }
}

fn ping(number: u64) -> Message {
    Message::Ping(number.to_be_bytes().to_vec().into())
}
