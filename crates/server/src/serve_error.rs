//! Why a server cannot start.

use std::io;

use hob_keys::IdentityError;
use hob_net::CertificateError;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum ServeError {
    #[error("cannot listen on {host}:{port}: {source}{}", advice(source))]
    Bind { host: String, port: u16, source: io::Error },
    /// The process may have reached its limit of threads.
    #[error("cannot start the threads that serve connections: {0}")]
    Threads(io::Error),
    #[error("the certificate of [server.tls] cannot be used: {0}")]
    Certificate(#[from] CertificateError),
    #[error("[server.tls] needs both 'cert' and 'key', and '{missing}' is not set")]
    IncompleteTls { missing: &'static str },
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => ". Another program listens there; choose another port with --port",
        io::ErrorKind::PermissionDenied => ". Ports below 1024 need root; choose another port with --port",
        io::ErrorKind::AddrNotAvailable => ". This machine does not have that address; change [server] host",
        _ => "",
    }
}
