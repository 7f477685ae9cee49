//! Texts and kinds of network errors.

use std::error::Error;
use std::io;

/// How the standard library and rustls begin texts that say little, and what they mean.
const PLAIN_WORDS: [(&str, &str); 4] = [
    ("failed to lookup address information", "cannot find the host: no network, or a wrong name"),
    (
        "invalid peer certificate: certificate expired",
        "its certificate has expired, or the clock of this machine is wrong",
    ),
    (
        "invalid peer certificate: certificate not valid yet",
        "its certificate is not valid yet, or the clock of this machine is wrong",
    ),
    (
        "invalid peer certificate: UnknownIssuer",
        "its certificate is from an authority that this machine does not trust",
    ),
];

/// The innermost cause: "Connection refused" rather than "error sending request". The most common ones are described in plain words.
pub fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let text = cause.to_string();
    match PLAIN_WORDS.iter().find(|(beginning, _)| text.starts_with(beginning)) {
        Some((_, words)) => (*words).to_owned(),
        None => text,
    }
}

/// Whether there is no connection because the certificate of the server was not accepted.
pub fn is_bad_certificate(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(error) = cause.downcast_ref::<rustls::Error>() {
            use rustls::Error::{InvalidCertificate, NoCertificatesPresented};
            return matches!(error, InvalidCertificate(_) | NoCertificatesPresented);
        }
        // The `source` of an `io::Error` skips the error in it.
        next = match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => cause.source(),
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::time::Duration;

    use rustls::CertificateError;
    use rustls::pki_types::UnixTime;

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
    fn the_innermost_cause_is_reported() {
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(root_cause(&Wrapped(Wrapped(refused()))), refused().to_string());
        assert_eq!(root_cause(&refused()), refused().to_string());
    }

    #[test]
    fn a_certificate_that_is_not_accepted_is_described_in_plain_words() {
        let [before, after] = [1, 2].map(|day| UnixTime::since_unix_epoch(Duration::from_secs(day * 86_400)));
        for (refusal, words) in [
            (CertificateError::ExpiredContext { time: after, not_after: before }, "has expired"),
            (CertificateError::NotValidYetContext { time: before, not_before: after }, "is not valid yet"),
            (CertificateError::UnknownIssuer, "is from an authority"),
        ] {
            let error = io::Error::other(rustls::Error::InvalidCertificate(refusal));
            let text = root_cause(&Wrapped(error));
            assert!(text.starts_with("its certificate ") && text.contains(words), "{text}");
        }
    }

    #[test]
    fn a_certificate_that_is_not_accepted_is_known_by_the_type_of_the_error() {
        let wrapped = |error| Wrapped(io::Error::other(io::Error::new(io::ErrorKind::InvalidData, error)));
        let refusal = rustls::Error::InvalidCertificate(CertificateError::NotValidForName);
        assert!(is_bad_certificate(&wrapped(refusal)));
        assert!(is_bad_certificate(&wrapped(rustls::Error::NoCertificatesPresented)));
        assert!(!is_bad_certificate(&wrapped(rustls::Error::HandshakeNotComplete)));
        assert!(!is_bad_certificate(&Wrapped(io::Error::other("no host 'certificate.lan'"))));
    }

    #[test]
    fn a_host_without_an_address_is_described_in_plain_words() {
        // A name of 64 letters is longer than any that is looked up.
        let name = format!("{}.invalid:1", "a".repeat(64));
        let error = std::net::ToSocketAddrs::to_socket_addrs(name.as_str()).expect_err("no address");
        assert_eq!(root_cause(&Wrapped(error)), "cannot find the host: no network, or a wrong name");
    }
}
