//! TLS for a server: its certificate in two PEM files, read again when they are renewed. Knows nothing of what is served.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};
use thiserror::Error;
use tokio_rustls::TlsAcceptor;

use crate::tcp::TcpStream;

/// A connection of a client that speaks TLS.
pub type TlsSocket = tokio_rustls::server::TlsStream<TcpStream>;

/// Far more than a chain of certificates needs.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The protocol that the server speaks inside TLS (RFC 7301).
const ALPN: &[u8] = b"http/1.1";

/// Why a certificate cannot be used.
#[derive(Debug, Error)]
pub enum CertificateError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} has no certificate. It must be a PEM file that begins with the certificate of the server", path.display())]
    NoCertificate { path: PathBuf },
    #[error("{} has no private key. It must be a PEM file with a key that is not encrypted", path.display())]
    NoKey { path: PathBuf },
    #[error("{} is not valid PEM: {reason}", path.display())]
    Malformed { path: PathBuf, reason: String },
    #[error("the certificate in {} and the key in {} cannot be used together: {source}", cert.display(), key.display())]
    Unusable { cert: PathBuf, key: PathBuf, source: rustls::Error },
}

/// Where the certificate of a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// What reading the files again has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateChange {
    None,
    /// New connections get another certificate. Open ones continue.
    Renewed,
}

/// The certificate of a server. Connections use the one that was read last.
pub struct ServerCertificate {
    acceptor: TlsAcceptor,
    current: Arc<CurrentCertificate>,
    /// Held while files are read, so that an older read does not replace a newer one.
    reading: Mutex<()>,
}

/// A certificate, and the contents of the files that it was read from.
struct LoadedCertificate {
    files: CertificateFiles,
    cert_pem: Vec<u8>,
    key_pem: Vec<u8>,
    certified: Arc<CertifiedKey>,
}

struct CurrentCertificate(ArcSwap<LoadedCertificate>);

/// Without the contents of the files, because one of them is secret.
impl fmt::Debug for CurrentCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurrentCertificate").field("files", &self.0.load().files).finish_non_exhaustive()
    }
}

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.load().certified))
    }
}

impl ServerCertificate {
    /// Reads the files. Blocks.
    pub fn read(files: CertificateFiles) -> Result<Self, CertificateError> {
        let provider = Arc::new(ring::default_provider());
        let loaded = LoadedCertificate::read(files, &provider)?;
        let current = Arc::new(CurrentCertificate(ArcSwap::from_pointee(loaded)));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|source| current.unusable(source))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&current) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(ServerCertificate {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            current,
            reading: Mutex::default(),
        })
    }

    /// Reads the files again, for a certificate that was renewed. If they cannot be used, the old certificate stays in use. Blocks.
    pub fn refresh(&self) -> Result<CertificateChange, CertificateError> {
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        self.replace_by(self.current.0.load().files.clone())
    }

    /// The same with `files`, which may be other ones.
    pub fn reload(&self, files: CertificateFiles) -> Result<CertificateChange, CertificateError> {
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        self.replace_by(files)
    }

    fn replace_by(&self, files: CertificateFiles) -> Result<CertificateChange, CertificateError> {
        let loaded = LoadedCertificate::read(files, &ring::default_provider())?;
        let old = self.current.0.load();
        let is_same = (&old.cert_pem, &old.key_pem) == (&loaded.cert_pem, &loaded.key_pem);
        self.current.0.store(Arc::new(loaded));
        Ok(if is_same { CertificateChange::None } else { CertificateChange::Renewed })
    }

    /// Why clients refuse the certificate at this time, such as 'has expired'; `None` if its time is good.
    pub fn refused_at(&self, now: SystemTime) -> Option<&'static str> {
        time_problem(&self.current.0.load().certified.cert, now)
    }

    /// Makes a connection of a client secure. The caller limits the time.
    pub async fn accept(&self, socket: TcpStream) -> io::Result<TlsSocket> {
        self.acceptor.accept(socket).await
    }
}

impl CurrentCertificate {
    fn unusable(&self, source: rustls::Error) -> CertificateError {
        let CertificateFiles { cert, key } = self.0.load().files.clone();
        CertificateError::Unusable { cert, key, source }
    }
}

impl LoadedCertificate {
    fn read(files: CertificateFiles, provider: &CryptoProvider) -> Result<Self, CertificateError> {
        let CertificateFiles { cert, key } = &files;
        let (cert_pem, key_pem) = (read_file(cert)?, read_file(key)?);
        let malformed = |path: &Path, error: pem::Error| CertificateError::Malformed {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let chain = CertificateDer::pem_slice_iter(&cert_pem)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| malformed(cert, error))?;
        if chain.is_empty() {
            return Err(CertificateError::NoCertificate { path: cert.clone() });
        }
        let private_key = match PrivateKeyDer::from_pem_slice(&key_pem) {
            Ok(private_key) => private_key,
            Err(pem::Error::NoItemsFound) => return Err(CertificateError::NoKey { path: key.clone() }),
            Err(error) => return Err(malformed(key, error)),
        };
        let certified = CertifiedKey::from_der(chain, private_key, provider)
            .map_err(|source| CertificateError::Unusable { cert: cert.clone(), key: key.clone(), source })?;
        Ok(LoadedCertificate { certified: Arc::new(certified), files, cert_pem, key_pem })
    }
}

/// What is wrong with the time of a certificate. It counts as its own authority, because nothing else is checked here.
fn time_problem(chain: &[CertificateDer<'static>], now: SystemTime) -> Option<&'static str> {
    use rustls::CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};

    let (own, others) = chain.split_first()?;
    let mut authorities = RootCertStore::empty();
    authorities.add(own.clone()).ok()?;
    let provider = Arc::new(ring::default_provider());
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(authorities), provider).build().ok()?;
    let any_name = ServerName::try_from("localhost").ok()?;
    let now = UnixTime::since_unix_epoch(now.duration_since(UNIX_EPOCH).ok()?);
    match verifier.verify_server_cert(own, others, &any_name, &[], now) {
        Err(rustls::Error::InvalidCertificate(Expired | ExpiredContext { .. })) => Some("has expired"),
        Err(rustls::Error::InvalidCertificate(NotValidYet | NotValidYetContext { .. })) => {
            Some("is not valid yet")
        }
        _ => None,
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, CertificateError> {
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|source| CertificateError::Read { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hob_testkit::TestCertificate;

    use super::*;

    fn files(directory: &Path) -> CertificateFiles {
        CertificateFiles { cert: directory.join("cert.pem"), key: directory.join("key.pem") }
    }

    #[test]
    fn a_certificate_is_replaced_only_by_one_that_can_be_used() {
        let directory = tempfile::tempdir().unwrap();
        let files = files(directory.path());
        let (first, second) = (TestCertificate::generate(), TestCertificate::generate());
        first.write(&files.cert, &files.key);
        let certificate = ServerCertificate::read(files.clone()).unwrap();
        let shown = format!("{:?}", certificate.current);
        assert!(shown.contains("key.pem") && !shown.contains("key_pem"), "{shown}");
        let served = || certificate.current.0.load().cert_pem.clone();
        let reload = || certificate.refresh();

        assert_eq!(reload().unwrap(), CertificateChange::None);
        // A renewal writes one file after the other.
        std::fs::write(&files.cert, &second.cert_pem).unwrap();
        assert!(matches!(reload(), Err(CertificateError::Unusable { .. })));
        assert_eq!(served(), first.cert_pem.as_bytes());
        std::fs::write(&files.key, &second.key_pem).unwrap();
        assert_eq!(reload().unwrap(), CertificateChange::Renewed);
        assert_eq!(served(), second.cert_pem.as_bytes());
        std::fs::remove_file(&files.key).unwrap();
        assert!(matches!(reload(), Err(CertificateError::Read { .. })));
        assert_eq!(served(), second.cert_pem.as_bytes());
    }

    #[test]
    fn clients_refuse_a_certificate_before_its_first_day_and_after_its_last() {
        let directory = tempfile::tempdir().unwrap();
        let files = files(directory.path());
        TestCertificate::generate().write(&files.cert, &files.key);
        let certificate = ServerCertificate::read(files).unwrap();
        // It is good from 1975 to 4096.
        let in_year = |year: u64| {
            let year = Duration::from_secs((year - 1970) * 31_557_600);
            certificate.refused_at(UNIX_EPOCH + year)
        };
        assert_eq!(
            [1974, 1976, 4095, 4097].map(in_year),
            [Some("is not valid yet"), None, None, Some("has expired")]
        );
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let files = files(directory.path());
        let good = TestCertificate::generate();
        for (cert, key, words) in [
            ("", good.key_pem.as_str(), "cert.pem has no certificate"),
            (&good.cert_pem, "", "key.pem has no private key"),
            (&good.cert_pem, &good.cert_pem, "key.pem has no private key"),
            ("-----BEGIN CERTIFICATE-----\nAAAA", &good.key_pem, "cert.pem is not valid PEM"),
        ] {
            std::fs::write(&files.cert, cert).unwrap();
            std::fs::write(&files.key, key).unwrap();
            let error = ServerCertificate::read(files.clone()).err().unwrap().to_string();
            assert!(error.contains(words), "{words}: {error}");
        }
    }
}
