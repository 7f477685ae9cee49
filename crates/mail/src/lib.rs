//! E-mail: an IMAP client that only reads, an SMTP client that sends, messages as text, and the agent tool `mail`.
//!
//! A server may be hostile or broken: lines, literals, messages and waits have limits, and no folder is opened for writing.
//!
//! Knows nothing of channels, of `config.toml` and of what a message is answered with.

mod account;
mod address;
mod automatic;
mod compose;
mod connection;
mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
mod imap;
mod message;
mod plain_line;
mod quoted;
mod smtp;
mod tool;

pub use account::{MailAccount, MailSecurity};
pub use address::is_mail_address;
pub use compose::OutgoingMail;
pub use error::{MailError, MailSendError};
pub use imap::query::MailQuery;
pub use imap::session::{FolderState, IdleEnd, ImapSession, check_imap};
pub use message::{MailAttachment, MailMessage, MailPerson, MailSummary, MessageLimits};
pub use quoted::without_quotes;
pub use smtp::{check_smtp, send_mail};
pub use tool::mail_tool;
