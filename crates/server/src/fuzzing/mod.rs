//! Entries for the fuzz targets: everything that reads the body of a request. Each takes any bytes and panics if a promise of the
//! crate is broken. Only in builds with `--cfg fuzzing`.

pub(crate) mod json;

pub use crate::anthropic::fuzzing::messages;
pub use crate::ollama::fuzzing::{ollama, template};
pub use crate::openai::fuzzing::{chat, completion, inputs, multipart};
pub use crate::responses::fuzzing::response;
