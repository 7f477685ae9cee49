//! `latest.json`, which describes the newest release. Pure: reads no file and sends no request.

use serde::Deserialize;

use crate::error::UpdateError;
use crate::version::ReleaseVersion;

/// The longest name of a file.
const LONGEST_NAME: usize = 120;

/// The most files that are considered.
const MOST_FILES: usize = 64;

/// The newest release.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LatestRelease {
    pub version: ReleaseVersion,
    /// Such as `2026-11-20`. Text from outside: it must be made printable.
    #[serde(default)]
    pub date: String,
    /// What is new, as Markdown. Text from outside, too.
    #[serde(default)]
    pub notes: String,
    /// Names of its files. Commands contain them, so a name with other than plain characters is dropped.
    #[serde(default)]
    pub files: Vec<String>,
}

impl LatestRelease {
    /// From the text of `latest.json` at `address`.
    pub(crate) fn parse(json: &[u8], address: &str) -> Result<Self, UpdateError> {
        let mut release: LatestRelease = serde_json::from_slice(json).map_err(|error| {
            UpdateError::Malformed { address: address.to_owned(), reason: error.to_string() }
        })?;
        release.files.retain(|name| is_plain_name(name));
        release.files.truncate(MOST_FILES);
        Ok(release)
    }

    /// The file whose name ends so.
    pub(crate) fn file(&self, ending: &str) -> Option<&str> {
        self.files.iter().map(String::as_str).find(|name| name.ends_with(ending))
    }
}

/// Whether a name is that of a file beside `latest.json`, and means nothing else to a shell.
fn is_plain_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    (1..=LONGEST_NAME).contains(&name.len())
        && name.bytes().all(is_plain)
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_may_have_only_a_version() {
        let release = LatestRelease::parse(br#"{"version": "0.2.0", "more": [1]}"#, "x").expect("a release");
        assert_eq!(
            release,
            LatestRelease {
                version: "0.2.0".parse().expect("a version"),
                date: String::new(),
                notes: String::new(),
                files: Vec::new(),
            }
        );
    }

    #[test]
    fn names_that_a_shell_could_run_are_dropped() {
        let json = br#"{"version": "0.2.0", "files": ["hob_0.2.0_amd64.deb", "$(id).deb", "a b.deb", "../x.deb", "-x.deb", ".deb", ""]}"#;
        let release = LatestRelease::parse(json, "x").expect("a release");
        assert_eq!(release.files, ["hob_0.2.0_amd64.deb"]);
        assert_eq!(release.file("_amd64.deb"), Some("hob_0.2.0_amd64.deb"));
        assert_eq!(release.file("_arm64.deb"), None);
    }

    #[test]
    fn what_is_no_release_is_refused() {
        for json in
            ["", "<html>", "[]", "{}", r#"{"version": 2}"#, r#"{"version": "new"}"#, r#"{"version": "0.2.0""#]
        {
            let error = LatestRelease::parse(json.as_bytes(), "https://a/latest.json").expect_err(json);
            assert!(
                error.to_string().starts_with("https://a/latest.json is no list of a release: "),
                "{error}"
            );
        }
    }
}
