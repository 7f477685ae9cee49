//! The options of the sandbox.

use std::path::PathBuf;
use std::time::Duration;

use hob_core::defaults::{CONCURRENT_SANDBOXES, SANDBOX_IMAGE, SANDBOX_TIMEOUT};

/// The program that runs the code.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Runtime {
    /// Docker or Podman if one of them has the image, bubblewrap otherwise.
    #[default]
    Auto,
    Docker,
    Podman,
    Bwrap,
    /// The path of one of these three; its file name says which.
    Path(PathBuf),
}

/// Files, sockets and ends of pipes that a process may have open.
pub(crate) const OPEN_FILES: u64 = 256;

/// The limits of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SandboxLimits {
    /// Bytes of memory, all processes together.
    pub memory: u64,
    pub processes: u32,
    /// The largest file it may write, in bytes.
    pub file_size: u64,
    /// The size of `/tmp` in bytes.
    pub scratch: u64,
    /// How many files and directories it may create, in bubblewrap. A container counts their memory.
    pub files: u64,
    /// Bytes of stdout and of stderr that are kept.
    pub output: usize,
    /// Bytes that are dropped after that before the program is stopped.
    pub surplus: usize,
}

impl Default for SandboxLimits {
    fn default() -> Self {
        SandboxLimits {
            memory: 512 << 20,
            processes: 64,
            file_size: 16 << 20,
            scratch: 64 << 20,
            files: 65_536,
            output: 1 << 20,
            surplus: 64 << 20,
        }
    }
}

#[derive(Debug, Clone)]
pub struct SandboxOptions {
    pub enabled: bool,
    pub runtime: Runtime,
    /// The container image; bubblewrap needs none.
    pub image: String,
    /// How long a program may run.
    pub timeout: Duration,
    /// How many programs may run at once.
    pub max_concurrent: usize,
    /// Directories whose content programs may read.
    pub allowlist: Vec<PathBuf>,
    pub limits: SandboxLimits,
}

impl Default for SandboxOptions {
    fn default() -> Self {
        SandboxOptions {
            enabled: false,
            runtime: Runtime::Auto,
            image: SANDBOX_IMAGE.to_owned(),
            timeout: SANDBOX_TIMEOUT,
            max_concurrent: CONCURRENT_SANDBOXES,
            allowlist: Vec::new(),
            limits: SandboxLimits::default(),
        }
    }
}
