//! Waits for the message with which the owner proves which account is theirs, when the bot is added.

use std::time::Duration;

use super::api::{TelegramApi, TelegramBot, TelegramError};
use super::incoming;
use crate::pairing::normalized_code;

/// How long one request waits.
const WAIT: Duration = Duration::from_secs(25);

/// The sender of the message with the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairingMessage {
    pub sender: String,
    pub name: String,
}

/// Waits for a direct message that is the code, and confirms all messages up to it.
pub async fn first_message_with(
    code: &str,
    api: &TelegramApi,
    bot: &TelegramBot,
) -> Result<PairingMessage, TelegramError> {
    let mut offset = None;
    loop {
        for update in api.get_updates(offset, WAIT).await? {
            let Some(number) = incoming::number(&update) else { continue };
            offset = Some(number.saturating_add(1));
            let Some(message) = incoming::read(&update, bot, false) else { continue };
            if normalized_code(&message.content) == code {
                // Nothing waits: this only confirms what was read.
                api.get_updates(offset, Duration::ZERO).await?;
                let name = message.metadata.get("sender_name").and_then(|name| name.as_str());
                let name = name.unwrap_or_default().to_owned();
                return Ok(PairingMessage { sender: message.sender, name });
            }
        }
        // A server that answers at once must not be asked in a busy loop.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
