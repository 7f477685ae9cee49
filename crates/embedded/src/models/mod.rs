//! Model files: reading what they are, keeping them, fetching them.
//!
//! Knows files, a model hub and `pip`; knows nothing of llama.cpp, of `config.toml` or of the environment.

pub mod catalog;
pub mod checksum;
pub mod convert;
pub mod gguf;
pub(crate) mod lock;
mod names;
pub mod pull;
pub mod store;

pub use catalog::{CATALOG, CatalogEntry};
pub use gguf::{GgufError, Header, MemoryEstimate};
pub use pull::{Progress, PullError, PullOptions, PullSpec, Step, pull};
pub use store::{ModelStore, StoreError, StoredModel};
