//! Model files: the directory they lie in, what their headers say, where they come from.
//!
//! Knows files, a model hub and `pip`. Knows nothing of llama.cpp, of `config.toml`, of the environment or of the engines that load
//! the files.

pub mod catalogue;
pub mod checksum;
pub mod convert;
mod directory;
pub mod gguf;
mod lock;
mod names;
pub mod pull;
pub mod tuned;

pub use catalogue::{CATALOGUE, CatalogueEntry};
pub use directory::{ModelDirectory, ModelDirectoryError, StoredModel};
pub use gguf::{GgufError, GgufHeader, MemoryEstimate};
pub use lock::ModelLock;
pub use pull::{DownloadProgress, DownloadStep, PullError, PullOptions, PullSpec, pull};
