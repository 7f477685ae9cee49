//! TLS by `sslmode`, with the meaning that it has in libpq.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::{fmt, io};

use hob_net::read_authorities;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TlsMode {
    Disable,
    /// TLS if the server offers it.
    Prefer,
    /// TLS with any certificate.
    Require,
    /// The certificate must be of a known authority.
    VerifyCa,
    /// And for the name of the host.
    VerifyFull,
}

/// The authorities whose certificates are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Roots {
    /// Those of the system.
    System,
    /// Those in a PEM file.
    File(PathBuf),
}

/// Makes TLS connections to PostgreSQL.
#[derive(Clone)]
pub(super) struct Tls {
    config: Arc<ClientConfig>,
}

impl Tls {
    pub(super) fn new(mode: TlsMode, roots: &Roots) -> io::Result<Tls> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?;
        let config = match mode {
            TlsMode::VerifyFull => builder.with_root_certificates(read_roots(roots)?).with_no_client_auth(),
            TlsMode::Disable | TlsMode::Prefer | TlsMode::Require => {
                let verifier = LaxVerifier { provider, chain: None };
                builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth()
            }
            TlsMode::VerifyCa => {
                let chain = WebPkiServerVerifier::builder_with_provider(
                    Arc::new(read_roots(roots)?),
                    Arc::clone(&provider),
                )
                .build()
                .map_err(io::Error::other)?;
                let verifier = LaxVerifier { provider, chain: Some(chain) };
                builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth()
            }
        };
        Ok(Tls { config: Arc::new(config) })
    }
}

fn read_roots(roots: &Roots) -> io::Result<RootCertStore> {
    read_authorities(match roots {
        Roots::System => None,
        Roots::File(path) => Some(path.as_path()),
    })
}

/// Accepts what the modes below `verify-full` accept: any name, and without `chain` any certificate. The signatures of the handshake
/// are always checked.
struct LaxVerifier {
    provider: Arc<CryptoProvider>,
    chain: Option<Arc<WebPkiServerVerifier>>,
}

impl fmt::Debug for LaxVerifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LaxVerifier")
    }
}

impl ServerCertVerifier for LaxVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = TlsStream;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> io::Result<Handshake> {
        // The client library asks for Unix sockets too, without a name. They have no handshake.
        let name = ServerName::try_from(domain.to_owned()).map_err(io::Error::other);
        Ok(Handshake { connector: TlsConnector::from(Arc::clone(&self.config)), name })
    }
}

pub(super) struct Handshake {
    connector: TlsConnector,
    name: io::Result<ServerName<'static>>,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = TlsStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TlsStream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move { Ok(TlsStream(self.connector.connect(self.name?, socket).await?)) })
    }
}

pub(super) struct TlsStream(tokio_rustls::client::TlsStream<Socket>);

impl tokio_postgres::tls::TlsStream for TlsStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
