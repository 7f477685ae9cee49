//! Entry for the fuzz target of tokens. Only in builds with `--cfg fuzzing`.

pub use crate::identity::fuzzing::token;
