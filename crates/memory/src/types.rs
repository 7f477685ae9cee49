//! The nouns of the memory: queries, passages, notes, reports and errors.

use std::error::Error as StdError;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use hob_core::EngineError;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How passages are found.
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

impl MemoryBackend {
    pub const ALL: [MemoryBackend; 3] = [MemoryBackend::Sqlite, MemoryBackend::Vector, MemoryBackend::Hybrid];

    pub fn as_str(self) -> &'static str {
        match self {
            MemoryBackend::Sqlite => "sqlite",
            MemoryBackend::Vector => "vector",
            MemoryBackend::Hybrid => "hybrid",
        }
    }

    /// Reads the word that configuration and requests use.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|backend| backend.as_str() == word)
    }

    /// Whether it compares vectors.
    pub fn needs_vectors(self) -> bool {
        self != MemoryBackend::Sqlite
    }
}

/// What is looked for. Any text will do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryQuery {
    pub text: String,
    /// The most passages that are wanted.
    pub top_k: usize,
    /// `None` for the one the memory is set up with.
    pub backend: Option<MemoryBackend>,
}

/// What the line numbers of a passage or a block count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PositionUnit {
    #[default]
    Line,
    /// PDF has pages and no lines.
    Page,
    /// DOCX has neither.
    Paragraph,
}

/// A piece of a document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Passage {
    /// The file, or `note:...`.
    pub source: String,
    pub title: String,
    pub text: String,
    /// Which piece of its source it is, counted from 0.
    pub position: u32,
    pub place: PositionUnit,
    /// Where it begins and ends in its source, counted from 1.
    pub line: u32,
    pub end_line: u32,
    pub tokens: u32,
    /// How well it fits: more is better. Only scores of one search compare.
    pub score: f64,
    /// The words that were looked for, as places in the text.
    #[serde(skip)]
    pub marks: Vec<Range<usize>>,
}

impl Passage {
    /// Where it is, for people: `notes.md:12`.
    pub fn location(&self) -> Location<'_> {
        Location(self)
    }
}

/// Shows where a passage is.
pub struct Location<'a>(&'a Passage);

impl fmt::Display for Location<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Passage { source, place, line, .. } = self.0;
        match place {
            PositionUnit::Line => write!(formatter, "{source}:{line}"),
            PositionUnit::Page => write!(formatter, "{source} page {line}"),
            PositionUnit::Paragraph => write!(formatter, "{source} paragraph {line}"),
        }
    }
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchResults {
    pub backend: MemoryBackend,
    /// Best first.
    pub passages: Vec<Passage>,
}

/// Something to be remembered that is in no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub title: Option<String>,
    pub text: String,
}

/// What indexing did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct IndexReport {
    /// Files that were looked at.
    pub files: u64,
    /// Of these, files that were new or had changed.
    pub indexed: u64,
    pub unchanged: u64,
    /// Files that are no text: left out, and nothing is wrong with them.
    pub skipped: u64,
    /// Files that were known and are no longer there.
    pub removed: u64,
    /// Chunks of the files that were indexed.
    pub chunks: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Chunks that got a vector.
    pub vectors: u64,
    /// Files that could not be read; of very many the first are named.
    pub failed: u64,
    pub warnings: Vec<IndexWarning>,
}

/// A file that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IndexWarning {
    pub path: PathBuf,
    pub reason: String,
}

/// The memory in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct MemoryStats {
    pub backend: MemoryBackend,
    /// Files and notes.
    pub sources: u64,
    pub notes: u64,
    pub chunks: u64,
    pub tokens: u64,
    /// Bytes of the files when they were read.
    pub source_bytes: u64,
    pub database_bytes: u64,
    /// Chunks that can be found by meaning.
    pub vectors: u64,
    pub embedding_models: Vec<String>,
    /// In UTC; `None` when nothing ever was.
    pub last_indexed: Option<String>,
}

/// Why the memory does not do it.
#[derive(Debug, Error)]
pub enum MemoryError {
    #[error("the memory is empty. Index documents with 'hob memory index PATH'.")]
    Empty,

    #[error(
        "the memory has no vectors of the model '{model}', so it cannot be searched by meaning. Create them with 'hob memory \
         index PATH -b vector', or search with '-b sqlite'."
    )]
    NoVectors { model: String },

    /// There is no model to make vectors with.
    #[error("searching by meaning needs an embedding model: {reason}")]
    NoEmbedder { reason: String },

    #[error("the text cannot be turned into a vector: {0}")]
    Embed(#[from] EngineError),

    #[error("{} cannot be indexed: {reason}", path.display())]
    Path { path: PathBuf, reason: String },

    /// A note without words.
    #[error("there is nothing to remember: the text is empty")]
    EmptyNote,

    #[error("indexing was stopped; what was done is kept, and the next time goes on from there")]
    Stopped,

    /// The database failed, in words of its own.
    #[error(transparent)]
    Store(Box<dyn StdError + Send + Sync>),
}

impl MemoryError {
    /// Whether the same search by words could succeed.
    pub fn is_about_vectors(&self) -> bool {
        matches!(self, MemoryError::NoVectors { .. } | MemoryError::NoEmbedder { .. } | MemoryError::Embed(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_is_known_by_its_word() {
        for backend in MemoryBackend::ALL {
            assert_eq!(MemoryBackend::parse(backend.as_str()), Some(backend));
        }
        assert_eq!(MemoryBackend::parse("faiss"), None);
    }

    #[test]
    fn a_place_is_named_in_the_terms_of_its_file() {
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
