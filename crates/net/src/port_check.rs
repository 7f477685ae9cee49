//! Whether a server could listen on an address.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpSocket, lookup_host};

/// Checks that a server could listen on an address of the host. The error is that of the last address.
pub async fn check_port(host: &str, port: u16) -> io::Result<()> {
    let mut refused = io::Error::new(io::ErrorKind::AddrNotAvailable, "the name has no address");
    for address in lookup_host((host, port)).await? {
        match reserve(address) {
            Ok(_released) => return Ok(()),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Checks that a server could listen on this address.
pub fn check_address(address: SocketAddr) -> io::Result<()> {
    reserve(address).map(drop)
}

/// Binds the address and does not listen: a connection that arrived now would be accepted, and reset when the address is released.
fn reserve(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // As listeners do: connections of an earlier server that are not quite closed do not matter. On Windows, it means another thing.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn nothing_can_connect_while_the_address_is_checked() {
        let reserved = reserve(([127, 0, 0, 1], 0).into()).unwrap();
        let refused = TcpStream::connect(reserved.local_addr().unwrap()).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[tokio::test]
    async fn an_address_on_which_another_program_listens_is_taken() {
        let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = other.local_addr().unwrap();
        assert_eq!(check_address(address).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        let refused = check_port("127.0.0.1", address.port()).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
    }
}
