//! Translates the configuration of the mail account into the accounts for reading and sending.

use std::time::Duration;

use hob_config::{MailConfig, MailSecuritySetting, read_secret_file};
use hob_mail::{MailAccount, MailError, MailSecurity, check_imap, check_smtp};
use secrecy::SecretString;

/// The longest wait for a mail server.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The account for reading; `None` if none is configured.
pub(crate) fn imap_account(config: &MailConfig) -> Option<MailAccount> {
    account(config, config.imap_host.as_ref()?, config.imap_port, config.imap_security)
}

/// The account for sending; `None` if none is configured.
pub(crate) fn smtp_account(config: &MailConfig) -> Option<MailAccount> {
    account(config, config.smtp_host.as_ref()?, config.smtp_port, config.smtp_security)
}

fn account(config: &MailConfig, host: &str, port: u16, security: MailSecuritySetting) -> Option<MailAccount> {
    Some(MailAccount {
        host: host.to_owned(),
        port,
        security: match security {
            MailSecuritySetting::Tls => MailSecurity::Tls,
            MailSecuritySetting::StartTls => MailSecurity::StartTls,
            MailSecuritySetting::None => MailSecurity::None,
        },
        user: config.user.clone()?,
        password: password(config),
        authorities: config.authorities.clone(),
        timeout: TIMEOUT,
    })
}

/// Logs in to the mailbox and opens its folder. Without an account, there is nothing to check.
pub async fn check_mailbox(config: &MailConfig) -> Result<(), MailError> {
    match imap_account(config) {
        Some(account) => check_imap(&account, &config.folder).await,
        None => Ok(()),
    }
}

/// Logs in to the server that sends. Nothing is sent.
pub async fn check_sending(config: &MailConfig) -> Result<(), MailError> {
    match smtp_account(config) {
        Some(account) => check_smtp(&account).await,
        None => Ok(()),
    }
}

/// The password, or the first line of its file. Without one the login fails, and says so.
fn password(config: &MailConfig) -> SecretString {
    match (&config.password, &config.password_file) {
        (Some(password), _) => password.clone(),
        (None, Some(file)) => read_secret_file(file).unwrap_or_else(|error| {
            tracing::warn!(
                file = %file.display(),
                %error,
                "the file of [mail] password_file cannot be read, so the login fails. Check its path and \
                 permissions"
            );
            SecretString::from("")
        }),
        (None, None) => SecretString::from(""),
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn without_a_server_or_a_user_there_is_no_account() {
        assert!(imap_account(&MailConfig::default()).is_none());
        assert!(smtp_account(&MailConfig::default()).is_none());
        let config = MailConfig { imap_host: Some("imap.example.org".into()), ..MailConfig::default() };
        assert!(imap_account(&config).is_none());
    }

    #[test]
    fn the_password_may_be_in_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "s3cret\nmore\n").unwrap();
        let config = MailConfig {
            imap_host: Some("imap.example.org".into()),
            user: Some("ann@example.org".into()),
            password_file: Some(file.path().to_owned()),
            ..MailConfig::default()
        };
        let account = imap_account(&config).unwrap();
        assert_eq!(account.password.expose_secret(), "s3cret");
        assert!(!format!("{account:?}").contains("s3cret"));
        let direct = MailConfig { password: Some("other".into()), ..config };
        assert_eq!(imap_account(&direct).unwrap().password.expose_secret(), "other");
    }
}
