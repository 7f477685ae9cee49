//! The sockets of Hob's own HTTP client and of its server. In a build with `--cfg simulation` their network and its time are simulated.

#[cfg(not(simulation))]
pub use tokio::net::{TcpListener, TcpStream};

/// A connection that no runtime has registered yet.
#[cfg(not(simulation))]
pub use std::net::TcpStream as UnregisteredStream;

#[cfg(simulation)]
pub use crate::simulated_stream::{TcpListener, TcpStream, TcpStream as UnregisteredStream};
