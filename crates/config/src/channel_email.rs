//! `[channel.email]`: messages by e-mail, with the account of `[mail]`.

use std::time::Duration;

use crate::kind::{COUNT, FLAG, OPTIONAL_TEXT, SECONDS, TEXT, TEXTS};
use crate::settings_schema::keys_of;

/// The most answers to one address in an hour. A person rarely writes more; a program that answers every message writes more.
const ANSWERS_PER_HOUR: usize = 20;

/// Settings of the e-mail channel.
#[derive(Debug, Clone)]
pub struct EmailChannelConfig {
    pub enabled: bool,
    /// The folder whose new messages are answered.
    pub folder: String,
    /// The name before the address in answers.
    pub name: String,
    /// Whether a new sender must be approved.
    pub pairing: bool,
    /// Addresses, or domains as `@example.org`, whose messages are answered; empty for all.
    pub senders: Vec<String>,
    /// The name in `Authentication-Results` of the own server; `None` trusts no such field.
    pub authentication_server: Option<String>,
    /// The most answers to one address in an hour.
    pub answers_per_hour: usize,
    /// How often to look for messages where the server does not report them.
    pub poll_interval: Duration,
}

impl Default for EmailChannelConfig {
    fn default() -> Self {
        EmailChannelConfig {
            enabled: false,
            folder: "INBOX".to_owned(),
            name: "Hob".to_owned(),
            pairing: true,
            senders: Vec::new(),
            authentication_server: None,
            answers_per_hour: ANSWERS_PER_HOUR,
            poll_interval: Duration::from_secs(60),
        }
    }
}

keys_of! {
    EmailChannelConfig {
        enabled: FLAG, "Whether to answer e-mails to the account in [mail]. 'hob channel add email' sets it up.";
        folder: TEXT, "Folder whose new messages are answered.";
        name: TEXT, "Name of the sender of answers.";
        pairing: FLAG, "Whether a new sender gets a code that you enter with 'hob channel approve' before Hob answers.";
        senders: TEXTS, "Senders that are answered, such as [\"ann@example.org\", \"@example.org\"]; [] for all.";
        authentication_server: OPTIONAL_TEXT, "Name with which your mail server begins the field Authentication-Results. With it, only messages with dmarc=pass are answered; \"\" does not check senders.";
        answers_per_hour: COUNT, "Maximum answers to one address in an hour. It ends an exchange with a program that answers every message.";
        poll_interval: SECONDS, "Seconds between checks for messages, if the server has no IDLE.";
    }
}
