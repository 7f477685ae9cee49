//! The control sockets of the servers of a home: each is in the home directory, and only its user can open it. `hob reload` sends one line,
//! and gets the outcome as JSON. Questions have their own messages, in `answers`.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The line that asks for a reload.
pub const RELOAD: &str = "reload";

const BEGIN: &str = "server.";
const END: &str = ".sock";

/// What a reload changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadReport {
    /// Settings that have a new value, in effect now.
    pub applied: Vec<String>,
    /// Settings that have a new value, in effect after a restart.
    pub after_restart: Vec<String>,
    pub certificate_renewed: bool,
}

/// The outcome of a reload.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ReloadOutcome {
    Done(ReloadReport),
    /// Nothing changed.
    Failed {
        error: String,
    },
}

/// The socket of the server with this id.
#[cfg_attr(not(all(unix, feature = "server")), expect(dead_code, reason = "this build has no such socket"))]
pub fn socket_path(home: &Path, server: &str) -> PathBuf {
    home.join(format!("{BEGIN}{server}{END}"))
}

/// The sockets in a home, also those of servers that were killed.
pub fn sockets(home: &Path) -> io::Result<Vec<PathBuf>> {
    let is_socket = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(BEGIN) && name.ends_with(END)
    };
    let entries = match std::fs::read_dir(home) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_socket).collect();
    found.sort();
    Ok(found)
}

/// Whether an attempt to connect shows that no server listens there any more.
#[cfg(unix)]
pub fn is_abandoned(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_found_by_their_names() {
        let home = tempfile::tempdir().expect("a directory");
        for name in ["server.address", "server.2-7.sock", "server.1-7.sock", "hob.db"] {
            std::fs::write(home.path().join(name), "").expect("a file");
        }
        let expected = [socket_path(home.path(), "1-7"), socket_path(home.path(), "2-7")];
        assert_eq!(sockets(home.path()).expect("a list"), expected);
        assert_eq!(sockets(&home.path().join("nowhere")).expect("no list"), [] as [PathBuf; 0]);
    }

    #[test]
    fn an_outcome_is_a_report_or_an_error() {
        for outcome in [
            ReloadOutcome::Done(ReloadReport {
                applied: vec!["server.api_key".into()],
                after_restart: Vec::new(),
                certificate_renewed: true,
            }),
            ReloadOutcome::Failed { error: "no".into() },
        ] {
            let text = serde_json::to_string(&outcome).expect("JSON");
            assert_eq!(serde_json::from_str::<ReloadOutcome>(&text).expect("the same"), outcome, "{text}");
        }
    }
}
