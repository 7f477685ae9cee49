//! The memory: Hob reads documents into text, cuts the text into chunks, and searches them.
//!
//! [`MemoryService`] is what callers use: index, search, store a note, and context for a question. [`memory_tools`] are the tools for
//! models. [`DocumentLibrary`] adds documents in the background, keeps watched folders up to date, and forgets. [`store`] has the
//! database of sources, chunks, words and vectors.
//!
//! Knows nothing of `config.toml`, HTTP or agents. The caller passes in the engine for vectors.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests start programs with the environment they were given")
)]

mod backend_choice;
pub mod chunk;
pub mod context;
mod document_library;
mod embed;
mod forget;
pub mod index;
mod listing;
mod note;
mod open;
mod question_collections;
pub mod read;
mod relevance;
pub mod search;
mod service;
pub mod store;
pub mod tokens;
pub mod tools;
mod types;
mod vector_quantization;
mod vector_signs;
mod word_plan;
mod word_query;

pub use chunk::{Chunk, ChunkOptions, ChunkOptionsError, chunk};
pub use context::ContextBudget;
pub use document_library::{
    DocumentLibrary, DocumentLibraryError, DocumentLibraryOptions, DocumentUpload, FolderRequest,
    ForgetReport, IndexJob, JobKind, JobScope, JobState, PayerScope, UploadPayer, WatchOptions,
    move_unknown_uploads,
};
pub use embed::{Embedder, EmbedderDownload, EmbedderSource, NoEmbedder};
pub use index::{IndexOptions, IndexProgress, IndexProgressFn};
pub use question_collections::question_collections;
pub use read::{
    AttachmentReader, Document, FileText, MAX_ATTACHMENT_BYTES, OcrProgram, ReadError, ReadLimits,
    ReaderProcess, document_kind, read_file,
};
pub use relevance::RelevanceFloor;
pub use search::SearchPurpose;
pub use service::{IndexRequest, MemoryOptions, MemoryService, ProgressListener};
pub use store::{
    COPY_TABLES, CatalogPage, CatalogPosition, CollectionSummary, DocumentCatalog, DocumentFolder,
    MIGRATIONS, MemoryStore, POSTGRES_MIGRATIONS, PostgresMemoryStore, RecentDocument, RemovedSources,
    SkippedFile, SqliteMemoryStore, StoredDocument,
};
pub use tools::memory_tools;
pub use types::{
    CollectionSize, IndexReport, IndexWarning, MemoryBackend, MemoryError, MemoryQuery, MemoryStats, Note,
    Passage, PositionUnit, SearchResults,
};
pub use word_query::WordQuery;

#[cfg(test)]
mod processes_tests;
#[cfg(test)]
mod testing;
