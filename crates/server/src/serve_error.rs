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
        // A name without an address is no error of the system.
        _ if error.raw_os_error().is_none() => ". Check [server] host",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_host_without_an_address_leads_to_the_setting() {
        // A name of 64 letters is longer than any that is looked up.
        let host = "a".repeat(64);
        let source = TcpListener::bind((host.as_str(), 0)).expect_err("there is no such host");
        let error = ServeError::Bind { host, port: 0, source }.to_string();
        assert!(error.ends_with(". Check [server] host"), "{error}");
    }
}
