//! Links Hob to a WhatsApp account with a QR code.

use futures::StreamExt;
use thiserror::Error;

use super::event::{Event, Order, ReportedStatus, read};
use super::process::{Process, Session, WhatsappProgram, WhatsappStartError};

/// The progress of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginStep {
    /// The content of a QR code. It is replaced after a while.
    Scan { data: String },
    /// The bridge is not connected, and retries.
    Waiting,
}

/// Why a login failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoginError {
    #[error(transparent)]
    NotStarted(#[from] WhatsappStartError),
    #[error("{0}")]
    Refused(String),
    #[error("the WhatsApp bridge ended before it was linked: {0}")]
    Ended(String),
}

/// Returns when the account is linked and its session is stored. Dropping the future cancels the login.
pub async fn login(program: &WhatsappProgram, mut on_step: impl FnMut(LoginStep)) -> Result<(), LoginError> {
    let _session = Session::claim(&program.auth_dir)?;
    let (mut process, mut lines) = Process::spawn(program)?;
    let outcome = loop {
        match lines.next().await {
            Some(Ok(line)) => match read(&line) {
                Ok(Event::Qr { data }) => on_step(LoginStep::Scan { data }),
                Ok(Event::Status { status: ReportedStatus::Connected }) => break Ok(()),
                Ok(Event::Status { status: ReportedStatus::Disconnected }) => on_step(LoginStep::Waiting),
                Ok(Event::Error { message, .. }) => break Err(LoginError::Refused(message)),
                Ok(Event::Message(_) | Event::Sent { .. }) => {}
                Err(reason) => tracing::debug!(%reason, "a line of the WhatsApp bridge is skipped"),
            },
            Some(Err(error)) => break Err(LoginError::Ended(error.to_string())),
            None => break Err(LoginError::Ended(process.ended().await)),
        }
    };
    process.stop(&Order::Disconnect.line(), async {}).await;
    outcome
}
