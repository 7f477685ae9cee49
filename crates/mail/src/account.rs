//! The account of a person on a mail server: where it is, and how to log in.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

/// How a connection is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailSecurity {
    /// TLS from the first byte.
    Tls,
    /// TLS after a command. The connection ends if the server does not offer it.
    StartTls,
    /// No protection. Only for servers on this machine.
    None,
}

/// The account on one server, for reading or for sending.
#[derive(Debug, Clone)]
pub struct MailAccount {
    pub host: String,
    pub port: u16,
    pub security: MailSecurity,
    pub user: String,
    pub password: SecretString,
    /// A PEM file with the authorities to trust; `None` for those of the system.
    pub authorities: Option<PathBuf>,
    /// The longest wait for a connection, and for the complete answer to a command.
    pub timeout: Duration,
}
