//! Messages that were sent and wait for their confirmation.

use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::outgoing::SendFailure;

/// A gateway with more unconfirmed frames does not answer.
pub(crate) const MOST_PENDING: usize = 1_024;

pub(crate) type Receipt = oneshot::Sender<Result<Value, SendFailure>>;

/// Unconfirmed messages. In the simple protocol, the pong to a ping that followed a message confirms it: a gateway that has read
/// the ping has read everything before it. OpenClaw answers each request.
#[derive(Default)]
pub(crate) struct Pending {
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    by_ping: BTreeMap<u64, Receipt>,
    by_id: HashMap<String, Receipt>,
}

impl Held {
    fn len(&self) -> usize {
        self.by_ping.len() + self.by_id.len()
    }
}

impl Pending {
    pub fn is_full(&self) -> bool {
        let mut held = self.held.lock();
        if held.len() >= MOST_PENDING {
            // Callers that no longer wait need no entry.
            held.by_ping.retain(|_, receipt| !receipt.is_closed());
            held.by_id.retain(|_, receipt| !receipt.is_closed());
        }
        held.len() >= MOST_PENDING
    }

    pub fn await_pong(&self, number: u64, receipt: Receipt) {
        self.held.lock().by_ping.insert(number, receipt);
    }

    pub fn await_answer(&self, id: String, receipt: Receipt) {
        self.held.lock().by_id.insert(id, receipt);
    }

    /// The gateway has read everything up to the ping of that number. It may answer only the last of several pings.
    pub fn pong(&self, number: u64) {
        let confirmed = {
            let mut held = self.held.lock();
            let later = held.by_ping.split_off(&number.saturating_add(1));
            std::mem::replace(&mut held.by_ping, later)
        };
        for receipt in confirmed.into_values() {
            // The caller may have given up.
            let _ = receipt.send(Ok(Value::Null));
        }
    }

    /// The answer to a request. An answer that no caller waits for is dropped.
    pub fn answer(&self, id: &str, outcome: Result<Value, String>) {
        let receipt = self.held.lock().by_id.remove(id);
        if let Some(receipt) = receipt {
            let _ = receipt.send(outcome.map_err(SendFailure::Refused));
        }
    }

    /// Removes a message that was not written.
    pub fn take_back(&self, number: u64, id: &str) -> Option<Receipt> {
        let mut held = self.held.lock();
        held.by_ping.remove(&number).or_else(|| held.by_id.remove(id))
    }

    /// The connection was lost. Messages that were written may have arrived; OpenClaw recognises a request that is sent again.
    pub fn abandon(&self, reason: &str) {
        let Held { by_ping, by_id } = std::mem::take(&mut *self.held.lock());
        for receipt in by_ping.into_values() {
            let _ = receipt.send(Err(SendFailure::Unknown(reason.to_owned())));
        }
        for receipt in by_id.into_values() {
            let _ = receipt.send(Err(SendFailure::NotSent(reason.to_owned())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pong_confirms_everything_before_it_and_nothing_after() {
        let pending = Pending::default();
        let mut receipts: Vec<_> = (1..=3)
            .map(|number| {
                let (receipt, confirmed) = oneshot::channel();
                pending.await_pong(number, receipt);
                confirmed
            })
            .collect();
        pending.pong(2);
        assert_eq!(receipts[0].try_recv(), Ok(Ok(Value::Null)));
        assert_eq!(receipts[1].try_recv(), Ok(Ok(Value::Null)));
        assert!(receipts[2].try_recv().is_err(), "not yet");
        pending.abandon("gone");
        assert_eq!(receipts[2].try_recv(), Ok(Err(SendFailure::Unknown("gone".into()))));
    }

    #[test]
    fn a_request_with_a_key_may_be_sent_again_after_a_lost_connection() {
        let pending = Pending::default();
        let (receipt, mut confirmed) = oneshot::channel();
        pending.await_answer("1".into(), receipt);
        pending.answer("2", Ok(Value::Null));
        pending.abandon("gone");
        assert_eq!(confirmed.try_recv(), Ok(Err(SendFailure::NotSent("gone".into()))));
    }
}
