//! The terminal's own settings: no echo while an answer is shown, and everything as it was at the end.

#[cfg(unix)]
pub use unix::Terminal;

#[cfg(not(unix))]
pub use other::Terminal;

#[cfg(unix)]
mod unix {
    use std::io::{self, IsTerminal, Write};

    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

    /// The terminal as it was found. It is left like that with its value, however that comes about: the line editor may be
    /// in the middle of a line.
    pub struct Terminal {
        found: Option<Termios>,
    }

    impl Terminal {
        pub fn take() -> Self {
            Terminal { found: tcgetattr(io::stdin()).ok() }
        }

        /// What is typed is not shown, and kept for the next line, until the value is gone.
        pub fn echo_off(&self) -> EchoOff<'_> {
            if let Some(found) = &self.found {
                let mut quiet = found.clone();
                // Keys are kept as they are: the end of a line, or of everything, is for the line editor to read.
                quiet.local_modes -= LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON;
                // A terminal that does not obey shows what is typed, which is no reason to stop.
                let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &quiet);
            }
            EchoOff { terminal: self }
        }

        fn restore(&self) {
            if let Some(found) = &self.found {
                let _ = tcsetattr(io::stdin(), OptionalActions::Drain, found);
            }
        }
    }

    impl Drop for Terminal {
        fn drop(&mut self) {
            let is_line_open = tcgetattr(io::stdin())
                .is_ok_and(|now| self.found.is_some() && !now.local_modes.contains(LocalModes::ICANON));
            self.restore();
            if is_line_open && io::stderr().is_terminal() {
                // The editor had pasted text put in brackets.
                let _ = io::stderr().write_all(b"\x1b[?2004l\n");
            }
        }
    }

    /// Silence.
    pub struct EchoOff<'a> {
        terminal: &'a Terminal,
    }

    impl Drop for EchoOff<'_> {
        fn drop(&mut self) {
            self.terminal.restore();
        }
    }
}

#[cfg(not(unix))]
mod other {
    /// Left to itself.
    pub struct Terminal;

    impl Terminal {
        pub fn take() -> Self {
            Terminal
        }

        pub fn echo_off(&self) {}
    }
}
