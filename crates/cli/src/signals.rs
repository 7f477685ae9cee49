//! Signals: those that stop the program, and SIGHUP, which makes a server reload its settings. SIGUSR1 and SIGUSR2 are ignored
//! and must not end the process.

use std::io;
use std::process::ExitCode;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signal that stops the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// Ctrl-C.
    Interrupt,
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is no such signal here"))]
    Terminate,
    /// Ctrl-\.
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is no such signal here"))]
    Quit,
    /// The terminal was closed.
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is no such signal here"))]
    HangUp,
}

impl StopSignal {
    /// The exit code that shells expect of a program ended by a signal.
    pub fn exit_code(self) -> ExitCode {
        ExitCode::from(match self {
            StopSignal::Interrupt => 130,
            StopSignal::Terminate => 143,
            StopSignal::Quit => 131,
            StopSignal::HangUp => 129,
        })
    }
}

/// What a signal asks of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerSignal {
    Stop(StopSignal),
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is no such signal here"))]
    Reload,
}

/// While this value exists, the signals do not end the process.
pub struct Signals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    quit: Signal,
    /// Registered so that they do not end the process, and never read.
    #[cfg(unix)]
    _ignored: [Signal; 2],
    /// Whether the process started with a controlling terminal.
    #[cfg(unix)]
    had_terminal: bool,
    /// `None` if SIGHUP is ignored, as `nohup` arranges.
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

    /// The next signal.
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

    /// The next signal for a server: SIGHUP means reload, unless the terminal was closed.
    pub async fn next_for_server(&mut self) -> ServerSignal {
        match self.next().await {
            StopSignal::HangUp if !self.had_terminal || has_terminal() => ServerSignal::Reload,
            stop => ServerSignal::Stop(stop),
        }
    }
}

/// Whether the process has a controlling terminal. The system removes it before it sends SIGHUP.
#[cfg(unix)]
fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// Whether SIGHUP is known not to be ignored. Registering for it would undo `nohup`. Only Linux reports this.
#[cfg(unix)]
fn is_hang_up_heeded() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The lowest bit is signal 1, SIGHUP.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 0)
}

#[cfg(not(unix))]
impl Signals {
    pub fn listen() -> io::Result<Self> {
        Ok(Signals {})
    }

    /// The next signal.
    pub async fn next(&mut self) -> StopSignal {
        match tokio::signal::ctrl_c().await {
            Ok(()) => StopSignal::Interrupt,
            // If Ctrl-C cannot be handled, it keeps its default effect.
            Err(_) => std::future::pending().await,
        }
    }

    /// The next signal, for a server.
    pub async fn next_for_server(&mut self) -> ServerSignal {
        ServerSignal::Stop(self.next().await)
    }
}
