//! Where the server listens, written down while it runs: `--port` may have led it elsewhere than the configuration says.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::neighbour::{last_noted, note};

/// The note. With its value it becomes again what it was before, unless another server has written its own meanwhile.
pub struct Presence {
    home: PathBuf,
    address: SocketAddr,
    /// Where another server of the same home listens, or did.
    before: Option<SocketAddr>,
}

impl Presence {
    /// Writes the address down. Where that is not possible, the server is only harder to find.
    pub fn announce(home: &Path, address: SocketAddr) -> Self {
        let before = last_noted(home).filter(|before| *before != address);
        write(home, address);
        Presence { home: home.to_owned(), address, before }
    }
}

fn write(home: &Path, address: SocketAddr) {
    if let Err(error) = fs::write(note(home), format!("{address}\n")) {
        tracing::debug!(%error, "where the server listens is not written down");
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        if last_noted(&self.home) != Some(self.address) {
            return;
        }
        match self.before {
            // Whoever reads it asks whether somebody is there still.
            Some(before) => write(&self.home, before),
            None => {
                // A note that stays is one that leads to nobody.
                let _ = fs::remove_file(note(&self.home));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn an_address_is_noted_while_the_server_runs() {
        let home = tempfile::tempdir().expect("a directory");
        assert_eq!(last_noted(home.path()), None);
        let first = Presence::announce(home.path(), address("0.0.0.0:8000"));
        assert_eq!(last_noted(home.path()), Some(address("0.0.0.0:8000")));
        let second = Presence::announce(home.path(), address("[::1]:9000"));
        drop(second);
        assert_eq!(last_noted(home.path()), Some(address("0.0.0.0:8000")), "the first still runs");
        let third = Presence::announce(home.path(), address("[::1]:9001"));
        drop(first);
        assert_eq!(last_noted(home.path()), Some(address("[::1]:9001")), "it is not the first one's to take");
        drop(third);
        fs::remove_file(note(home.path())).expect("what was there before");
        drop(Presence::announce(home.path(), address("0.0.0.0:8000")));
        assert_eq!(last_noted(home.path()), None);
    }

    #[test]
    fn a_note_that_cannot_be_read_or_written_is_none() {
        let home = tempfile::tempdir().expect("a directory");
        fs::write(note(home.path()), "somewhere").expect("a file");
        assert_eq!(last_noted(home.path()), None);
        drop(Presence::announce(&home.path().join("nowhere"), address("127.0.0.1:1")));
    }
}
