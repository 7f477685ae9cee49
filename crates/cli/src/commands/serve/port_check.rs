//! Whether the server can have its address, and what to do where somebody else has it.

use std::io;

use anyhow::{Result, bail};
use hob_config::ServerConfig;
use hob_server::ServeError;
use tokio::net::TcpListener;

use crate::running_server::{self, ServerProbe};

/// Tries the address, and leaves it at once.
pub async fn check(server: &ServerConfig) -> Result<()> {
    let ServerConfig { host, port, .. } = server;
    let Err(source) = TcpListener::bind((host.as_str(), *port)).await else { return Ok(()) };
    if source.kind() == io::ErrorKind::AddrInUse
        && let ServerProbe::Hob { .. } = running_server::probe(host, *port).await
    {
        bail!(
            "Hob runs on {} already. Use that one, or stop it first; a second one needs another port: 'hob serve --port {}'.",
            running_server::url(host, *port),
            port.checked_add(1).unwrap_or(8000)
        );
    }
    Err(ServeError::Bind { host: host.clone(), port: *port, source }.into())
}
