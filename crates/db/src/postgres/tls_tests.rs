//! TLS in front of a real server. The server for tests has none, so a proxy adds it.

use std::sync::Arc;

use hob_testkit::{PostgresServer, TestDatabase};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, UnixStream};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::DatabaseError;
use crate::postgres::PostgresDatabase;

/// The request of a client for TLS: its length, and a number instead of a version.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

fn certificate(name: &str) -> String {
    format!("{}/src/postgres/certificates/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn acceptor() -> TlsAcceptor {
    let chain = CertificateDer::pem_file_iter(certificate("server.pem")).expect("a file");
    let chain = chain.collect::<Result<_, _>>().expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(certificate("server.key")).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("known versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("a matching key");
    TlsAcceptor::from(Arc::new(config))
}

/// A proxy with a certificate for `localhost`, until its runtime is dropped.
struct Proxy {
    port: u16,
    database: TestDatabase,
    _runtime: tokio::runtime::Runtime,
}

impl Proxy {
    fn start() -> Proxy {
        let database = PostgresServer::shared().create_database();
        let socket = database.socket();
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let acceptor = acceptor();
        runtime.spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (acceptor, socket) = (acceptor.clone(), socket.clone());
                tokio::spawn(async move {
                    let mut request = [0; 8];
                    client.read_exact(&mut request).await.ok()?;
                    assert_eq!(request, TLS_REQUEST, "this server requires TLS");
                    client.write_all(b"S").await.ok()?;
                    let mut client = acceptor.accept(client).await.ok()?;
                    let mut server = UnixStream::connect(socket).await.ok()?;
                    copy_bidirectional(&mut client, &mut server).await.ok()
                });
            }
        });
        Proxy { port, database, _runtime: runtime }
    }

    fn connect(&self, host: &str, parameters: &str) -> Result<(), DatabaseError> {
        let url = format!("postgres://hob@{host}:{}/{}?{parameters}", self.port, self.database.name());
        PostgresDatabase::new(url.parse().expect("a good URL"), &[])?.migrate()
    }
}

#[test]
fn each_mode_checks_what_it_promises() {
    let proxy = Proxy::start();
    let authority = format!("sslrootcert={}", certificate("authority.pem"));
    for (host, parameters) in [
        ("localhost", "sslmode=prefer".to_owned()),
        ("localhost", "sslmode=require".to_owned()),
        ("127.0.0.1", format!("sslmode=require&{authority}")),
        ("127.0.0.1", format!("sslmode=verify-ca&{authority}")),
        ("localhost", format!("sslmode=verify-full&{authority}")),
    ] {
        proxy.connect(host, &parameters).unwrap_or_else(|error| panic!("{host} {parameters}: {error}"));
    }
    for (host, parameters, reason) in [
        ("localhost", "sslmode=verify-ca".to_owned(), "UnknownIssuer"),
        ("localhost", "sslmode=verify-full".to_owned(), "UnknownIssuer"),
        ("127.0.0.1", format!("sslmode=verify-full&{authority}"), "certificate not valid for name"),
    ] {
        let error = proxy.connect(host, &parameters).expect_err("refused").to_string();
        assert!(error.contains(reason), "{host} {parameters}: {error}");
    }
}

#[test]
fn an_authority_that_cannot_be_read_is_named() {
    let options = "postgres://hob@one/x?sslmode=verify-full&sslrootcert=/missing/ca.pem";
    let error = PostgresDatabase::new(options.parse().expect("a good URL"), &[]).err().expect("refused");
    let text = error.to_string();
    assert!(matches!(error, DatabaseError::Tls { .. }) && text.contains("/missing/ca.pem"), "{text}");
}
