//! Errors of the sandbox. A program that fails is not an error of the sandbox.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

#[derive(Debug, Error)]
pub enum SandboxError {
    #[error("running code is disabled. Set [sandbox] enabled = true in config.toml to allow it")]
    Disabled,

    #[error("cannot mount '{}': {reason}", host.display())]
    MountNotAllowed { host: PathBuf, reason: String },

    #[error("a mounted directory was replaced while the sandbox was set up; nothing was run")]
    MountChanged,

    #[error("{0}")]
    BadJob(&'static str),

    #[error("{running} programs run and {waiting} wait; try again later")]
    Busy { running: usize, waiting: usize },

    #[error("'{}' was not found. Install it, or name another one in [sandbox] runtime", program.display())]
    RuntimeMissing { program: PathBuf },

    /// The runtime is installed, but does not work.
    #[error("{} cannot run code: {reason}", program.display())]
    Unusable { program: PathBuf, reason: String },

    #[error(
        "no sandbox for code is available. Install bubblewrap, or docker or podman with the image '{image}'. {tried}"
    )]
    NoRuntime { image: String, tried: String },

    #[error("no usable Python for the sandbox: {0}")]
    NoPython(String),

    #[error("{} failed", program.display())]
    Io {
        program: PathBuf,
        #[source]
        source: io::Error,
    },
}
