//! The nouns of the memory: queries, passages, notes, reports and errors.

use std::error::Error as StdError;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use hob_core::{CollectionSet, EngineError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryBackend {
    /// By their words.
    #[default]
    Sqlite,
    /// By their meaning.
    Vector,
    /// By both.
    Hybrid,
}

hob_core::named_variants! {
    MemoryBackend {
        Sqlite => "sqlite",
        Vector => "vector",
        Hybrid => "hybrid",
    }
}

impl MemoryBackend {
    pub fn needs_vectors(self) -> bool {
        self != MemoryBackend::Sqlite
    }
}

/// A search for any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryQuery {
    pub text: String,
    pub top_k: usize,
    /// `None` for the configured one.
    pub backend: Option<MemoryBackend>,
    /// Only their documents are found.
    pub collections: CollectionSet,
}

/// The unit of positions in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PositionUnit {
    #[default]
    Line,
    /// For PDF.
    Page,
    /// For DOCX and ODT.
    Paragraph,
    /// For spreadsheets.
    Row,
    /// For PPTX.
    Slide,
}

/// A piece of a document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Passage {
    /// The file, or `note:...`.
    pub source: String,
    pub title: String,
    pub text: String,
    /// The index in its source, from 0.
    pub position: u32,
    pub place: PositionUnit,
    /// The first and last position in its source, from 1.
    pub line: u32,
    pub end_line: u32,
    pub tokens: u32,
    /// By meaning the cosine similarity, by words a rank without a scale, and by both the similarity or the share of the question's words
    /// that it has, whichever is larger.
    pub score: f64,
    /// Byte ranges of the words of the question.
    #[serde(skip)]
    pub marks: Vec<Range<usize>>,
}

impl Passage {
    /// The location such as `notes.md:12`.
    pub fn location(&self) -> Location<'_> {
        Location(self)
    }
}

pub struct Location<'a>(&'a Passage);

impl fmt::Display for Location<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Passage { source, place, line, .. } = self.0;
        match place {
            PositionUnit::Line => write!(formatter, "{source}:{line}"),
            PositionUnit::Page => write!(formatter, "{source} page {line}"),
            PositionUnit::Paragraph => write!(formatter, "{source} paragraph {line}"),
            PositionUnit::Row => write!(formatter, "{source} row {line}"),
            PositionUnit::Slide => write!(formatter, "{source} slide {line}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchResults {
    pub backend: MemoryBackend,
    /// Best first.
    pub passages: Vec<Passage>,
}

/// A text to remember without a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub title: Option<String>,
    pub text: String,
}

/// The result of indexing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct IndexReport {
    /// Checked files.
    pub files: u64,
    /// New and changed files.
    pub indexed: u64,
    pub unchanged: u64,
    /// Unchanged files that are new in the collection.
    pub added: u64,
    /// Files that are not text.
    pub skipped: u64,
    /// Files that were read in part.
    pub partial: u64,
    /// Deleted files.
    pub removed: u64,
    /// Chunks of the indexed files.
    pub chunks: u64,
    /// Bytes of the indexed files.
    pub bytes: u64,
    /// New vectors.
    pub vectors: u64,
    /// Files that could not be read. Not all of them are named.
    pub failed: u64,
    pub warnings: Vec<IndexWarning>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IndexWarning {
    pub path: PathBuf,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct MemoryStats {
    /// What a search uses.
    pub backend: MemoryBackend,
    /// Whether Hob chose it: by words and by meaning if there are vectors, else by words.
    pub automatic: bool,
    /// Files and notes.
    pub sources: u64,
    pub notes: u64,
    pub chunks: u64,
    pub tokens: u64,
    /// Bytes of the indexed files.
    pub source_bytes: u64,
    /// `None` if only some collections are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database_bytes: Option<u64>,
    /// Chunks with a vector.
    pub vectors: u64,
    pub embedding_models: Vec<String>,
    /// By name.
    pub collections: Vec<CollectionSize>,
    /// In UTC.
    pub last_indexed: Option<String>,
}

/// How much is in a collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CollectionSize {
    pub name: String,
    pub sources: u64,
    pub chunks: u64,
}

/// Errors of the memory.
#[derive(Debug, Error)]
pub enum MemoryError {
    #[error("the memory is empty. Index documents with 'hob memory index PATH'.")]
    Empty,

    #[error(
        "the memory has no vectors of the model '{model}', so it cannot be searched by meaning. Create them with 'hob memory \
         index PATH -b vector', or search with '-b sqlite'."
    )]
    NoVectors { model: String },

    #[error(
        "the memory has no vectors, so it cannot be searched by meaning. Create them with 'hob memory index PATH -b vector', or \
         search with '-b sqlite'."
    )]
    NotEmbedded,

    /// There is no embedding model.
    #[error("searching by meaning needs an embedding model: {reason}")]
    NoEmbedder { reason: String },

    #[error("cannot create a vector: {0}")]
    Embed(#[from] EngineError),

    #[error("cannot index {}: {reason}", path.display())]
    Path { path: PathBuf, reason: String },

    /// A directory without files, whose indexed documents stay.
    #[error(
        "there are no files to index in {path}, but the memory has documents of it. Is its drive missing? To remove its documents, run \
         'hob memory forget {path}', or remove the folder on the page /documents.",
        path = path.display()
    )]
    NoFiles { path: PathBuf },

    /// A note without text.
    #[error("cannot save a note without text")]
    EmptyNote,

    #[error("indexing was stopped; finished files are kept, and the next run continues")]
    Stopped,

    /// The error of the database.
    #[error(transparent)]
    Store(Box<dyn StdError + Send + Sync>),
}

impl MemoryError {
    /// Whether the same search by words could succeed.
    pub fn is_about_vectors(&self) -> bool {
        matches!(
            self,
            MemoryError::NoVectors { .. }
                | MemoryError::NotEmbedded
                | MemoryError::NoEmbedder { .. }
                | MemoryError::Embed(_)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_has_a_name() {
        for backend in MemoryBackend::ALL {
            assert_eq!(MemoryBackend::parse(backend.as_str()), Some(backend));
        }
        assert_eq!(MemoryBackend::parse("faiss"), None);
    }

    #[test]
    fn a_location_uses_the_unit_of_its_file() {
        let passage = Passage {
            source: "a.pdf".into(),
            title: String::new(),
            text: String::new(),
            position: 0,
            place: PositionUnit::Page,
            line: 3,
            end_line: 4,
            tokens: 1,
            score: 0.0,
            marks: Vec::new(),
        };
        assert_eq!(passage.location().to_string(), "a.pdf page 3");
        let line = Passage { place: PositionUnit::Line, ..passage };
        assert_eq!(line.location().to_string(), "a.pdf:3");
    }
}
