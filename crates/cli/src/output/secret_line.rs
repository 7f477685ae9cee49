//! Reads a secret that the user types. A terminal does not show it.

use std::io::{self, IsTerminal, Write};

use anyhow::{Context, Result, bail};
use secrecy::SecretString;

use crate::output::question::read_line;

/// Asks on stderr if input is a terminal, and reads one line of it. Dropping the future shows typed text again.
pub async fn read_secret(question: &str) -> Result<SecretString> {
    let is_terminal = io::stdin().is_terminal();
    let hidden = is_terminal.then(echo::Hidden::start);
    if is_terminal {
        write!(anstream::stderr(), "{question}")?;
    }
    let line = tokio::task::spawn_blocking(read_line).await?.context("cannot read the secret")?;
    drop(hidden);
    if is_terminal {
        writeln!(anstream::stderr())?;
    }
    if line.trim().is_empty() {
        bail!("nothing was entered");
    }
    Ok(line.trim().into())
}

#[cfg(unix)]
mod echo {
    use std::io;

    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

    /// Typed text is not shown until this value is dropped.
    pub struct Hidden {
        found: Option<Termios>,
    }

    impl Hidden {
        pub fn start() -> Self {
            let found = tcgetattr(io::stdin()).ok();
            if let Some(found) = &found {
                let mut quiet = found.clone();
                quiet.local_modes -= LocalModes::ECHO;
                // If this fails, the secret is shown, which is not fatal.
                let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &quiet);
            }
            Hidden { found }
        }
    }

    impl Drop for Hidden {
        fn drop(&mut self) {
            if let Some(found) = &self.found {
                let _ = tcsetattr(io::stdin(), OptionalActions::Drain, found);
            }
        }
    }
}

#[cfg(not(unix))]
mod echo {
    /// Does nothing on this platform.
    pub struct Hidden;

    impl Hidden {
        pub fn start() -> Self {
            Hidden
        }
    }
}
