//! Model files: their directory, their headers, and their sources.
//!
//! Knows files, a model hub and `pip`. Knows nothing of llama.cpp, `config.toml`, the environment or the engines that load the
//! files.

mod built_in;
pub mod catalogue;
pub mod checksum;
pub mod convert;
mod directory;
pub mod fit;
pub mod gguf;
mod lock;
pub mod machine;
mod names;
mod projector;
pub mod pull;
mod service;
pub mod tuned;

pub use built_in::{BuiltInModel, built_in_models};
pub use catalogue::{CatalogueEntry, catalogue};
pub use directory::{ModelDirectory, ModelDirectoryError, StoredModel, find_by_name};
pub use fit::{ContextPlan, ContextWish, MAX_SLOTS, MachineRoom, MachineSpeed, ModelFootprint};
pub use gguf::{ContextShape, GgufError, GgufHeader, KvPrecision, MemoryEstimate, MemoryNeeds};
pub use lock::try_lock_model;
pub use projector::StoredProjector;
pub use pull::{DownloadProgress, DownloadProgressFn, DownloadStep, PullError, PullOptions, PullSpec, pull};
pub use service::{DownloadStream, ModelOffer, ModelService};
