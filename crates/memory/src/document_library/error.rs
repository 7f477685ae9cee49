//! Why a document or a folder was not added or removed.

use std::io;
use std::path::PathBuf;

use hob_core::CollectionName;
use thiserror::Error;

use crate::types::MemoryError;

#[derive(Debug, Error)]
pub enum DocumentLibraryError {
    #[error("{0}")]
    Name(String),
    #[error("the file has {bytes} bytes; the limit is {limit}")]
    TooLarge { bytes: u64, limit: u64 },
    #[error("the collection already has a document '{name}'. Use another name.")]
    Exists { name: String },
    #[error(
        "the collection '{collection}' has no room for another upload. Forget some of its documents, or index a folder."
    )]
    Full { collection: CollectionName },
    #[error("too many documents wait to be indexed. Try again in a moment.")]
    Busy,
    #[error("{0}")]
    Folder(String),
    #[error("there is no such folder")]
    NoFolder,
    #[error(
        "the folder {} is watched, so its documents would come back. Stop watching it on the page /documents, or delete the files.",
        folder.display()
    )]
    Watched { folder: PathBuf },
    #[error(
        "the folder {} is being indexed, so its documents would come back. Wait until that ends, or remove the folder on the page /documents.",
        folder.display()
    )]
    Indexing { folder: PathBuf },
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Memory(#[from] MemoryError),
}
