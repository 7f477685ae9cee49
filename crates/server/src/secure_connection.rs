//! HTTPS: the handshake of a connection, the answer to a client that speaks plain HTTP, and the certificate that is read again when it is
//! renewed. Knows nothing of requests.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hob_config::ServerTlsConfig;
use hob_net::tcp::TcpStream;
use hob_net::{CertificateChange, CertificateFiles, ServerCertificate, TlsSocket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::either::Either;

use crate::serve_error::ServeError;

/// How long a handshake may take. It counts as a connection, so the number of handshakes is limited too.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How often the files of the certificate are read.
const CERTIFICATE_POLL: Duration = Duration::from_secs(2);

/// The first byte of a TLS connection.
const TLS_HANDSHAKE: u8 = 0x16;

/// How long the answer to a plain request may take, and how much of the request is discarded, so that the client reads the answer
/// before the end of the connection.
const PLAIN_ANSWER_TIME: Duration = Duration::from_secs(2);
const MAX_DISCARDED: u64 = 1 << 20;

/// The answer to a plain HTTP request. `hob health` recognises it.
const HTTPS_REQUIRED: &str = concat!(
    "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nserver: hob/",
    env!("CARGO_PKG_VERSION"),
    "\r\nconnection: close\r\n\r\n",
    r#"{"error":{"message":"this server speaks HTTPS only. Use https:// in the address instead of http://.","#,
    r#""type":"invalid_request_error","param":null,"code":"https_required"}}"#,
    "\n"
);

/// The connection of a client, without or with TLS.
pub(crate) type ClientStream = Either<TcpStream, Box<TlsSocket>>;

/// The files of the certificate; `None` if TLS is off.
pub(crate) fn certificate_files(config: &ServerTlsConfig) -> Result<Option<CertificateFiles>, ServeError> {
    match (&config.cert, &config.key) {
        (None, None) => Ok(None),
        (Some(cert), Some(key)) => Ok(Some(CertificateFiles { cert: cert.clone(), key: key.clone() })),
        (None, Some(_)) => Err(ServeError::IncompleteTls { missing: "cert" }),
        (Some(_), None) => Err(ServeError::IncompleteTls { missing: "key" }),
    }
}

/// The certificate that `[server.tls]` names; `None` if TLS is off. Blocks.
pub fn read_certificate(config: &ServerTlsConfig) -> Result<Option<ServerCertificate>, ServeError> {
    Ok(certificate_files(config)?.map(ServerCertificate::read).transpose()?)
}

/// Reads the certificate again from time to time. Never ends by itself.
pub(crate) async fn watch_certificate(certificate: Arc<ServerCertificate>) {
    let (mut last_problem, mut last_refusal) = (None::<String>, None);
    loop {
        let refusal = certificate.refused_at(SystemTime::now());
        if let Some(refusal) = refusal
            && last_refusal != Some(refusal)
        {
            tracing::warn!(
                "the certificate of [server.tls] {refusal}, so clients refuse it. Renew its files; Hob reads \
                 them again"
            );
        }
        last_refusal = refusal;
        tokio::time::sleep(CERTIFICATE_POLL).await;
        let read = Arc::clone(&certificate);
        let problem = match tokio::task::spawn_blocking(move || read.refresh()).await {
            Ok(Ok(CertificateChange::None)) => None,
            Ok(Ok(CertificateChange::Renewed)) => {
                tracing::info!("the certificate was renewed; new connections use it");
                None
            }
            Ok(Err(error)) => Some(error.to_string()),
            // A panic was reported already; the next read shows whether it happens again.
            Err(_) => continue,
        };
        if let Some(problem) = &problem
            && last_problem.as_ref() != Some(problem)
        {
            tracing::warn!(
                "the old certificate stays in use: {problem}. Correct the files in [server.tls]; Hob reads \
                 them again"
            );
        }
        last_problem = problem;
    }
}

/// Makes a connection secure. `None` if the client does not speak TLS, or not in time.
pub(crate) async fn secure(
    socket: TcpStream,
    certificate: &ServerCertificate,
    longest: Duration,
) -> Option<TlsSocket> {
    let handshake = async {
        let mut first = [0];
        match socket.peek(&mut first).await? {
            1 if first[0] == TLS_HANDSHAKE => Ok(Some(certificate.accept(socket).await?)),
            1 if first[0].is_ascii_uppercase() => {
                refuse_plain(socket).await?;
                Ok(None)
            }
            _ => Ok(None),
        }
    };
    match tokio::time::timeout(longest.min(HANDSHAKE_TIMEOUT), handshake).await {
        Ok(Ok(secured)) => secured,
        Ok(Err(error)) => {
            let error: io::Error = error;
            tracing::debug!(%error, "TLS handshake failed");
            None
        }
        Err(_) => {
            tracing::debug!("TLS handshake took too long");
            None
        }
    }
}

/// Answers a client that speaks plain HTTP. What it still sends is read: a connection that is closed with unread data is reset, and the
/// client may then not see the answer.
async fn refuse_plain(mut socket: TcpStream) -> io::Result<()> {
    let answered = async {
        socket.write_all(HTTPS_REQUIRED.as_bytes()).await?;
        socket.shutdown().await?;
        tokio::io::copy(&mut (&mut socket).take(MAX_DISCARDED), &mut tokio::io::sink()).await
    };
    tokio::time::timeout(PLAIN_ANSWER_TIME, answered).await.map_or(Ok(()), |answered| answered.map(drop))
}
