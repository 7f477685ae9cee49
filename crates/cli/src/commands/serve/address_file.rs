//! Where the server listens, written down while it runs: `--port` may have led it elsewhere than the configuration says.

use std::fs::OpenOptions;
use std::io::{self, Seek, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::running_server::{MAX_ADDRESSES, address_file, addresses, read_address_file};

/// The entry of one server in the address file. Dropping it removes the entry.
pub struct AddressEntry {
    home: PathBuf,
    address: SocketAddr,
}

impl AddressEntry {
    /// Writes the address down. Where that is not possible, the server is only harder to find.
    pub fn add(home: &Path, address: SocketAddr) -> Self {
        change(home, |mut addresses| {
            addresses.retain(|other| *other != address);
            addresses.insert(0, address);
            addresses.truncate(MAX_ADDRESSES);
            addresses
        });
        AddressEntry { home: home.to_owned(), address }
    }
}

impl Drop for AddressEntry {
    fn drop(&mut self) {
        change(&self.home, |mut addresses| {
            addresses.retain(|other| *other != self.address);
            addresses
        });
    }
}

fn change(home: &Path, change: impl FnOnce(Vec<SocketAddr>) -> Vec<SocketAddr>) {
    if let Err(error) = try_change(home, change) {
        tracing::debug!(%error, "where the server listens is not written down");
    }
}

/// In place, while no other server of the home does the same. The file stays when it is empty: whoever waits for it would
/// otherwise write into one that is gone.
fn try_change(home: &Path, change: impl FnOnce(Vec<SocketAddr>) -> Vec<SocketAddr>) -> io::Result<()> {
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(address_file(home))?;
    file.lock()?;
    // A file that is not text is overwritten.
    let listed = addresses(&read_address_file(&file).unwrap_or_default());
    let text: String = change(listed).iter().map(|address| format!("{address}\n")).collect();
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::running_server::known_addresses;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn an_address_is_noted_while_the_server_runs() {
        let home = tempfile::tempdir().expect("a directory");
        let listed = || known_addresses(home.path());
        let [one, two, three] = ["0.0.0.0:8000", "[::1]:9000", "[::1]:9001"].map(address);
        assert_eq!(listed(), []);
        let first = AddressEntry::add(home.path(), one);
        assert_eq!(listed(), [one]);
        let second = AddressEntry::add(home.path(), two);
        assert_eq!(listed(), [two, one], "the last one first");
        drop(second);
        assert_eq!(listed(), [one], "the first still runs");
        let third = AddressEntry::add(home.path(), three);
        drop(first);
        assert_eq!(listed(), [three], "each takes its own line away");
        drop(third);
        assert_eq!(listed(), []);
    }

    #[test]
    fn servers_that_were_killed_do_not_fill_the_note() {
        let home = tempfile::tempdir().expect("a directory");
        for port in 1..=40 {
            std::mem::forget(AddressEntry::add(home.path(), SocketAddr::from(([127, 0, 0, 1], port))));
        }
        let ports: Vec<u16> = known_addresses(home.path()).iter().map(SocketAddr::port).collect();
        assert_eq!(ports, [40, 39, 38, 37, 36, 35, 34, 33]);
        std::mem::forget(AddressEntry::add(home.path(), SocketAddr::from(([127, 0, 0, 1], 38))));
        assert_eq!(known_addresses(home.path())[0].port(), 38, "a port that is used again stands there once");
        assert_eq!(known_addresses(home.path()).len(), 8);
    }

    #[test]
    fn a_note_that_cannot_be_read_or_written_is_none() {
        let home = tempfile::tempdir().expect("a directory");
        for odd in [&b"somewhere"[..], b"\xff\xfe", &[b'1'; 1 << 16]] {
            std::fs::write(address_file(home.path()), odd).expect("a file");
            assert_eq!(known_addresses(home.path()), []);
        }
        let entry = AddressEntry::add(home.path(), address("127.0.0.1:1"));
        assert_eq!(known_addresses(home.path()), [address("127.0.0.1:1")]);
        drop(entry);
        drop(AddressEntry::add(&home.path().join("nowhere"), address("127.0.0.1:1")));
    }
}
