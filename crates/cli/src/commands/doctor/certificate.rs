//! The certificate of `[server.tls]`, if one is configured.

use hob_config::ServerTlsConfig;
use hob_net::{CertificateFiles, ServerCertificate};

use super::report::{CheckStatus, DoctorCheck};

const NAME: &str = "https";

/// `None` without HTTPS.
pub fn check(tls: &ServerTlsConfig) -> Option<DoctorCheck> {
    let bad = |message: String, advice: &str| {
        Some(DoctorCheck::new(NAME, CheckStatus::Bad, message).advise(advice.to_owned()))
    };
    match (&tls.cert, &tls.key) {
        (None, None) => None,
        (Some(cert), Some(key)) => {
            let files = CertificateFiles { cert: cert.clone(), key: key.clone() };
            match ServerCertificate::read(files) {
                Ok(_) => {
                    let message = format!("the certificate {} can be used", cert.display());
                    Some(DoctorCheck::new(NAME, CheckStatus::Good, message))
                }
                Err(error) => bad(error.to_string(), "Correct the files that [server.tls] names"),
            }
        }
        (None, Some(_)) | (Some(_), None) => {
            bad("[server.tls] has a certificate or a key, not both".to_owned(), "Set both 'cert' and 'key'")
        }
    }
}

#[cfg(test)]
mod tests {
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
    }
}
