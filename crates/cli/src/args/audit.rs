//! Arguments of `hob audit`.

use std::path::PathBuf;

use clap::Subcommand;

use super::values::count;

#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List the newest changes, newest first
    #[command(after_help = examples! {
        "hob audit list"
        "hob audit list -n 5 --json"
    })]
    List {
        /// Maximum number of changes to show
        #[arg(short = 'n', long, default_value_t = 20, value_name = "NUMBER", value_parser = count)]
        lines: usize,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Export every change, oldest first, one JSON object per line
    #[command(after_help = examples! {
        "hob audit export -o audit.jsonl"
    })]
    Export {
        /// File to write instead of stdout; an existing file is overwritten
        #[arg(short, long)]
        output: Option<PathBuf>,
    },
    /// Check that no change was altered, removed or inserted
    ///
    /// Prints the number and the hash of the last change. Note them elsewhere: only they show that the end of the log is complete.
    #[command(after_help = examples! {
        "hob audit verify"
    })]
    Verify,
}
