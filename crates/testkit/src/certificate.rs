//! A certificate that signs itself, for this machine.

use std::path::Path;

/// A new certificate for `localhost` and `127.0.0.1`, and its key, as PEM.
pub struct TestCertificate {
    pub cert_pem: String,
    pub key_pem: String,
}

impl TestCertificate {
    pub fn generate() -> Self {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        TestCertificate { cert_pem: made.cert.pem(), key_pem: made.signing_key.serialize_pem() }
    }

    pub fn write(&self, cert: &Path, key: &Path) {
        std::fs::write(cert, &self.cert_pem).expect("a file");
        std::fs::write(key, &self.key_pem).expect("a file");
    }
}
