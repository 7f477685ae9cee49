//! `[tools]`: what agents' tools may touch on this machine.

use std::path::PathBuf;

use crate::keys::keys_of;
use crate::kind::ABSOLUTE_PATHS;

/// Settings of the built-in tools.
#[derive(Debug, Clone, Default)]
pub struct ToolsConfig {
    /// Directories below which `file_read` may read. Absolute, but symbolic links are not yet resolved.
    pub file_roots: Vec<PathBuf>,
}

keys_of! {
    ToolsConfig {
        file_roots: ABSOLUTE_PATHS, "Directories whose files agents may read, such as [\"~/notes\"].";
    }
}
