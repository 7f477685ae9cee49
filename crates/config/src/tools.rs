//! `[tools]`: what agents' tools may touch on this machine.

use std::path::PathBuf;

use crate::kind::{ABSOLUTE_PATHS, TEXTS};
use crate::settings_schema::keys_of;

/// Settings of the built-in tools.
#[derive(Debug, Clone, Default)]
pub struct ToolsConfig {
    /// Directories below which `file_read` may read. Absolute, but symbolic links are not yet resolved.
    pub file_roots: Vec<PathBuf>,
    /// Tools that send or save something, and may do so after a run has read text from outside: `NAME`, `PREFIX*`, `NAME:HOST`.
    pub allow_after_untrusted: Vec<String>,
}

keys_of! {
    ToolsConfig {
        file_roots: ABSOLUTE_PATHS, "Directories whose files agents may read, such as [\"~/notes\"].";
        allow_after_untrusted: TEXTS, "Tools that may send or save something after an agent has read text from outside, such as [\"memory_store\", \"web_fetch:example.org\", \"files__*\"].";
    }
}
