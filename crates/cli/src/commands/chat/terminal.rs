//! Terminal modes: no echo while an answer is shown, and the original modes at the end.

#[cfg(unix)]
pub use unix::Terminal;

#[cfg(not(unix))]
pub use other::Terminal;

#[cfg(unix)]
mod unix {
    use std::io::{self, IsTerminal, Write};

    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

    /// The original modes of the terminal. Dropping this value restores them, even if the line editor is in the middle of a
    /// line.
    pub struct Terminal {
        found: Option<Termios>,
    }

    impl Terminal {
        pub fn take() -> Self {
            Terminal { found: tcgetattr(io::stdin()).ok() }
        }

        /// Turns the echo off until the returned value is dropped. Typed keys stay in the queue for the next line.
        pub fn echo_off(&self) -> EchoOff<'_> {
            if let Some(found) = &self.found {
                let mut quiet = found.clone();
                // Non-canonical mode leaves Enter and Ctrl-D to the line editor.
                quiet.local_modes -= LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON;
                // If this fails, typed keys are echoed, which is not fatal.
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
                // The editor enabled bracketed paste.
                let _ = io::stderr().write_all(b"\x1b[?2004l\n");
            }
        }
    }

    /// Restores the echo when dropped.
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
    /// Does nothing on this platform.
    pub struct Terminal;

    impl Terminal {
        pub fn take() -> Self {
            Terminal
        }

        pub fn echo_off(&self) {}
    }
}
