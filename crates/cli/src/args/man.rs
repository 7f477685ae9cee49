//! `hob man` as it is typed.

use std::path::PathBuf;

use clap::Parser;

/// Write the manual pages of all commands into a directory
#[derive(Debug, Parser)]
pub struct ManArgs {
    /// The directory; it is made if it is not there
    pub directory: PathBuf,
}
