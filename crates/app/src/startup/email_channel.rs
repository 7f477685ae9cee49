//! Translates the configuration of the e-mail channel.

use hob_channels::{ChannelError, EmailOptions};
use hob_config::Config;
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

#[cfg(test)]
mod tests {
    use super::*;

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
