//! The signals that ask a program to end.

use std::io;
use std::process::ExitCode;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What asked us to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Ctrl-C.
    Interrupt,
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is no such signal here"))]
    Terminate,
    /// The terminal is gone.
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is no such signal here"))]
    HangUp,
}

impl Stop {
    /// What shells expect of a program that a signal ended.
    pub fn exit_code(self) -> ExitCode {
        ExitCode::from(match self {
            Stop::Interrupt => 130,
            Stop::Terminate => 143,
            Stop::HangUp => 129,
        })
    }
}

/// From its making on, these signals no longer end the process by themselves.
pub struct Signals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
    /// `None` where it is ignored, as `nohup` does to let a program outlive its terminal.
    #[cfg(unix)]
    hang_up: Option<Signal>,
}

#[cfg(unix)]
impl Signals {
    pub fn listen() -> io::Result<Self> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: if is_hang_up_heeded() { Some(signal(SignalKind::hangup())?) } else { None },
        })
    }

    /// The next one.
    pub async fn next(&mut self) -> Stop {
        let hang_up = async {
            match &mut self.hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Stop::Interrupt,
            _ = self.terminate.recv() => Stop::Terminate,
            _ = hang_up => Stop::HangUp,
        }
    }
}

/// Whether SIGHUP is known not to be ignored: listening for it would undo that. Only Linux tells.
#[cfg(unix)]
fn is_hang_up_heeded() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The lowest bit is the first signal, which is this one.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 0)
}

#[cfg(not(unix))]
impl Signals {
    pub fn listen() -> io::Result<Self> {
        Ok(Signals {})
    }

    /// The next one.
    pub async fn next(&mut self) -> Stop {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Stop::Interrupt,
            // Without a way to hear of Ctrl-C, it keeps its usual effect.
            Err(_) => std::future::pending().await,
        }
    }
}
