//! The sockets of Hob's own HTTP client. In a build with `--cfg simulation` their network and its time are simulated.

#[cfg(not(simulation))]
pub use tokio::net::TcpStream;

#[cfg(simulation)]
pub use crate::simulated_stream::TcpStream;
