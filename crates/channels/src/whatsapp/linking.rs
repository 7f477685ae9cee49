//! Links an account while the channel is off: installs the bridge, shows the code, and waits for the scan. One attempt at a time.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::install::WhatsappInstaller;
use super::login::{LoginStep, login};
use super::process::WhatsappProgram;

/// The longest wait for the scan. WhatsApp itself ends an attempt sooner.
const SCAN_TIMEOUT: Duration = Duration::from_secs(300);

/// What an attempt is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LinkState {
    /// There was no attempt yet, or it was cancelled.
    #[default]
    Idle,
    Installing,
    /// Nothing is to be scanned yet.
    Connecting,
    /// The content of the QR code to scan. It is replaced after a while.
    Scan(String),
    Linked,
    /// With the reason and what to do.
    Failed(String),
}

/// Links an account from anywhere in the program. An attempt ends with it.
pub struct WhatsappLinking {
    program: WhatsappProgram,
    installer: WhatsappInstaller,
    attempt: Mutex<Attempt>,
}

/// The last attempt. Each has a state of its own, so that one that was cancelled changes no later one.
#[derive(Default)]
struct Attempt {
    state: Arc<Mutex<LinkState>>,
    task: Option<JoinHandle<()>>,
}

impl WhatsappLinking {
    pub fn new(program: WhatsappProgram, installer: WhatsappInstaller) -> Self {
        WhatsappLinking { program, installer, attempt: Mutex::default() }
    }

    pub fn state(&self) -> LinkState {
        self.attempt.lock().state.lock().clone()
    }

    /// Starts an attempt, unless one runs.
    pub fn start(&self) {
        let mut attempt = self.attempt.lock();
        let is_running = matches!(
            *attempt.state.lock(),
            LinkState::Installing | LinkState::Connecting | LinkState::Scan(_)
        );
        if is_running {
            return;
        }
        let state = Arc::new(Mutex::new(LinkState::Installing));
        let earlier = attempt.task.take();
        let (program, installer, shown) = (self.program.clone(), self.installer.clone(), Arc::clone(&state));
        let task = tokio::spawn(async move {
            // One that was cancelled may still hold the session.
            if let Some(earlier) = earlier {
                let _ = earlier.await;
            }
            let ended = link(&program, &installer, &shown).await;
            *shown.lock() = ended;
        });
        *attempt = Attempt { state, task: Some(task) };
    }

    /// Stops the attempt, if one runs, and forgets how the last one ended.
    pub fn cancel(&self) {
        let mut attempt = self.attempt.lock();
        if let Some(task) = &attempt.task {
            task.abort();
        }
        attempt.state = Arc::default();
    }
}

impl Drop for WhatsappLinking {
    fn drop(&mut self) {
        self.cancel();
    }
}

async fn link(
    program: &WhatsappProgram,
    installer: &WhatsappInstaller,
    state: &Mutex<LinkState>,
) -> LinkState {
    if let Err(error) = installer.install().await {
        return LinkState::Failed(error.to_string());
    }
    *state.lock() = LinkState::Connecting;
    let linked = login(program, |step| {
        *state.lock() = match step {
            LoginStep::Scan { data } => LinkState::Scan(data),
            LoginStep::Waiting => LinkState::Connecting,
        };
    });
    match timeout(SCAN_TIMEOUT, linked).await {
        Ok(Ok(())) => LinkState::Linked,
        Ok(Err(error)) => LinkState::Failed(error.to_string()),
        Err(_) => LinkState::Failed("the code was not scanned within five minutes. Try again".to_owned()),
    }
}
