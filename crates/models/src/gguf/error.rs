//! Why a file is not a valid model.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    #[error("cannot read it ({0})")]
    Io(#[source] io::Error),
    #[error("it is not a GGUF file but {0}")]
    Foreign(&'static str),
    #[error("it is a big-endian GGUF file, which this machine cannot run")]
    BigEndian,
    #[error("it has GGUF version {0}; only versions 2 and 3 are supported")]
    Version(u32),
    #[error("it ends inside its header")]
    CutShort,
    #[error("its header has {what} = {found}, but the limit is {limit}")]
    TooBig { what: &'static str, found: u64, limit: u64 },
    #[error("its header is malformed: {0}")]
    Malformed(&'static str),
}
