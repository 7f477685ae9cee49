//! Ports for programs that need the number of one, and for addresses where no program listens.
//!
//! A port that the system chose and that was given back may be in use a moment later: another test's server, or one end of a
//! connection. So these come from a range that the system does not choose from, and no two tests have the same one at a time.

use std::fs::File;
use std::net::TcpListener;
use std::sync::Mutex;

use crate::shared_directory::shared_directory;

/// Below the range of Linux (from 32768) and of macOS (from 49152), and without 30000: Hob looks for SGLang there unless the
/// configuration names another address.
const RANGE: std::ops::Range<u16> = 20_000..30_000;

/// Claims of this process. The system takes them back when it ends, however it does.
static CLAIMS: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// A port on which no program listens until this process starts one. It is this process's own until its end.
pub fn free_port() -> u16 {
    let directory = shared_directory().join("hob-test-ports");
    std::fs::create_dir_all(&directory).expect("a directory for claims");
    let mut claims = CLAIMS.lock().expect("no test fails while it claims a port");
    // Tests that begin side by side begin to look at different places, and a test behind the ports that it has.
    let span = u32::from(RANGE.end - RANGE.start);
    let own = u32::try_from(claims.len()).expect("fewer than ports");
    let first = std::process::id().wrapping_mul(97).wrapping_add(own) % span;
    for step in 0..span {
        let offset = u16::try_from((first + step) % span).expect("within the range");
        let port = RANGE.start + offset;
        let claim = File::create(directory.join(port.to_string())).expect("a claim");
        if claim.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            claims.push(claim);
            return port;
        }
    }
    panic!("no port is free between {} and {}", RANGE.start, RANGE.end);
}

/// Each claim is an open file, and some tests start thousands of servers.
const MAX_OF_SERVERS: usize = 100;

/// A port for a server. It stays this process's own when the server is gone: no other program answers there. A process with very many
/// servers gets 0, for a port that the system chooses.
pub(crate) fn server_port() -> u16 {
    let claimed = CLAIMS.lock().expect("no test fails while it claims a port").len();
    if claimed < MAX_OF_SERVERS { free_port() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_given_twice() {
        let ports: std::collections::BTreeSet<u16> = (0..20).map(|_| free_port()).collect();
        assert_eq!(ports.len(), 20);
    }
}
