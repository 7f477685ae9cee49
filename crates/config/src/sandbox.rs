//! `[sandbox]`: where code written by a model runs.

use std::path::PathBuf;
use std::time::Duration;

use hob_core::defaults::{CONCURRENT_SANDBOXES, SANDBOX_IMAGE, SANDBOX_TIMEOUT};

use crate::kind::{ABSOLUTE_PATHS, COUNT, FLAG, SECONDS, TEXT, expand, quote};
use crate::settings_schema::{Exposure, Kind, keys_of};

/// Settings of the sandbox.
#[derive(Debug, Clone)]
pub struct SandboxConfig {
    pub enabled: bool,
    pub runtime: SandboxRuntime,
    /// The container image; `bwrap` needs none.
    pub image: String,
    /// How long a run may take.
    pub timeout: Duration,
    /// How many runs there may be at once.
    pub max_concurrent: usize,
    /// Directories that code may read. Absolute, but symbolic links are not yet resolved.
    pub allowlist: Vec<PathBuf>,
}

/// What runs the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxRuntime {
    /// Docker or Podman if one of them has the image, bubblewrap otherwise.
    Auto,
    Docker,
    Podman,
    Bwrap,
    /// One of these three at a certain place.
    Path(PathBuf),
}

impl Default for SandboxConfig {
    fn default() -> Self {
        SandboxConfig {
            enabled: false,
            runtime: SandboxRuntime::Auto,
            image: SANDBOX_IMAGE.to_owned(),
            timeout: SANDBOX_TIMEOUT,
            max_concurrent: CONCURRENT_SANDBOXES,
            allowlist: Vec::new(),
        }
    }
}

const RUNTIME: Kind<SandboxRuntime> = Kind {
    expected: "auto, docker, podman, bwrap, or the path of one of them",
    read: |typed| match typed.text()?.trim() {
        "auto" => Some(SandboxRuntime::Auto),
        "docker" => Some(SandboxRuntime::Docker),
        "podman" => Some(SandboxRuntime::Podman),
        "bwrap" => Some(SandboxRuntime::Bwrap),
        path => expand(path, typed.home).filter(|path| path.is_absolute()).map(SandboxRuntime::Path),
    },
    write: |runtime| match runtime {
        SandboxRuntime::Auto => quote("auto"),
        SandboxRuntime::Docker => quote("docker"),
        SandboxRuntime::Podman => quote("podman"),
        SandboxRuntime::Bwrap => quote("bwrap"),
        SandboxRuntime::Path(path) => quote(&path.to_string_lossy()),
    },
    exposure: Exposure::OneOf(&["auto", "docker", "podman", "bwrap"]),
};

keys_of! {
    SandboxConfig {
        enabled: FLAG, "Whether agents may run code.";
        runtime: RUNTIME, "Program that runs the code: auto, docker, podman, bwrap, or the path of one of them.";
        image: TEXT, "Container image; bwrap needs none.";
        timeout: SECONDS, "Maximum duration of a run in seconds.";
        max_concurrent: COUNT, "Runs that may happen at the same time.";
        allowlist: ABSOLUTE_PATHS, "Directories that code may read, at the same path.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::read_as;

    #[test]
    fn a_runtime_is_one_of_three_or_a_path() {
        assert_eq!(read_as(&RUNTIME, "'podman'"), Some(SandboxRuntime::Podman));
        assert_eq!(
            read_as(&RUNTIME, "'~/bin/bwrap'"),
            Some(SandboxRuntime::Path("/home/ann/bin/bwrap".into()))
        );
        for bad in ["'dokcer'", "''", "'./docker'", "1"] {
            assert_eq!(read_as(&RUNTIME, bad), None, "{bad}");
        }
    }
}
