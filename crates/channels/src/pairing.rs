//! Pairing: on some channels, Hob answers only senders whom the owner has approved. Anyone else gets a code, once an hour, which the
//! owner enters. The sender cannot guess anything: a code in a message means nothing.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hob_core::fill_random;
use hob_db::DbResult;
use tokio::time::sleep;

use crate::blocking::{STORE_BACKOFF, blocking};
use crate::store::{ChannelStore, NewPairing, PairingOutcome, SenderKey};
use crate::types::ChannelMessage;

/// How long a code is valid, and how often a sender gets one.
const CODE_LIFETIME: Duration = Duration::from_secs(3_600);

/// Letters and digits that are not mistaken for each other.
const CODE_LETTERS: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

const CODE_LENGTH: usize = 8;

/// The longest saved name of a sender, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Whether a sender is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SenderCheck {
    Approved,
    /// The sender is not approved. The reply is for the sender; `None` says nothing.
    NotApproved(Option<String>),
}

/// A new code that cannot be guessed, without separators.
pub fn new_code() -> String {
    let mut code = String::with_capacity(CODE_LENGTH);
    let mut drawn = [0];
    while code.len() < CODE_LENGTH {
        fill_random(&mut drawn);
        if CODE_LETTERS.contains(&drawn[0]) {
            code.push(char::from(drawn[0]));
        }
    }
    code
}

/// A code as people read it, such as `ABCD-EFGH`.
pub fn shown_code(code: &str) -> String {
    match code.split_at_checked(CODE_LENGTH / 2) {
        Some((first, second)) if !second.is_empty() => format!("{first}-{second}"),
        _ => code.to_owned(),
    }
}

/// A code as people type it, without separators and in upper case.
pub fn normalized_code(typed: &str) -> String {
    let letters = typed.chars().filter(char::is_ascii_alphanumeric).take(2 * CODE_LENGTH);
    letters.map(|letter| letter.to_ascii_uppercase()).collect()
}

/// Checks a sender, and begins the pairing of a new one in a direct conversation. Waits for the database: without it, a message of an
/// approved sender would be dropped as that of a stranger.
pub(crate) async fn check(store: Option<&Arc<dyn ChannelStore>>, message: &ChannelMessage) -> SenderCheck {
    let Some(store) = store else {
        tracing::warn!(
            channel = %message.channel,
            "no sender can be approved, because nothing can be saved. Repair the database ('hob doctor' \
             checks it), then restart Hob"
        );
        return SenderCheck::NotApproved(None);
    };
    let mut delays = STORE_BACKOFF.delays();
    loop {
        match try_check(store, message).await {
            Ok(checked) => return checked,
            Err(error) => {
                tracing::warn!(
                    channel = %message.channel,
                    %error,
                    "the approval of a sender cannot be checked; Hob tries again. 'hob doctor' checks the \
                     database"
                );
                sleep(delays.next_delay()).await;
            }
        }
    }
}

async fn try_check(store: &Arc<dyn ChannelStore>, message: &ChannelMessage) -> DbResult<SenderCheck> {
    let (store, channel, sender) = (Arc::clone(store), message.channel.clone(), message.sender.clone());
    let (is_group, name) = (message.is_group, sender_name(message));
    let checked = blocking(move || -> DbResult<SenderCheck> {
        let sender = SenderKey { channel: &channel, sender: &sender };
        if sender.sender.is_empty() {
            return Ok(SenderCheck::NotApproved(None));
        }
        if store.is_approved(sender)? {
            return Ok(SenderCheck::Approved);
        }
        // In a group, the code would be for everyone to read.
        if is_group {
            return Ok(SenderCheck::NotApproved(None));
        }
        let (code, now) = (new_code(), SystemTime::now());
        let pairing = NewPairing { sender, name: &name, code: &code, ends: now + CODE_LIFETIME };
        let reply = match store.begin_pairing(pairing, now)? {
            PairingOutcome::Begun => Some(code_note(&code)),
            PairingOutcome::Waiting => None,
            PairingOutcome::Full => {
                tracing::warn!(
                    %channel,
                    "too many new senders wait for an approval; another one gets no code. 'hob channel \
                     senders' lists them"
                );
                None
            }
        };
        Ok(SenderCheck::NotApproved(reply))
    });
    // `None` if the program ends.
    checked.await.unwrap_or(Ok(SenderCheck::NotApproved(None)))
}

fn code_note(code: &str) -> String {
    let code = shown_code(code);
    format!(
        "I only answer people whom my owner has approved. Your code is {code}. \
         Ask the owner to run: hob channel approve {code}"
    )
}

/// What a sender calls itself, on one line.
fn sender_name(message: &ChannelMessage) -> String {
    let name = message.metadata.get("sender_name").and_then(|name| name.as_str()).unwrap_or_default();
    name.chars().filter(|letter| !letter.is_control()).take(MAX_NAME_CHARS).collect()
}

#[cfg(test)]
#[path = "pairing_tests.rs"]
mod tests;
