//! `[mail]`: the account that the tool `mail` and the channel `email` use.

use std::path::PathBuf;

use secrecy::SecretString;

use crate::kind::{OPTIONAL_ABSOLUTE_PATH, OPTIONAL_TEXT, PORT, SECRET, TEXT, quote};
use crate::settings_schema::{Exposure, Kind, keys_of};

/// The account on a mail server.
#[derive(Debug, Clone)]
pub struct MailConfig {
    /// `None` if there is no mailbox to read.
    pub imap_host: Option<String>,
    pub imap_port: u16,
    pub imap_security: MailSecuritySetting,
    /// `None` if nothing can be sent.
    pub smtp_host: Option<String>,
    pub smtp_port: u16,
    pub smtp_security: MailSecuritySetting,
    pub user: Option<String>,
    pub password: Option<SecretString>,
    /// A file whose first line is the password.
    pub password_file: Option<PathBuf>,
    /// The address of the account; `None` is the user.
    pub address: Option<String>,
    /// The folder that is read.
    pub folder: String,
    /// A PEM file with the authorities of the servers' certificates; `None` is those of the system.
    pub authorities: Option<PathBuf>,
}

/// How a connection to a mail server is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailSecuritySetting {
    Tls,
    StartTls,
    /// Only for servers on this machine.
    None,
}

hob_core::named_variants! {
    MailSecuritySetting {
        Tls => "tls",
        StartTls => "starttls",
        None => "none",
    }
}

const SECURITY: Kind<MailSecuritySetting> = Kind {
    expected: "tls, starttls or none",
    read: |typed| MailSecuritySetting::parse(typed.text()?),
    write: |choice| quote(choice.as_str()),
    exposure: Exposure::OneOf(&["tls", "starttls", "none"]),
};

impl Default for MailConfig {
    fn default() -> Self {
        MailConfig {
            imap_host: None,
            imap_port: 993,
            imap_security: MailSecuritySetting::Tls,
            smtp_host: None,
            smtp_port: 465,
            smtp_security: MailSecuritySetting::Tls,
            user: None,
            password: None,
            password_file: None,
            address: None,
            folder: "INBOX".to_owned(),
            authorities: None,
        }
    }
}

impl MailConfig {
    /// The address of the account.
    pub fn own_address(&self) -> Option<&str> {
        self.address.as_deref().or(self.user.as_deref())
    }
}

keys_of! {
    MailConfig {
        imap_host: OPTIONAL_TEXT, "IMAP server of the mailbox, such as \"imap.example.org\"; \"\" for none. Agents get the tool mail with it.";
        imap_port: PORT, "Port of the IMAP server.";
        imap_security: SECURITY, "Protection of the connection: tls, starttls, or none for a server on this machine.";
        smtp_host: OPTIONAL_TEXT, "SMTP server that sends, such as \"smtp.example.org\"; \"\" for none. The channel email needs it.";
        smtp_port: PORT, "Port of the SMTP server; with starttls usually 587.";
        smtp_security: SECURITY, "Protection of the connection: tls, starttls, or none for a server on this machine.";
        user: OPTIONAL_TEXT, "Name for the login, usually the e-mail address.";
        password: SECRET, "Password for the login, often an app password of the provider. HOB_MAIL_PASSWORD overrides it.";
        password_file: OPTIONAL_ABSOLUTE_PATH, "File with the password instead; \"\" for none.";
        address: OPTIONAL_TEXT, "E-mail address of the account; \"\" is the user.";
        folder: TEXT, "Folder that is read.";
        authorities: OPTIONAL_ABSOLUTE_PATH, "PEM file with the certificate authorities of the servers; \"\" uses those of the system.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::read_as;

    #[test]
    fn the_protection_of_a_connection_is_one_of_three() {
        for choice in MailSecuritySetting::ALL {
            assert_eq!(read_as(&SECURITY, &quote(choice.as_str())), Some(choice));
        }
        assert_eq!(read_as(&SECURITY, "'ssl'"), None);
    }

    #[test]
    fn the_address_is_the_user_unless_it_is_set() {
        let mut config = MailConfig { user: Some("ann@example.org".into()), ..MailConfig::default() };
        assert_eq!(config.own_address(), Some("ann@example.org"));
        config.address = Some("hob@example.org".into());
        assert_eq!(config.own_address(), Some("hob@example.org"));
    }
}
