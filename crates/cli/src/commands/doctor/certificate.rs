//! The certificate of `[server.tls]`, if one is configured. Read as `hob serve` reads it.

use std::time::SystemTime;

use hob_config::ServerTlsConfig;
use hob_server::read_certificate;

use super::report::{CheckStatus, DoctorCheck};
use crate::failure;

const NAME: &str = "https";

/// `None` without HTTPS.
pub fn check(tls: &ServerTlsConfig) -> Option<DoctorCheck> {
    check_at(tls, SystemTime::now())
}

fn check_at(tls: &ServerTlsConfig, now: SystemTime) -> Option<DoctorCheck> {
    let (status, message) = match read_certificate(tls) {
        Ok(None) => return None,
        Ok(Some(certificate)) => match certificate.refused_at(now) {
            None => (CheckStatus::Good, "the certificate of [server.tls] can be used".to_owned()),
            Some(refusal) => {
                (CheckStatus::Bad, format!("the certificate of [server.tls] {refusal}, so clients refuse it"))
            }
        },
        Err(error) => (CheckStatus::Bad, failure::explain(&error.into())),
    };
    let check = DoctorCheck::new(NAME, status, message);
    Some(match status {
        CheckStatus::Bad => {
            check.advise("Renew the certificate, or correct [server.tls] and the files that it names")
        }
        _ => check,
    })
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use hob_testkit::TestCertificate;

    use super::*;

    #[test]
    fn a_certificate_is_checked_only_if_there_is_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let (cert, key) = (directory.path().join("cert.pem"), directory.path().join("key.pem"));
        let status = |cert: Option<&std::path::PathBuf>, key: Option<&std::path::PathBuf>| {
            let tls = ServerTlsConfig { cert: cert.cloned(), key: key.cloned() };
            check(&tls).map(|check| check.status)
        };
        assert_eq!(status(None, None), None);
        assert_eq!(status(Some(&cert), None), Some(CheckStatus::Bad));
        assert_eq!(status(Some(&cert), Some(&key)), Some(CheckStatus::Bad), "there are no files");
        TestCertificate::generate().write(&cert, &key);
        assert_eq!(status(Some(&cert), Some(&key)), Some(CheckStatus::Good));
        // It is good from 1975 on.
        let tls = ServerTlsConfig { cert: Some(cert), key: Some(key) };
        let early = check_at(&tls, UNIX_EPOCH).expect("there is a certificate");
        assert_eq!((early.status, early.message.contains("is not valid yet")), (CheckStatus::Bad, true));
    }
}
