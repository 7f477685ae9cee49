//! Runs code of a model: without network, without the files of this machine, with limits on time, memory and output.
//!
//! A program sees its own scratch space and, read-only, the files on the owner's allowlist. The crate has one tool,
//! `code_interpreter`. It knows nothing of agents.

mod bwrap;
mod checked_job;
mod container;
mod error;
mod filter_pipe;
mod job;
mod launch;
mod memory_limit;
mod mounts;
mod options;
mod owner;
mod process;
mod python;
mod runtime;
mod runtime_check;
mod sandbox;
mod syscall_filter;
mod tool;

pub use error::SandboxError;
pub use job::{ExitReason, Job, JobResult, Mount, ScriptLanguage};
pub use options::{Runtime, SandboxLimits, SandboxOptions};
pub use sandbox::Sandbox;
pub use tool::CodeInterpreter;
