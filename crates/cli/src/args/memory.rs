//! Arguments of `hob memory`.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use hob_core::defaults::{CHUNK_OVERLAP, CHUNK_SIZE};
use hob_core::{CollectionName, DEFAULT_COLLECTION};
use hob_memory::MemoryBackend;

use super::values::{backends, whole};

#[derive(Debug, Subcommand)]
pub enum MemoryCommand {
    Index(MemoryIndexArgs),
    Search(MemorySearchArgs),
    List(MemoryListArgs),
    /// Show the size of the memory, its collections, and how it is searched
    #[command(visible_alias = "status", after_help = examples! {
        "hob memory stats"
        "hob memory stats --collection team --json"
    })]
    Stats {
        /// Collections to count; all by default
        #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = CollectionName::parse)]
        collection: Vec<CollectionName>,
        /// Search method: sqlite, vector or hybrid [default: as configured, or by what is indexed]
        #[arg(short, long, value_parser = backends(), hide_possible_values = true)]
        backend: Option<MemoryBackend>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Remove a file, a directory or a note from memory; files stay on disk, except the copy of an uploaded file
    #[command(after_help = examples! {
        "hob memory forget ~/notes/old.md"
        "hob memory forget ~/notes"
        "hob memory forget ~/handbook --collection team"
    })]
    Forget {
        /// File or directory, even if it no longer exists, or the name of a note
        path: String,
        /// Collection to remove it from; all by default
        #[arg(long, value_name = "NAME", value_parser = CollectionName::parse)]
        collection: Option<CollectionName>,
    },
}

/// Index a file, or all files below a directory
///
/// Reads text, Markdown, HTML, code, PDF, CSV, JSON, e-mail and mailboxes (mbox), and documents, spreadsheets and presentations
/// (docx, xlsx, pptx, odt, ods, odp). Scanned pages and pictures are read if Tesseract is installed. Unchanged files are not read
/// again, and deleted files are removed from memory. Hidden and ignored files, symbolic links, keys and password files are skipped.
///
/// A document is in one or more collections. A member's key reads only the collections that it names ('hob key create --memory').
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob memory index ~/notes"
    "hob memory index ~/notes --watch      keep watching for changes"
    "hob memory index ~/notes -b hybrid    search by words and by meaning"
    "hob memory index ~/handbook --collection team"
})]
pub struct MemoryIndexArgs {
    /// File or directory to index
    pub path: PathBuf,

    /// Collection to add the documents to
    #[arg(long, value_name = "NAME", default_value = DEFAULT_COLLECTION, value_parser = CollectionName::parse)]
    pub collection: CollectionName,

    /// Search method: sqlite, vector or hybrid [default: as configured, or by what is indexed]
    #[arg(short, long, value_parser = backends(), hide_possible_values = true)]
    pub backend: Option<MemoryBackend>,

    #[arg(long, value_name = "TOKENS", value_parser = whole::<usize>)]
    #[arg(help = format!("Maximum tokens per passage [default: as configured, or {CHUNK_SIZE}]"))]
    pub chunk_size: Option<usize>,

    #[arg(long, value_name = "TOKENS", value_parser = whole::<usize>)]
    #[arg(help = format!("Tokens shared by adjacent passages [default: as configured, or {CHUNK_OVERLAP}]"))]
    pub chunk_overlap: Option<usize>,

    /// Keep running, and index files when they change
    #[arg(long)]
    pub watch: bool,

    /// Do not download an embedding model
    #[arg(long)]
    pub offline: bool,
}

/// Search the indexed documents
///
/// The query is plain text: quotes, operators and punctuation have no special meaning. Relevant passages are shown, or
/// those with most of the words if none is relevant. '[memory] min_word_share' and 'min_similarity' say what is relevant.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob memory search 'when was the boiler serviced'"
    "hob memory search --all boiler    also passages that are not relevant enough"
    "hob memory search -k 20 --json boiler | jq -r '.passages[].source'"
})]
pub struct MemorySearchArgs {
    /// Text to search for
    pub query: String,

    /// Collections to search; all by default
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = CollectionName::parse)]
    pub collection: Vec<CollectionName>,

    /// Also show passages that are not relevant enough
    #[arg(long)]
    pub all: bool,

    /// Number of passages to return, 1 to 100
    #[arg(short = 'k', long, default_value_t = 5, value_parser = top_k)]
    pub top_k: usize,

    /// Search method: sqlite, vector or hybrid [default: as configured, or by what is indexed]
    #[arg(short, long, value_parser = backends(), hide_possible_values = true)]
    pub backend: Option<MemoryBackend>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// Do not download an embedding model
    #[arg(long)]
    pub offline: bool,
}

/// List the indexed documents
///
/// With --skipped, lists the files that the last indexing did not add, with the reason.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob memory list"
    "hob memory list ~/notes --collection team"
    "hob memory list --skipped"
    "hob memory list --json | jq -r '.documents[].path'"
})]
pub struct MemoryListArgs {
    /// Only what is at this path or below
    pub path: Option<String>,

    /// Collections to list; all by default
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = CollectionName::parse)]
    pub collection: Vec<CollectionName>,

    /// List the skipped files instead, with the reason
    #[arg(long)]
    pub skipped: bool,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

fn top_k(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=100).contains(number));
    number.ok_or_else(|| "expected a whole number from 1 to 100".to_owned())
}
