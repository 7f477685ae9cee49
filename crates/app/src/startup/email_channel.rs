//! Translates the configuration of the e-mail channel, and who is trusted on it.

use std::collections::BTreeMap;

use hob_channels::{ChannelError, EMAIL_CHANNEL, EmailOptions};
use hob_config::{ChannelConfig, Config};
use hob_core::Reach;
use hob_mail::is_mail_address;

use crate::startup::mail::{imap_account, smtp_account};

/// The account of `[mail]` with the settings of `[channel.email]`.
pub(super) fn email_options(config: &Config) -> Result<EmailOptions, ChannelError> {
    let missing = |what: &str| ChannelError::Invalid {
        reason: format!("{what} is missing under [mail] in config.toml. Run 'hob channel add email'"),
    };
    let imap = imap_account(&config.mail).ok_or_else(|| missing("imap_host or user"))?;
    let smtp = smtp_account(&config.mail).ok_or_else(|| missing("smtp_host"))?;
    let address = config.mail.own_address().filter(|address| is_mail_address(address));
    let address = address.ok_or_else(|| missing("address, an e-mail address such as hob@example.org,"))?;
    let settings = &config.channel.email;
    Ok(EmailOptions {
        folder: settings.folder.clone(),
        name: settings.name.clone(),
        senders: settings.senders.clone(),
        authentication_server: settings.authentication_server.clone(),
        answers_per_hour: Some(settings.answers_per_hour),
        poll_interval: settings.poll_interval,
        ..EmailOptions::new(imap, smtp, address)
    })
}

/// Trust by sender. The sender of an e-mail can be forged, so without a server that checks senders it never includes tools that act.
pub(super) fn trust(config: &ChannelConfig) -> BTreeMap<String, Reach> {
    let is_checked = config.email.authentication_server.is_some();
    let entries = config.trust.iter().map(|(sender, reach)| {
        if !is_email(sender) {
            return (sender.clone(), *reach);
        }
        if *reach > Reach::Read && !is_checked {
            tracing::warn!(
                %sender,
                "the sender of an e-mail can be forged, so this one gets 'read' instead of 'act'. To allow 'act', \
                 set [channel.email] authentication_server"
            );
        }
        let most = if is_checked { Reach::Act } else { Reach::Read };
        (sender.to_ascii_lowercase(), (*reach).min(most))
    });
    entries.collect()
}

/// Whether an entry names a sender of e-mails, whose address counts in any case.
fn is_email(sender: &str) -> bool {
    sender.split_once(':').is_some_and(|(channel, _)| channel == EMAIL_CHANNEL)
}

/// The senders for whom the memory may be read.
pub(super) fn allow_from(config: &ChannelConfig) -> Vec<String> {
    let lowered =
        |sender: &String| if is_email(sender) { sender.to_ascii_lowercase() } else { sender.clone() };
    config.allow_from.iter().map(lowered).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sender_of_an_email_never_acts_unless_a_server_checks_it() {
        let mut config = ChannelConfig::default();
        for sender in ["email:Ann@Example.org", "telegram:12345"] {
            config.trust.insert(sender.to_owned(), Reach::Act);
        }
        let expected = |reach| {
            let email = ("email:ann@example.org".to_owned(), reach);
            BTreeMap::from([email, ("telegram:12345".to_owned(), Reach::Act)])
        };
        assert_eq!(trust(&config), expected(Reach::Read));
        config.email.authentication_server = Some("mx.example.org".to_owned());
        assert_eq!(trust(&config), expected(Reach::Act));
    }

    #[test]
    fn a_channel_without_its_account_says_what_is_missing() {
        let mut config = Config::default();
        let reason = |config: &Config| match email_options(config) {
            Err(ChannelError::Invalid { reason }) => reason,
            Err(other) => panic!("{other}"),
            Ok(_) => "none".to_owned(),
        };
        assert!(reason(&config).starts_with("imap_host or user is missing"));
        config.mail.imap_host = Some("imap.example.org".to_owned());
        config.mail.user = Some("ann".to_owned());
        assert!(reason(&config).starts_with("smtp_host is missing"));
        config.mail.smtp_host = Some("smtp.example.org".to_owned());
        assert!(reason(&config).starts_with("address"));
        config.mail.address = Some("ann@example.org".to_owned());
        assert_eq!(reason(&config), "none");
        let answers = email_options(&config).expect("complete").answers_per_hour;
        assert_eq!(answers, Some(20), "a loop with a program ends without a setting");
    }
}
