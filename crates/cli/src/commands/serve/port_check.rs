//! Whether the server's address is free, and the hint if it is not.

use std::io;

use anyhow::{Result, bail};
use hob_config::ServerConfig;
use hob_net::check_port;
use hob_server::ServeError;

use crate::running_server::{self, ServerProbe};

/// Checks it before the server starts, which takes longer.
pub async fn check(server: &ServerConfig) -> Result<()> {
    let ServerConfig { host, port, .. } = server;
    let Err(source) = check_port(host, *port).await else { return Ok(()) };
    if source.kind() == io::ErrorKind::AddrInUse
        && let ServerProbe::Hob { scheme, .. } = running_server::probe(host, *port).await
    {
        bail!(
            "Hob is already running on {}. Use that server, stop it first, or choose another port: 'hob serve --port {}'.",
            running_server::url(scheme, host, *port),
            port.checked_add(1).unwrap_or(8000)
        );
    }
    Err(ServeError::Bind { host: host.clone(), port: *port, source }.into())
}
