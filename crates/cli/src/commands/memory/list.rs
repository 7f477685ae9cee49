//! `hob memory list`.

use std::io::{self, IsTerminal};

use anyhow::Result;
use hob_config::Config;
use hob_memory::{SkippedFile, StoredDocument, document_kind};
use serde::Serialize;
use serde_json::json;

use super::short_paths::ShortPaths;
use crate::args::{MemoryListArgs, NetworkAccess};
use crate::output;
use crate::output::table::{self, Column};
use crate::output::text::one_line;
use crate::output::time;

const DOCUMENTS: [Column; 5] = [
    Column::Words("DOCUMENT"),
    Column::Words("KIND"),
    Column::Numbers("PASSAGES"),
    Column::Words("INDEXED"),
    Column::Words("COLLECTION"),
];

const SKIPPED: [Column; 3] = [Column::Words("FILE"), Column::Words("REASON"), Column::Words("COLLECTION")];

/// A document with its kind.
#[derive(Serialize)]
struct ListedDocument<'a> {
    #[serde(flatten)]
    document: &'a StoredDocument,
    kind: &'static str,
}

pub async fn run(config: &Config, args: MemoryListArgs) -> Result<()> {
    let documents = super::documents(config, NetworkAccess::Offline)?;
    let collections = super::selected(&documents, args.collection).await?;
    let below = args.path.as_deref();
    if args.skipped {
        let skipped = documents.skipped_files(collections, below).await?;
        match args.json {
            true => output::json(&json!({ "skipped": skipped }))?,
            false if skipped.is_empty() => output::note("No files were skipped."),
            false => table::print(&SKIPPED, &skipped_rows(&skipped))?,
        }
        return Ok(());
    }
    let listed = documents.documents(collections, below).await?;
    match args.json {
        true => {
            let listed: Vec<ListedDocument> = listed
                .iter()
                .map(|document| ListedDocument { document, kind: document_kind(&document.path) })
                .collect();
            output::json(&json!({ "documents": listed }))?;
        }
        false if listed.is_empty() => output::note(match below {
            None => "The memory is empty. Index documents with 'hob memory index PATH'.",
            Some(_) => "No documents are indexed there. 'hob memory list' lists all.",
        }),
        false => table::print(&DOCUMENTS, &document_rows(&listed))?,
    }
    Ok(())
}

/// Short paths for people, and whole ones for programs.
fn shown_paths() -> ShortPaths {
    if io::stdout().is_terminal() { ShortPaths::from_process() } else { ShortPaths::default() }
}

fn document_rows(documents: &[StoredDocument]) -> Vec<Vec<String>> {
    let paths = shown_paths();
    let row = |document: &StoredDocument| {
        vec![
            one_line(&paths.shortened(document.path.clone())),
            document_kind(&document.path).to_owned(),
            document.chunks.to_string(),
            time::to_the_second(document.indexed.timestamp()),
            document.collections.join(", "),
        ]
    };
    documents.iter().map(row).collect()
}

fn skipped_rows(skipped: &[SkippedFile]) -> Vec<Vec<String>> {
    let paths = shown_paths();
    let row = |file: &SkippedFile| {
        vec![one_line(&paths.shortened(file.path.clone())), one_line(&file.reason), file.collection.clone()]
    };
    skipped.iter().map(row).collect()
}
