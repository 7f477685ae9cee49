//! `hob channel add email`: asks for the account, logs in to both servers, and writes it into the configuration file.

use std::process::ExitCode;

use anyhow::{Result, bail};
use hob_app::startup::mail::{check_mailbox, check_sending};
use hob_config::{Config, Environment, LocalSetting, MailConfig, MailSecuritySetting, write_local_settings};
use secrecy::ExposeSecret;

use crate::args::ChannelAddArgs;
use crate::output;
use crate::output::progress::Spinner;
use crate::output::question::{self, is_interactive};
use crate::output::secret_line::read_secret;

const PASSWORD: &str = "Password (many providers need an app password): ";

/// The port for TLS after a command, which some providers have instead of the usual one.
const SUBMISSION: u16 = 587;

pub async fn run(config: &Config, args: &ChannelAddArgs) -> Result<ExitCode> {
    let known = &config.mail;
    let address = answer("E-mail address", args.address.as_deref(), known.own_address().unwrap_or_default());
    let address = address.await?;
    let Some((_, domain)) = address.split_once('@') else {
        bail!("'{address}' is not an e-mail address. Pass one with --address, such as hob@example.org");
    };
    let imap_host = known.imap_host.clone().unwrap_or_else(|| format!("imap.{domain}"));
    let imap_host = answer("IMAP server", args.imap_host.as_deref(), &imap_host).await?;
    let smtp_host = known.smtp_host.clone().unwrap_or_else(|| format!("smtp.{domain}"));
    let smtp_host = answer("SMTP server", args.smtp_host.as_deref(), &smtp_host).await?;
    let mail = MailConfig {
        imap_host: Some(imap_host),
        smtp_host: Some(smtp_host),
        user: Some(known.user.clone().unwrap_or_else(|| address.clone())),
        address: Some(address),
        password: Some(read_secret(PASSWORD).await?),
        ..known.clone()
    };
    let mail = checked(mail).await?;
    let file = write_local_settings(&Environment::from_process(), &settings(&mail))?;
    output::line(format_args!("Both servers accept the account. It is in {file}."))?;
    output::note(
        "Start 'hob serve', or run 'hob reload' if it runs. Then write an e-mail to the address, and approve the code \
         that you get with 'hob channel approve'.",
    );
    Ok(ExitCode::SUCCESS)
}

/// What the command line says, or the user; without a user what is likely.
async fn answer(what: &str, given: Option<&str>, likely: &str) -> Result<String> {
    match given {
        Some(given) => Ok(given.trim().to_owned()),
        None if is_interactive() => question::text(what, likely).await,
        None => Ok(likely.to_owned()),
    }
}

/// The account with which both logins succeed.
async fn checked(mail: MailConfig) -> Result<MailConfig> {
    {
        let _waiting = Spinner::start("logging in to the IMAP server");
        check_mailbox(&mail).await?;
    }
    let _waiting = Spinner::start("logging in to the SMTP server");
    let failed = match check_sending(&mail).await {
        Ok(()) => return Ok(mail),
        Err(failed) => failed,
    };
    let usual = MailConfig::default();
    let is_usual = (mail.smtp_port, mail.smtp_security) == (usual.smtp_port, usual.smtp_security);
    let other = MailConfig { smtp_port: SUBMISSION, smtp_security: MailSecuritySetting::StartTls, ..mail };
    if is_usual && check_sending(&other).await.is_ok() {
        return Ok(other);
    }
    Err(failed.into())
}

fn settings(mail: &MailConfig) -> Vec<LocalSetting> {
    vec![
        text("imap_host", mail.imap_host.as_deref()),
        text("smtp_host", mail.smtp_host.as_deref()),
        text("user", mail.user.as_deref()),
        text("address", mail.address.as_deref()),
        LocalSetting::new("mail", "smtp_port", mail.smtp_port),
        text("smtp_security", Some(mail.smtp_security.as_str())),
        text("password", mail.password.as_ref().map(ExposeSecret::expose_secret)),
        LocalSetting::new("channel.email", "enabled", true),
    ]
}

fn text(key: &str, value: Option<&str>) -> LocalSetting {
    LocalSetting::new("mail", key, value.unwrap_or_default())
}
