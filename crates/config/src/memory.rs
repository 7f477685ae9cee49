//! `[memory]`: how the user's documents are indexed and searched.

use hob_core::defaults::{CHUNK_OVERLAP, CHUNK_SIZE, MIN_SIMILARITY, MIN_WORD_SHARE};

use crate::kind::{COUNT, COUNT_OR_NONE, FLAG, OPTIONAL_TEXT, SHARE, quote};
use crate::settings_schema::{Exposure, Kind, keys_of};

/// Settings of the memory.
#[derive(Debug, Clone)]
pub struct MemoryConfig {
    pub backend: MemoryBackendName,
    /// The least share of a question's words that makes a passage relevant.
    pub min_word_share: f64,
    /// The least cosine similarity that makes a passage relevant.
    pub min_similarity: f64,
    /// The most tokens of one chunk.
    pub chunk_size: usize,
    /// Tokens that two neighbouring chunks share.
    pub chunk_overlap: usize,
    /// Whether the model gets passages of the memory with a question.
    pub context: bool,
    /// The number of passages with a question.
    pub context_passages: usize,
    /// The most tokens of them together.
    pub context_tokens: usize,
    /// The engine's model that turns text into vectors; `None` is the one that comes with Hob.
    pub embedding_model: Option<String>,
    /// The languages of scanned pages and pictures, as Tesseract names them; `None` for its default.
    pub ocr_languages: Option<String>,
}

/// How passages are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryBackendName {
    /// By both if there are vectors, else by words.
    Auto,
    /// By their words.
    Sqlite,
    /// By their meaning.
    Vector,
    /// By both.
    Hybrid,
}

hob_core::named_variants! {
    MemoryBackendName {
        Auto => "auto",
        Sqlite => "sqlite",
        Vector => "vector",
        Hybrid => "hybrid",
    }
}

impl Default for MemoryConfig {
    fn default() -> Self {
        MemoryConfig {
            backend: MemoryBackendName::Auto,
            min_word_share: MIN_WORD_SHARE,
            min_similarity: MIN_SIMILARITY,
            chunk_size: CHUNK_SIZE,
            chunk_overlap: CHUNK_OVERLAP,
            context: true,
            context_passages: 5,
            context_tokens: 1500,
            embedding_model: None,
            ocr_languages: None,
        }
    }
}

const BACKEND: Kind<MemoryBackendName> = Kind {
    expected: "auto, sqlite, vector or hybrid",
    read: |typed| MemoryBackendName::parse(typed.text()?.trim()),
    write: |backend| quote(backend.as_str()),
    exposure: Exposure::OneOf(&["auto", "sqlite", "vector", "hybrid"]),
};

keys_of! {
    MemoryConfig {
        backend: BACKEND, "Search method: sqlite (by words), vector (by meaning), hybrid (both), or auto (hybrid if there are vectors, else sqlite).";
        min_word_share: SHARE, "Minimum share of a question's words in a relevant passage; rare words count more, and short questions need more. 0 for any.";
        min_similarity: SHARE, "Minimum cosine similarity of question and relevant passage; depends on the embedding model, and short questions need more. 0 for any.";
        chunk_size: COUNT, "Maximum size of a passage in tokens.";
        chunk_overlap: COUNT_OR_NONE, "Overlap of neighbouring passages in tokens.";
        context: FLAG, "Whether 'hob ask' and agents get relevant passages from the memory.";
        context_passages: COUNT, "Maximum number of these passages.";
        context_tokens: COUNT, "Maximum size of these passages together in tokens.";
        embedding_model: OPTIONAL_TEXT, "Embedding model of the engine; \"\" is Hob's own.";
        ocr_languages: OPTIONAL_TEXT, "Languages of scanned pages and pictures, such as \"eng+deu\"; needs Tesseract. \"\" is its default.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::read_as;

    #[test]
    fn a_backend_is_one_of_four_words() {
        for backend in MemoryBackendName::ALL {
            assert_eq!(read_as(&BACKEND, &quote(backend.as_str())), Some(backend));
        }
        for bad in ["'faiss'", "''", "1"] {
            assert_eq!(read_as(&BACKEND, bad), None, "{bad}");
        }
    }
}
