//! What goes wrong with a mail server.

use std::io;

use thiserror::Error;

/// Why a mail server did not do what it was asked.
#[derive(Debug, Error)]
pub enum MailError {
    #[error("cannot connect to the mail server {host}:{port}: {source}. Check the host and the port")]
    Connect { host: String, port: u16, source: io::Error },
    #[error(
        "no secure connection to the mail server {host}: {source}. Check the host, the port and the setting for TLS"
    )]
    Tls { host: String, source: io::Error },
    #[error(
        "the mail server {host} is not on this machine, so the password is not sent to it without TLS. Use security = \"tls\" or \"starttls\""
    )]
    Unprotected { host: String },
    #[error(
        "the mail server {host} does not offer STARTTLS on this port. Try security = \"tls\" with the port for TLS"
    )]
    NoStartTls { host: String },
    #[error(
        "the mail server refuses the login: {reply}. Many providers need an app password instead of the usual one"
    )]
    Login { reply: String },
    #[error("the mail server offers no way to log in that Hob knows (PLAIN or LOGIN)")]
    NoLogin,
    #[error("the mail server refuses '{command}': {reply}")]
    Refused { command: &'static str, reply: String },
    #[error("the mail server did not answer within {seconds} s")]
    Timeout { seconds: u64 },
    #[error("the mail server closed the connection")]
    Closed,
    #[error("the connection to the mail server failed: {0}")]
    Io(#[from] io::Error),
    #[error("the mail server sent {what} that is longer than {most} bytes")]
    TooLong { what: &'static str, most: usize },
    #[error("the mail server sent something that is not {protocol}: {reason}")]
    Malformed { protocol: &'static str, reason: &'static str },
    #[error("'{text}' is not an e-mail address such as ann@example.org")]
    Address { text: String },
    #[error("a name or a password for the mail server must not contain control characters")]
    Credentials,
}

/// Why a message was not sent.
#[derive(Debug, Error)]
pub enum MailSendError {
    /// It certainly was not sent. Another attempt may succeed.
    #[error(transparent)]
    NotSent(MailError),
    /// The server may have it.
    #[error(transparent)]
    Unknown(MailError),
    /// The server refuses it, now and later.
    #[error(transparent)]
    Refused(MailError),
}

/// The most letters of a reply that an error shows.
const SHOWN_REPLY: usize = 200;

/// The words of a server as one line of bounded length.
pub(crate) fn shown_reply(reply: &[u8]) -> String {
    let text = String::from_utf8_lossy(reply);
    let printable = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    printable.take(SHOWN_REPLY).collect::<String>().trim().to_owned()
}
