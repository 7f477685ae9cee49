//! Texts of network errors.

use std::error::Error;

/// How the standard library begins the text about a host name that has no address. The words of the system follow.
const HOST_NOT_FOUND: &str = "failed to lookup address information";

/// The innermost cause: "Connection refused" rather than "error sending request". A host that is not found is described in plain words.
pub fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let text = cause.to_string();
    match text.starts_with(HOST_NOT_FOUND) {
        true => "cannot find the host: no network, or a wrong name".to_owned(),
        false => text,
    }
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
    fn the_innermost_cause_is_reported() {
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(root_cause(&Wrapped(Wrapped(refused()))), refused().to_string());
        assert_eq!(root_cause(&refused()), refused().to_string());
    }

    #[test]
    fn a_host_without_an_address_is_described_in_plain_words() {
        // A name of 64 letters is longer than any that is looked up.
        let name = format!("{}.invalid:1", "a".repeat(64));
        let error = std::net::ToSocketAddrs::to_socket_addrs(name.as_str()).expect_err("no address");
        assert_eq!(root_cause(&Wrapped(error)), "cannot find the host: no network, or a wrong name");
    }
}
