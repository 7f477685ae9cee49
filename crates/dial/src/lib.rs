//! What everybody who asks somebody over the network has in common. Knows nothing of who is asked, or what for, and opens no
//! connection itself.

use std::error::Error;
use std::sync::Once;

use url::{Host, Url};

/// TLS needs to be told once which cryptography to use. Whoever makes a client calls this first.
pub fn install_crypto() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // An error means that somebody in this process chose already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// Whether an address is this machine's own: no proxy has any business on the way there.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// The cause at the bottom: "Connection refused" rather than "error sending request".
pub fn innermost(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::io;

    use super::*;

    /// An error that says less than its cause.
    #[derive(Debug)]
    struct Wrapped<E>(E);

    impl<E> fmt::Display for Wrapped<E> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("error sending request")
        }
    }

    impl<E: Error + 'static> Error for Wrapped<E> {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn this_machine_is_known_by_its_names_and_its_addresses() {
        for (address, expected) in [
            ("http://localhost:11434", true),
            ("http://ollama.localhost", true),
            ("https://127.0.0.1", true),
            ("ws://127.8.9.1:1/ws", true),
            ("http://[::1]:8000/v1", true),
            ("http://localhost.example.org", false),
            ("http://10.0.0.1", false),
            ("http://[fe80::1]", false),
            ("data:text/plain,127.0.0.1", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(address).unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn what_is_told_is_the_cause_at_the_bottom() {
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(innermost(&Wrapped(Wrapped(refused()))), refused().to_string());
        assert_eq!(innermost(&refused()), refused().to_string());
    }

    #[test]
    fn cryptography_may_be_asked_for_by_many() {
        install_crypto();
        install_crypto();
        assert!(rustls::crypto::CryptoProvider::get_default().is_some());
    }
}
