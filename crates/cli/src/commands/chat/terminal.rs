//! Terminal modes: typed keys are not shown and stay as they are while no line is edited, and the original modes at the end.

#[cfg(unix)]
pub use unix::Terminal;

#[cfg(not(unix))]
pub use other::Terminal;

#[cfg(unix)]
mod unix {
    use std::io::{self, IsTerminal, Write};
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::termios::{InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

    /// The original modes of the terminal. Dropping this value restores them once more, if they were changed: a line editor that ends
    /// late sets the modes that it has found.
    pub struct Terminal {
        found: Option<Termios>,
        was_changed: AtomicBool,
    }

    impl Terminal {
        pub fn take() -> Self {
            Terminal { found: tcgetattr(io::stdin()).ok(), was_changed: AtomicBool::new(false) }
        }

        /// Typed keys are not shown, and wait for the next line, until the returned value is dropped. The line editor finds these
        /// modes, and sets them again when a line ends.
        pub fn quiet(&self) -> QuietTerminal<'_> {
            self.was_changed.store(true, Ordering::Relaxed);
            let quiet = QuietTerminal { terminal: self, modes: self.found.as_ref().map(quiet_modes) };
            quiet.renew();
            quiet
        }

        fn restore(&self) {
            set(self.found.as_ref());
        }
    }

    impl Drop for Terminal {
        fn drop(&mut self) {
            // A program in the background must not set modes without need: the system would stop it.
            if self.was_changed.load(Ordering::Relaxed) {
                self.restore();
            }
        }
    }

    /// Dropping this value restores the original modes, even if the line editor is in the middle of a line.
    pub struct QuietTerminal<'a> {
        terminal: &'a Terminal,
        modes: Option<Termios>,
    }

    impl QuietTerminal<'_> {
        /// Sets the modes again: a shell that has continued the program has set its own.
        pub fn renew(&self) {
            set(self.modes.as_ref());
        }

        /// Whether the line editor is in the middle of a line: it then reads Ctrl-C and others as keys.
        fn is_line_open(&self) -> bool {
            let Some(modes) = &self.modes else { return false };
            let special = LocalModes::ISIG | LocalModes::IEXTEN;
            tcgetattr(io::stdin()).is_ok_and(|now| {
                let now = now.local_modes;
                !now.contains(LocalModes::ICANON) && now & special != modes.local_modes & special
            })
        }
    }

    impl Drop for QuietTerminal<'_> {
        fn drop(&mut self) {
            let is_line_open = self.is_line_open();
            self.terminal.restore();
            if is_line_open && io::stderr().is_terminal() {
                // The editor enabled bracketed paste.
                let _ = io::stderr().write_all(b"\x1b[?2004l\n");
            }
        }
    }

    /// In canonical mode, the system would end the input at Ctrl-D, and the line editor would then read another key. It would also
    /// replace Enter.
    fn quiet_modes(found: &Termios) -> Termios {
        let mut quiet = found.clone();
        quiet.local_modes -= LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON;
        quiet.input_modes -= InputModes::ICRNL;
        quiet
    }

    /// If this fails, typed keys are shown, which is not fatal.
    fn set(modes: Option<&Termios>) {
        if let Some(modes) = modes {
            let _ = tcsetattr(io::stdin(), OptionalActions::Drain, modes);
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

        pub fn quiet(&self) -> QuietTerminal {
            QuietTerminal
        }
    }

    /// Does nothing on this platform.
    pub struct QuietTerminal;

    impl QuietTerminal {
        pub fn renew(&self) {}
    }
}
