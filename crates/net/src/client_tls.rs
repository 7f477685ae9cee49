//! Connections of clients that speak no HTTP: TCP, and TLS with the authorities of the system or of a file. Knows nothing of what is said
//! over them.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// A connection to a server that speaks TLS.
pub type TlsClientSocket = tokio_rustls::client::TlsStream<TcpStream>;

/// Makes TLS connections. The certificate of a server must be valid for its name.
#[derive(Clone)]
pub struct TlsClient {
    connector: TlsConnector,
}

impl TlsClient {
    /// Accepts certificates of the authorities in a PEM file, or of those of the system. Blocks.
    pub fn new(authorities: Option<&Path>) -> io::Result<Self> {
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(read_authorities(authorities)?)
            .with_no_client_auth();
        Ok(TlsClient { connector: TlsConnector::from(Arc::new(config)) })
    }

    /// Makes the handshake on an open connection.
    pub async fn secure(&self, host: &str, socket: TcpStream) -> io::Result<TlsClientSocket> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        self.connector.connect(name, socket).await
    }
}

/// Connects to the first address of the host that answers. The owner of Hob names the host, so private addresses are allowed.
pub async fn connect_tcp(host: &str, port: u16, within: Duration) -> io::Result<TcpStream> {
    let socket = match timeout(within, TcpStream::connect((host, port))).await {
        Ok(connected) => connected?,
        Err(_) => {
            let late = format!("no connection within {} s", within.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, late));
        }
    };
    // Commands are small and wait for their answers.
    socket.set_nodelay(true)?;
    Ok(socket)
}

/// The certificates of the authorities in a PEM file, or of those of the system. Blocks.
pub fn read_authorities(file: Option<&Path>) -> io::Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    match file {
        None => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Some(path) => {
            let named = |reason: String| io::Error::other(format!("{}: {reason}", path.display()));
            for certificate in
                CertificateDer::pem_file_iter(path).map_err(|error| named(error.to_string()))?
            {
                let certificate = certificate.map_err(|error| named(error.to_string()))?;
                store.add(certificate).map_err(|error| named(error.to_string()))?;
            }
        }
    }
    if store.is_empty() {
        return Err(io::Error::other("there are no certificates of authorities"));
    }
    Ok(store)
}

#[cfg(test)]
mod tests {
    use hob_testkit::TestCertificate;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::server_tls::{CertificateFiles, ServerCertificate};

    /// A server that greets over TLS, and the file with its certificate.
    async fn greeter(directory: &Path) -> (u16, std::path::PathBuf) {
        let (cert, key) = (directory.join("cert.pem"), directory.join("key.pem"));
        TestCertificate::generate().write(&cert, &key);
        let certificate = ServerCertificate::read(CertificateFiles { cert: cert.clone(), key }).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                if let Ok(mut socket) = certificate.accept(socket).await {
                    let _ = socket.write_all(b"hello").await;
                    let _ = socket.shutdown().await;
                }
            }
        });
        (port, cert)
    }

    #[tokio::test]
    async fn a_certificate_of_the_named_authority_is_accepted() {
        let directory = tempfile::tempdir().unwrap();
        let (port, cert) = greeter(directory.path()).await;
        let socket = connect_tcp("127.0.0.1", port, Duration::from_secs(10)).await.unwrap();
        let mut socket = TlsClient::new(Some(&cert)).unwrap().secure("localhost", socket).await.unwrap();
        let mut said = String::new();
        socket.read_to_string(&mut said).await.unwrap();
        assert_eq!(said, "hello");
    }

    #[tokio::test]
    async fn an_unknown_authority_and_another_name_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (port, cert) = greeter(directory.path()).await;
        let other = directory.path().join("other.pem");
        TestCertificate::generate().write(&other, &directory.path().join("other.key"));
        for (authority, name) in [(&other, "localhost"), (&cert, "mail.example.org")] {
            let socket = connect_tcp("127.0.0.1", port, Duration::from_secs(10)).await.unwrap();
            let secured = TlsClient::new(Some(authority)).unwrap().secure(name, socket).await;
            assert!(secured.is_err(), "{name}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(TlsClient::new(Some(file.path())).is_err());
        assert!(TlsClient::new(Some(Path::new("/nowhere/ca.pem"))).is_err());
    }
}
