//! Where a release is.

use std::fmt;
use std::path::PathBuf;

use url::Url;

use crate::error::UpdateError;

/// The place of a release's files: on a server, or in a directory from which `install.sh` installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReleaseAddress {
    /// Ends with a slash.
    Web(Url),
    Directory(PathBuf),
}

impl ReleaseAddress {
    /// From an `http` or `https` address, or `file://` and an absolute path as it is, without escapes: `install.sh` writes it so.
    pub fn parse(text: &str) -> Result<Self, UpdateError> {
        let bad =
            |reason: &str| UpdateError::BadAddress { address: shortened(text), reason: reason.to_owned() };
        if let Some(path) = text.strip_prefix("file://") {
            let path = PathBuf::from(path);
            return if path.is_absolute() {
                Ok(Self::Directory(path))
            } else {
                Err(bad("it is no absolute path"))
            };
        }
        let url = Url::parse(&format!("{}/", text.trim_end_matches('/')))
            .map_err(|error| bad(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(bad("it is neither http nor https"));
        }
        // The address is shown in commands and messages.
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad("it contains a user name or a password"));
        }
        Ok(Self::Web(url))
    }

    /// The place of one file, for people and for commands.
    pub fn of_file(&self, name: &str) -> String {
        match self {
            ReleaseAddress::Web(base) => format!("{base}{name}"),
            ReleaseAddress::Directory(directory) => directory.join(name).display().to_string(),
        }
    }
}

impl fmt::Display for ReleaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReleaseAddress::Web(base) => f.write_str(base.as_str().trim_end_matches('/')),
            ReleaseAddress::Directory(directory) => write!(f, "{}", directory.display()),
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_on_the_web_or_a_directory() {
        for (text, shown, file) in [
            ("https://example.org/hob/", "https://example.org/hob", "https://example.org/hob/latest.json"),
            ("http://10.0.0.7:8080", "http://10.0.0.7:8080", "http://10.0.0.7:8080/latest.json"),
            ("file:///srv/a %20b", "/srv/a %20b", "/srv/a %20b/latest.json"),
        ] {
            let address = ReleaseAddress::parse(text).expect(text);
            assert_eq!(
                (address.to_string().as_str(), address.of_file("latest.json").as_str()),
                (shown, file)
            );
        }
    }

    #[test]
    fn other_addresses_are_refused() {
        for text in
            ["", "ftp://example.org", "https://", "https://ann:secret@example.org", "file://srv", "/srv/hob"]
        {
            let error = ReleaseAddress::parse(text).expect_err(text);
            assert!(matches!(error, UpdateError::BadAddress { .. }), "{text}: {error}");
        }
    }
}
