//! Texts of network errors.

use std::error::Error;

/// The innermost cause: "Connection refused" rather than "error sending request".
pub fn root_cause(error: &dyn Error) -> String {
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
    fn the_innermost_cause_is_reported() {
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(root_cause(&Wrapped(Wrapped(refused()))), refused().to_string());
        assert_eq!(root_cause(&refused()), refused().to_string());
    }
}
