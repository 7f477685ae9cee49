//! Passes a filter of system calls to bubblewrap, which reads it from an inherited file.

use std::io;

use tokio::process::{Child, Command};

#[cfg(not(unix))]
pub use other::FilterPipe;
#[cfg(unix)]
pub use unix::FilterPipe;

/// A command of a runtime. That of bubblewrap has a filter.
pub struct SandboxCommand {
    pub command: Command,
    pub filter: Option<FilterPipe>,
}

impl From<Command> for SandboxCommand {
    fn from(command: Command) -> Self {
        SandboxCommand { command, filter: None }
    }
}

impl SandboxCommand {
    /// Starts the command. A filter can be read once, so this works once.
    pub fn spawn(&mut self) -> io::Result<Child> {
        match self.filter.take() {
            Some(filter) => filter.inherited_by(|| self.command.spawn())?,
            None => self.command.spawn(),
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::io::{self, PipeReader, Write};
    use std::os::fd::AsRawFd;
    use std::sync::{Mutex, PoisonError};

    use rustix::io::{FdFlags, fcntl_setfd};

    /// A program that is started at the same time would inherit the pipe of the other one, and could empty it.
    static SPAWNING: Mutex<()> = Mutex::new(());

    /// A pipe that contains a filter.
    pub struct FilterPipe(PipeReader);

    impl FilterPipe {
        /// The filter must fit into a pipe: it is written before anything reads.
        pub fn holding(filter: &[u8]) -> io::Result<Self> {
            let (reader, mut writer) = io::pipe()?;
            writer.write_all(filter)?;
            Ok(FilterPipe(reader))
        }

        /// The number that the pipe has in this process and in the one that inherits it.
        pub fn number(&self) -> i32 {
            self.0.as_raw_fd()
        }

        /// Children inherit the pipe only while `spawn` runs.
        pub fn inherited_by<T>(self, spawn: impl FnOnce() -> T) -> io::Result<T> {
            let spawning = SPAWNING.lock().unwrap_or_else(PoisonError::into_inner);
            fcntl_setfd(&self.0, FdFlags::empty())?;
            let spawned = spawn();
            drop(self);
            drop(spawning);
            Ok(spawned)
        }
    }
}

#[cfg(not(unix))]
mod other {
    use std::io;

    /// Systems without bubblewrap.
    pub struct FilterPipe;

    impl FilterPipe {
        pub fn holding(_filter: &[u8]) -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub fn number(&self) -> i32 {
            -1
        }

        pub fn inherited_by<T>(self, spawn: impl FnOnce() -> T) -> io::Result<T> {
            Ok(spawn())
        }
    }
}
