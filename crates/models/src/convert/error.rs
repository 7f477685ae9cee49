//! Why a conversion failed.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    #[error("cannot read its weights ({0})")]
    Read(#[source] io::Error),
    #[error("cannot write the new file ({0})")]
    Write(#[source] io::Error),
    #[error("its {file} is not valid: {reason}")]
    Bad { file: &'static str, reason: String },
}

impl ConvertError {
    pub(super) fn bad(file: &'static str, reason: impl Into<String>) -> Self {
        ConvertError::Bad { file, reason: reason.into() }
    }
}
