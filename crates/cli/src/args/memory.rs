//! `hob memory` as it is typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use hob_core::MemoryBackend;

use super::values::{backends, whole};

#[derive(Debug, Subcommand)]
pub enum MemoryCommand {
    Index(MemoryIndexArgs),
    Search(MemorySearchArgs),
    /// Show how much is remembered
    Stats {
        /// How passages are to be found: sqlite, vector or hybrid [default: as configured, or sqlite]
        #[arg(short, long, value_parser = backends(), hide_possible_values = true)]
        backend: Option<MemoryBackend>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Forget a file, everything below a directory, or a note; the files themselves stay
    Forget {
        /// The file or directory, even if it is gone, or a note by its name
        path: String,
    },
}

/// Take in a file, or all files below a directory
///
/// Text, Markdown, HTML, code, PDF, DOCX, CSV, JSON and e-mail. Files that did not change are not read again, and files
/// that are gone are forgotten. Hidden and ignored files, links, keys and password files are left out.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob memory index ~/notes"
    "hob memory index ~/notes --watch      and again whenever something changes"
    "hob memory index ~/notes -b hybrid    to be found by words and by meaning"
})]
pub struct MemoryIndexArgs {
    /// The file or directory
    pub path: PathBuf,

    /// How passages are to be found: sqlite, vector or hybrid [default: as configured, or sqlite]
    #[arg(short, long, value_parser = backends(), hide_possible_values = true)]
    pub backend: Option<MemoryBackend>,

    /// Most tokens of one passage [default: as configured, or 512]
    #[arg(long, value_name = "TOKENS", value_parser = whole::<usize>)]
    pub chunk_size: Option<usize>,

    /// Tokens that neighbouring passages share [default: as configured, or 64]
    #[arg(long, value_name = "TOKENS", value_parser = whole::<usize>)]
    pub chunk_overlap: Option<usize>,

    /// Stay, and take in what changes
    #[arg(long)]
    pub watch: bool,

    /// Fetch no embedding model
    #[arg(long)]
    pub offline: bool,
}

/// Find passages of the documents that were indexed
///
/// Any text will do: quotes, operators and punctuation are text too.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob memory search 'when was the boiler serviced'"
    "hob memory search -k 20 --json boiler | jq -r '.passages[].source'"
})]
pub struct MemorySearchArgs {
    /// What to look for
    pub query: String,

    /// How many passages, 1 to 100
    #[arg(short = 'k', long, default_value_t = 5, value_parser = top_k)]
    pub top_k: usize,

    /// How they are found: sqlite, vector or hybrid [default: as configured, or sqlite]
    #[arg(short, long, value_parser = backends(), hide_possible_values = true)]
    pub backend: Option<MemoryBackend>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// Fetch no embedding model
    #[arg(long)]
    pub offline: bool,
}

fn top_k(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=100).contains(number));
    number.ok_or_else(|| "expected a whole number from 1 to 100".to_owned())
}
