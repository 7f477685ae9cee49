//! What the service manager that started us hears: that we answer, and that we stop. It is what systemd calls `Type=notify`;
//! whoever was started otherwise tells nobody. Knows nothing of what is served.

#[cfg(unix)]
use std::ffi::OsStr;
#[cfg(unix)]
use std::io;
#[cfg(unix)]
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// From now on requests are answered.
pub fn ready() {
    tell("READY=1");
}

/// Answers under way are finished, and no others are taken.
pub fn stopping() {
    tell("STOPPING=1");
}

#[cfg(unix)]
fn tell(state: &str) {
    let Some(place) = std::env::var_os("NOTIFY_SOCKET").filter(|place| !place.is_empty()) else { return };
    if let Err(error) = send(&place, state) {
        tracing::warn!(%error, state, "cannot tell the service manager");
    }
}

#[cfg(not(unix))]
fn tell(_state: &str) {}

#[cfg(unix)]
fn send(place: &OsStr, state: &str) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    // Serving does not wait for somebody who is too busy to hear of it.
    socket.set_nonblocking(true)?;
    socket.send_to_addr(state.as_bytes(), &address(place)?)?;
    Ok(())
}

/// A file, or on Linux a name behind an '@' that is no file's.
#[cfg(unix)]
fn address(place: &OsStr) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::ffi::OsStrExt;

        if let Some(name) = place.as_bytes().strip_prefix(b"@") {
            return SocketAddr::from_abstract_name(name);
        }
    }
    SocketAddr::from_pathname(place)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_file_is_heard_too() {
        let name = format!("hob-readiness-{}", std::process::id());
        let place = format!("@{name}");
        let heard = UnixDatagram::bind_addr(&address(OsStr::new(&place)).unwrap()).unwrap();
        send(OsStr::new(&place), "READY=1").unwrap();
        let mut message = [0; 32];
        let length = heard.recv(&mut message).unwrap();
        assert_eq!(&message[..length], b"READY=1");
    }
}
