//! The address file: lists the addresses of running servers, because `--port` overrides the configured port. `hob` and `hob
//! health` read it.

use std::fs::OpenOptions;
use std::io::{self, Seek, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::running_server::{MAX_ADDRESSES, address_file, read_address_file};

/// The entry of one server in the address file. Dropping it removes the entry.
pub struct AddressEntry {
    home: PathBuf,
    line: AddressLine,
}

/// A line of the address file.
#[derive(PartialEq, Eq)]
struct AddressLine {
    address: SocketAddr,
    /// Names the server that wrote the line: after a restart, the old one may still be answering while the new one listens at
    /// the same address.
    server: String,
}

impl AddressEntry {
    /// Adds the address. Failures are only logged: `hob` then finds the server at its configured address only.
    pub fn add(home: &Path, address: SocketAddr) -> Self {
        let server = server_id();
        change(home, |mut lines| {
            lines.retain(|other| other.address != address);
            lines.insert(0, AddressLine { address, server: server.clone() });
            lines.truncate(MAX_ADDRESSES);
            lines
        });
        AddressEntry { home: home.to_owned(), line: AddressLine { address, server } }
    }
}

impl Drop for AddressEntry {
    fn drop(&mut self) {
        change(&self.home, |mut lines| {
            lines.retain(|other| *other != self.line);
            lines
        });
    }
}

/// The process id and the time: in a container, every server has the same process id.
pub fn server_id() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", process::id(), now.as_nanos())
}

fn address_lines(text: &str) -> Vec<AddressLine> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let address = words.next()?.parse().ok()?;
        Some(AddressLine { address, server: words.next().unwrap_or_default().to_owned() })
    };
    text.lines().filter_map(line).take(MAX_ADDRESSES).collect()
}

fn change(home: &Path, change: impl FnOnce(Vec<AddressLine>) -> Vec<AddressLine>) {
    if let Err(error) = try_change(home, change) {
        tracing::debug!(%error, "where the server listens is not written down");
    }
}

/// Changes the file in place, under a lock. An empty file is kept: a process that waits for the lock would otherwise write
/// into a deleted file.
fn try_change(home: &Path, change: impl FnOnce(Vec<AddressLine>) -> Vec<AddressLine>) -> io::Result<()> {
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(address_file(home))?;
    file.lock()?;
    // A file that is not text is overwritten.
    let listed = address_lines(&read_address_file(&file).unwrap_or_default());
    let text: String =
        change(listed).iter().map(|line| format!("{} {}\n", line.address, line.server)).collect();
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
    fn an_address_is_listed_while_the_server_runs() {
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
    fn a_server_that_ends_late_keeps_the_entry_of_its_successor() {
        let home = tempfile::tempdir().expect("a directory");
        let here = address("127.0.0.1:8000");
        let old = AddressEntry::add(home.path(), here);
        let new = AddressEntry::add(home.path(), here);
        drop(old);
        assert_eq!(known_addresses(home.path()), [here]);
        drop(new);
        assert_eq!(known_addresses(home.path()), []);
    }

    #[test]
    fn killed_servers_do_not_fill_the_address_file() {
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
    fn an_invalid_address_file_is_ignored() {
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
