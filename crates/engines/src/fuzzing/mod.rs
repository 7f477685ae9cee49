//! Entries for the fuzz targets: everything that reads what an engine sends, and everything that writes what a caller sent.
//! Each takes any bytes and panics if a promise of the crate is broken. Only in builds with `--cfg fuzzing`.

pub(crate) mod packets;
mod readers;
mod writers;

pub use self::readers::{ndjson, sse};
pub use self::writers::write_requests;
pub use crate::cloud::anthropic_fuzzing::check_answer as anthropic_answer;
pub use crate::cloud::gemini_fuzzing::check_answer as gemini_answer;
pub use crate::ollama::fuzzing::check_answer as ollama_answer;
pub use crate::openai_compat::fuzzing::check_answer as openai_answer;
pub use crate::wire::direct_fuzzing::http1;
