//! Arguments of `hob man`.

use std::path::PathBuf;

use clap::Parser;

/// Write the manual pages of all commands to a directory
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob man ~/.local/share/man/man1"
})]
pub struct ManArgs {
    /// Output directory; created if missing
    pub directory: PathBuf,
}
