//! Entry for the fuzz target of IMAP answers. Only in builds with `--cfg fuzzing`.

pub use crate::imap::fuzzing::imap_answer;
