//! The cryptography of TLS.

use std::sync::Once;

/// Installs the cryptography for TLS in this process. Code that creates its own TLS client calls this first.
pub fn install_crypto() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // An error means that a provider is already installed.
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
