//! `hob channel add email`: asks for the account, logs in, and writes it into the configuration file: for the channel, which answers
//! e-mails, or for reading only.

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

/// What to do with an account that Hob must not write from.
const OWN_ACCOUNT: &str = "'hob channel add email --read-only' lets agents read a mailbox, and sends nothing";

const PASSWORD: &str = "Password (many providers need an app password): ";

/// The port for TLS after a command, which some providers have instead of the usual one.
const SUBMISSION: u16 = 587;

pub async fn run(config: &Config, args: &ChannelAddArgs) -> Result<ExitCode> {
    let known = &config.mail;
    let is_on = config.channel.email.enabled;
    if args.read_only && is_on {
        bail!(
            "the channel email is on and uses the same account, so Hob would answer e-mails to this mailbox. Set enabled = false \
             under [channel.email] in config.toml first."
        );
    }
    let address = answer("E-mail address", args.address.as_deref(), known.own_address().unwrap_or_default());
    let address = address.await?;
    if args.read_only {
        let settings = mailbox_settings(known, &address, args.imap_host.as_deref()).await?;
        let file = write_local_settings(&Environment::from_process(), &settings)?;
        output::line(format_args!("The server accepts the account. It is in {file}, for reading only."))?;
        output::note(
            "Run 'hob reload' if 'hob serve' runs. Agents have the tool mail now: hob ask --tools mail 'What is new in my \
             mailbox today?'",
        );
        return Ok(ExitCode::SUCCESS);
    }
    let domain = domain(&address)?;
    // Another account gets its replies for the first time.
    let is_answered = is_on && known.own_address().is_some_and(|own| own.eq_ignore_ascii_case(&address));
    if !is_answered && !is_wanted(config, &address, args.yes).await? {
        output::note(format_args!("Nothing was changed. {OWN_ACCOUNT}."));
        return Ok(ExitCode::SUCCESS);
    }
    let mailbox = mailbox(known, &address, args.imap_host.as_deref()).await?;
    let known_host = known.smtp_host.clone().filter(|_| is_same_account(known, &address));
    let smtp_host = known_host.unwrap_or_else(|| format!("smtp.{domain}"));
    let smtp_host = answer("SMTP server", args.smtp_host.as_deref(), &smtp_host).await?;
    let mail =
        MailConfig { smtp_host: Some(smtp_host), password: Some(read_secret(PASSWORD).await?), ..mailbox };
    let mail = checked(mail).await?;
    let file = write_local_settings(&Environment::from_process(), &channel_part(&mail))?;
    output::line(format_args!("Both servers accept the account. It is in {file}."))?;
    output::note(
        "Start 'hob serve', or run 'hob reload' if it runs. Then write an e-mail to the address, and approve the code \
         that you get with 'hob channel approve'.",
    );
    Ok(ExitCode::SUCCESS)
}

/// The settings that let agents read a mailbox, after a login. Asks for the password, and for the server unless it is given.
pub async fn mailbox_settings(
    known: &MailConfig,
    address: &str,
    imap_host: Option<&str>,
) -> Result<Vec<LocalSetting>> {
    let mailbox = mailbox(known, address, imap_host).await?;
    let mail = MailConfig { password: Some(read_secret(PASSWORD).await?), ..mailbox };
    let _waiting = Spinner::start("logging in to the IMAP server");
    check_mailbox(&mail).await?;
    Ok(mailbox_part(&mail))
}

/// The account with its IMAP server, before its password is known.
async fn mailbox(known: &MailConfig, address: &str, imap_host: Option<&str>) -> Result<MailConfig> {
    let domain = domain(address)?;
    let is_same = is_same_account(known, address);
    let known_host = known.imap_host.clone().filter(|_| is_same);
    let likely = known_host.unwrap_or_else(|| format!("imap.{domain}"));
    Ok(MailConfig {
        imap_host: Some(answer("IMAP server", imap_host, &likely).await?),
        user: Some(known.user.clone().filter(|_| is_same).unwrap_or_else(|| address.to_owned())),
        address: Some(address.to_owned()),
        ..known.clone()
    })
}

/// Whether the known user and servers are those of this address. A new password must not go to the servers of another account.
fn is_same_account(known: &MailConfig, address: &str) -> bool {
    known.own_address().is_none_or(|own| !own.contains('@') || own.eq_ignore_ascii_case(address))
}

/// The part of an address after the `@`, which the names of its servers usually end with.
fn domain(address: &str) -> Result<&str> {
    match address.split_once('@') {
        Some((_, domain)) => Ok(domain),
        None => bail!("'{address}' is not an e-mail address. Write one such as hob@example.org."),
    }
}

/// Whether the channel may be turned on: Hob then writes to people.
async fn is_wanted(config: &Config, address: &str, yes: bool) -> Result<bool> {
    let senders = match config.channel.email.pairing {
        true => "Every new sender gets an automatic reply with a pairing code.",
        false => "Everyone who writes gets an answer, because [channel.email] pairing is false.",
    };
    let effect = format!("Hob will answer e-mails to {address}. {senders}");
    if !yes && !is_interactive() {
        bail!("{effect} Use --yes to confirm. {OWN_ACCOUNT}.");
    }
    output::note(format_args!("{effect} Use an account of Hob's own. {OWN_ACCOUNT}."));
    if yes {
        return Ok(true);
    }
    // On a thread, so that Ctrl-C is noticed.
    tokio::task::spawn_blocking(|| question::yes_or_no("Turn the channel on?")).await?
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

/// The settings for reading.
fn mailbox_part(mail: &MailConfig) -> Vec<LocalSetting> {
    vec![
        text("imap_host", mail.imap_host.as_deref()),
        text("user", mail.user.as_deref()),
        text("address", mail.address.as_deref()),
        text("password", mail.password.as_ref().map(ExposeSecret::expose_secret)),
    ]
}

/// The settings for reading and sending, and the channel, which is turned on.
fn channel_part(mail: &MailConfig) -> Vec<LocalSetting> {
    let sending = [
        text("smtp_host", mail.smtp_host.as_deref()),
        LocalSetting::new("mail", "smtp_port", mail.smtp_port),
        text("smtp_security", Some(mail.smtp_security.as_str())),
        LocalSetting::new("channel.email", "enabled", true),
    ];
    mailbox_part(mail).into_iter().chain(sending).collect()
}

fn text(key: &str, value: Option<&str>) -> LocalSetting {
    LocalSetting::new("mail", key, value.unwrap_or_default())
}
