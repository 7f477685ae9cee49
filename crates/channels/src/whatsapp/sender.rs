//! Sends messages to the subprocess, and waits for the results.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::event::Order;
use super::jid::{CHANNEL, is_jid};
use super::mention::MentionRule;
use crate::outgoing::{MessageSender, NO_RECIPIENT, Outgoing, SendFailure};
use crate::status::StatusCell;
use crate::types::ChannelStatus;

/// Orders that may wait for the subprocess.
const WAITING_ORDERS: usize = 64;

/// Messages that may wait for their result.
const MOST_PENDING: usize = 256;

/// The number of own messages that are remembered, to distinguish them from those of the owner.
const REMEMBERED: usize = 64;

type Receipt = oneshot::Sender<Result<(), SendFailure>>;

pub(crate) struct WhatsappSender {
    mention_rule: MentionRule,
    status: StatusCell,
    confirm_within: Duration,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    orders: Option<mpsc::Sender<Order>>,
    pending: HashMap<String, Receipt>,
    said: VecDeque<String>,
    number: u64,
}

impl WhatsappSender {
    pub fn new(mention_rule: MentionRule, status: StatusCell, confirm_within: Duration) -> Self {
        WhatsappSender { mention_rule, status, confirm_within, held: Mutex::default() }
    }

    /// A subprocess has started. Returns the orders for it.
    pub fn attach(&self) -> mpsc::Receiver<Order> {
        let (sender, receiver) = mpsc::channel(WAITING_ORDERS);
        self.held.lock().orders = Some(sender);
        receiver
    }

    /// The subprocess has ended. The result of its messages is unknown.
    pub fn detach(&self) {
        let pending = {
            let mut held = self.held.lock();
            held.orders = None;
            std::mem::take(&mut held.pending)
        };
        for receipt in pending.into_values() {
            // The caller may have given up.
            let _ = receipt.send(Err(SendFailure::Unknown("the WhatsApp bridge ended".to_owned())));
        }
    }

    pub fn sent(&self, id: &str) {
        self.settle(id, Ok(()));
    }

    pub fn failed(&self, id: &str, message: String, unsent: bool) {
        self.settle(
            id,
            Err(if unsent { SendFailure::NotSent(message) } else { SendFailure::Unknown(message) }),
        );
    }

    /// Whether Hob sent this text recently.
    pub fn sent_recently(&self, text: &str) -> bool {
        self.held.lock().said.iter().any(|said| said == text)
    }

    fn settle(&self, id: &str, outcome: Result<(), SendFailure>) {
        let receipt = self.held.lock().pending.remove(id);
        if let Some(receipt) = receipt {
            let _ = receipt.send(outcome);
        }
    }

    /// Registers a message. Returns its id and the channel for orders.
    fn enter(&self, text: &str, receipt: Receipt) -> Result<(String, mpsc::Sender<Order>), SendFailure> {
        let mut held = self.held.lock();
        let Some(orders) = held.orders.clone() else {
            return Err(SendFailure::NotSent(
                "the WhatsApp bridge does not run. Start it with 'hob serve'".to_owned(),
            ));
        };
        if held.pending.len() >= MOST_PENDING {
            return Err(SendFailure::NotSent("too many messages wait for their result".to_owned()));
        }
        held.number += 1;
        let id = held.number.to_string();
        held.pending.insert(id.clone(), receipt);
        if held.said.len() == REMEMBERED {
            held.said.pop_front();
        }
        held.said.push_back(text.to_owned());
        Ok((id, orders))
    }
}

fn recipient<'a>(channel: &'a str, conversation_id: Option<&'a str>) -> Result<&'a str, SendFailure> {
    let jid = match channel {
        CHANNEL => conversation_id.unwrap_or_default(),
        jid => jid,
    };
    if is_jid(jid) {
        return Ok(jid);
    }
    let problem = match jid {
        "" => NO_RECIPIENT.to_owned(),
        jid => format!("'{jid}' is not a WhatsApp address"),
    };
    Err(SendFailure::Invalid(format!(
        "{problem}. Write COUNTRYCODE+NUMBER@s.whatsapp.net for a person (such as 4915112345678@s.whatsapp.net), or \
         GROUP@g.us"
    )))
}

#[async_trait]
impl MessageSender for WhatsappSender {
    async fn deliver(&self, message: &Outgoing) -> Result<(), SendFailure> {
        let jid = recipient(&message.channel, message.conversation_id.as_deref())?.to_owned();
        if self.status.get().status != ChannelStatus::Connected {
            return Err(SendFailure::NotSent("WhatsApp is not connected".to_owned()));
        }
        let text = self.mention_rule.answer(&message.content);
        let (receipt, settled) = oneshot::channel();
        let (id, orders) = self.enter(&text, receipt)?;
        let sending = async {
            let order = Order::Send { id: id.clone(), jid, text };
            if orders.send(order).await.is_err() {
                return Err(SendFailure::NotSent("the WhatsApp bridge ended".to_owned()));
            }
            settled
                .await
                .unwrap_or_else(|_| Err(SendFailure::Unknown("the WhatsApp bridge ended".to_owned())))
        };
        let outcome = timeout(self.confirm_within, sending).await.unwrap_or_else(|_| {
            let after = self.confirm_within.as_secs_f32();
            Err(SendFailure::Unknown(format!("WhatsApp did not confirm it within {after} s")))
        });
        self.held.lock().pending.remove(&id);
        outcome
    }

    async fn channels(&self) -> Result<Vec<String>, String> {
        Ok(vec![CHANNEL.to_owned()])
    }

    fn check_recipient(&self, channel: &str, conversation_id: Option<&str>) -> Result<(), SendFailure> {
        recipient(channel, conversation_id).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(channel: &str, conversation_id: Option<&str>) -> Result<String, SendFailure> {
        recipient(channel, conversation_id).map(str::to_owned)
    }

    #[test]
    fn the_address_is_the_channel_itself_or_the_conversation() {
        let ann = "4915112345678@s.whatsapp.net";
        assert_eq!(to(ann, None).as_deref(), Ok(ann));
        assert_eq!(to("whatsapp", Some(ann)).as_deref(), Ok(ann));
        for (channel, conversation) in
            [("whatsapp", None), ("whatsapp", Some("Ann")), ("4915112345678", None)]
        {
            assert!(matches!(to(channel, conversation), Err(SendFailure::Invalid(_))), "{channel}");
        }
    }
}
