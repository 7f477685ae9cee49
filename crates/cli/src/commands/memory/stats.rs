//! `hob memory stats`.

use anyhow::Result;
use hob_config::Config;
use hob_core::{CollectionName, DEFAULT_COLLECTION};
use hob_memory::{MemoryBackend, MemoryStats};

use crate::args::NetworkAccess;
use crate::output;
use crate::output::OutputFormat;
use crate::output::number::{counted, memory};
use crate::output::table;
use crate::output::text::one_line;
use crate::output::time;

pub async fn run(
    config: &Config,
    collections: Vec<CollectionName>,
    backend: Option<MemoryBackend>,
    format: OutputFormat,
) -> Result<()> {
    let documents = super::documents(config, NetworkAccess::Offline)?;
    let collections = super::selected(&documents, collections).await?;
    let mut stats = documents.stats(collections).await?;
    if let Some(backend) = backend {
        (stats.backend, stats.automatic) = (backend, false);
    }
    match format {
        OutputFormat::Json => output::json(&stats)?,
        OutputFormat::Text if stats.sources == 0 => {
            output::note("The memory is empty. Index documents with 'hob memory index PATH'.");
        }
        OutputFormat::Text => table::print_facts(&facts(&stats))?,
    }
    Ok(())
}

fn facts(stats: &MemoryStats) -> Vec<(&'static str, String)> {
    let MemoryStats { sources, notes, chunks, tokens, vectors, .. } = stats;
    let models: Vec<String> = stats.embedding_models.iter().map(|model| one_line(model)).collect();
    let vectors = match vectors {
        0 if stats.backend.needs_vectors() => {
            "none; create them with 'hob memory index PATH -b vector'".to_owned()
        }
        0 => "none".to_owned(),
        some => format!("{some} of {}, by {}", counted(*chunks, "passage"), models.join(", ")),
    };
    let size = match stats.database_bytes {
        Some(bytes) => format!("{} read, {} stored", memory(stats.source_bytes), memory(bytes)),
        None => format!("{} read", memory(stats.source_bytes)),
    };
    let facts = [
        ("Backend", Some(backend(stats))),
        ("Sources", Some(format!("{sources}, including {}", counted(*notes, "note")))),
        ("Passages", Some(format!("{chunks}, {}", counted(*tokens, "token")))),
        ("Vectors", Some(vectors)),
        ("Collections", collections(stats)),
        ("Size", Some(size)),
        ("Indexed", stats.last_indexed.as_deref().map(without_fraction)),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// What a search uses, and why.
fn backend(stats: &MemoryStats) -> String {
    let name = stats.backend.as_str();
    match (stats.automatic, stats.backend) {
        (false, _) => name.to_owned(),
        (true, MemoryBackend::Hybrid) => format!("{name} (automatic: by words and by meaning)"),
        (true, _) => format!("{name} (automatic: by words, because there are no vectors)"),
    }
}

/// The collections with the number of their sources. Without named ones, everything is in the owner's.
fn collections(stats: &MemoryStats) -> Option<String> {
    if stats.collections.iter().all(|size| size.name == DEFAULT_COLLECTION) {
        return None;
    }
    let shown = stats.collections.iter().map(|size| format!("{} ({})", size.name, size.sources));
    Some(shown.collect::<Vec<_>>().join(", "))
}

/// The time without fractions of a second.
fn without_fraction(moment: &str) -> String {
    moment.parse().map_or_else(|_| one_line(moment), time::to_the_second)
}
