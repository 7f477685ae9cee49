//! Links Hob to a WhatsApp account: passes on the QR code, and waits until it is scanned.

use futures::StreamExt;
use thiserror::Error;

use super::event::{Event, Order, Said, read};
use super::process::{Process, Session, WhatsappProgram, WhatsappStartError};

/// What happens on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginStep {
    /// To be shown as a QR code. A new one replaces it after a while.
    Scan { data: String },
    /// The bridge is not connected, and tries again.
    Waiting,
}

/// Why there is no session.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoginError {
    #[error(transparent)]
    NotStarted(#[from] WhatsappStartError),
    #[error("{0}")]
    Refused(String),
    #[error("the WhatsApp bridge ended before it was linked: {0}")]
    Ended(String),
}

/// Returns when the account is linked and its session stored. Dropping it gives up.
pub async fn login(program: &WhatsappProgram, mut tell: impl FnMut(LoginStep)) -> Result<(), LoginError> {
    let _session = Session::claim(&program.auth_dir)?;
    let (mut process, mut lines) = Process::spawn(program)?;
    let outcome = loop {
        match lines.next().await {
            Some(Ok(line)) => match read(&line) {
                Ok(Event::Qr { data }) => tell(LoginStep::Scan { data }),
                Ok(Event::Status { status: Said::Connected }) => break Ok(()),
                Ok(Event::Status { status: Said::Disconnected }) => tell(LoginStep::Waiting),
                Ok(Event::Error { message, .. }) => break Err(LoginError::Refused(message)),
                Ok(Event::Message(_) | Event::Sent { .. }) => {}
                Err(reason) => tracing::debug!(%reason, "a line of the WhatsApp bridge is skipped"),
            },
            Some(Err(error)) => break Err(LoginError::Ended(error.to_string())),
            None => break Err(LoginError::Ended(process.ended().await)),
        }
    };
    process.stop(&Order::Disconnect.line()).await;
    outcome
}
