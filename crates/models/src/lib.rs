//! Model files: their directory, their headers, and their sources.
//!
//! Knows files, a model hub and `pip`. Knows nothing of llama.cpp, `config.toml` or the environment, and the engine that loads the
//! files only as a [`ModelFileEngine`].

mod available_models;
pub mod catalogue;
pub mod checksum;
pub mod convert;
mod directory;
mod failure_kind;
pub mod fit;
pub mod gguf;
mod local_models;
mod lock;
pub mod machine;
mod names;
mod projector;
pub mod pull;
mod pull_steps;
mod service;
pub mod tuned;

pub use available_models::BuiltInModel;
pub use catalogue::{CatalogueEntry, catalogue};
pub use directory::{ModelDirectory, ModelDirectoryError, StoredModel, find_by_name};
pub use failure_kind::ModelFailureKind;
pub use fit::{ContextPlan, ContextWish, MAX_SLOTS, MachineRoom, MachineSpeed, ModelFootprint};
pub use gguf::{ContextShape, GgufError, GgufHeader, KvPrecision, MemoryEstimate, MemoryNeeds};
pub use local_models::{DraftPlan, FirstRun, HubSearch, LocalModels, ModelFileEngine, ModelSearch, OfferFn};
pub use lock::try_lock_model;
pub use projector::StoredProjector;
pub use pull::{DownloadProgress, DownloadProgressFn, DownloadStep, PullError, PullOptions, PullSpec, pull};
pub use pull_steps::{PullStep, is_pulled_by_hob};
pub use service::{ModelOffer, ModelService};
