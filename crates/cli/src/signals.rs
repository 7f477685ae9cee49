//! The signals that ask a program to end, and the one that asks a server to read its settings again. SIGUSR1 and SIGUSR2 mean
//! nothing to us, and must not end us.

use std::io;
use std::process::ExitCode;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What asked us to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// Ctrl-C.
    Interrupt,
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is no such signal here"))]
    Terminate,
    /// Ctrl-\.
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is no such signal here"))]
    Quit,
    /// The terminal is gone.
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is no such signal here"))]
    HangUp,
}

impl StopSignal {
    /// What shells expect of a program that a signal ended.
    pub fn exit_code(self) -> ExitCode {
        ExitCode::from(match self {
            StopSignal::Interrupt => 130,
            StopSignal::Terminate => 143,
            StopSignal::Quit => 131,
            StopSignal::HangUp => 129,
        })
    }
}

/// What a server is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerSignal {
    Stop(StopSignal),
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is no such signal here"))]
    Reload,
}

/// From its making on, these signals no longer end the process by themselves.
pub struct Signals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    quit: Signal,
    /// Listened for, so that they do not end us, and never asked.
    #[cfg(unix)]
    _ignored: [Signal; 2],
    /// Whether we were started in a terminal.
    #[cfg(unix)]
    had_terminal: bool,
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
            quit: signal(SignalKind::quit())?,
            _ignored: [signal(SignalKind::user_defined1())?, signal(SignalKind::user_defined2())?],
            had_terminal: has_terminal(),
            hang_up: if is_hang_up_heeded() { Some(signal(SignalKind::hangup())?) } else { None },
        })
    }

    /// The next one.
    pub async fn next(&mut self) -> StopSignal {
        let hang_up = async {
            match &mut self.hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.terminate.recv() => StopSignal::Terminate,
            _ = self.quit.recv() => StopSignal::Quit,
            _ = hang_up => StopSignal::HangUp,
        }
    }

    /// The next one, for a server: SIGHUP asks it to reload, unless it is the terminal that hangs up.
    pub async fn next_for_server(&mut self) -> ServerSignal {
        match self.next().await {
            StopSignal::HangUp if !self.had_terminal || has_terminal() => ServerSignal::Reload,
            stop => ServerSignal::Stop(stop),
        }
    }
}

/// Whether a terminal controls us. The system takes it away before it tells us that it hangs up.
#[cfg(unix)]
fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
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
    pub async fn next(&mut self) -> StopSignal {
        match tokio::signal::ctrl_c().await {
            Ok(()) => StopSignal::Interrupt,
            // Without a way to hear of Ctrl-C, it keeps its usual effect.
            Err(_) => std::future::pending().await,
        }
    }

    /// The next one, for a server.
    pub async fn next_for_server(&mut self) -> ServerSignal {
        ServerSignal::Stop(self.next().await)
    }
}
