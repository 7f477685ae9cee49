//! The cryptography of TLS. The only file that knows rustls.

use std::sync::Once;

/// Installs the cryptography that TLS uses in this process. Code that makes a TLS client of its own calls this first.
pub fn install_crypto() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // An error means that the process already has a provider, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cryptography_may_be_asked_for_by_many() {
        install_crypto();
        install_crypto();
        assert!(rustls::crypto::CryptoProvider::get_default().is_some());
    }
}
