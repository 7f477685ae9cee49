//! Versions, and which of two is newer.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// A version such as `0.2.0` or `0.2.0-rc.1`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ReleaseVersion {
    numbers: [u64; 3],
    /// The parts of a pre-release, such as `rc` and `1`. Empty for a release.
    pre: Vec<String>,
}

impl FromStr for ReleaseVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            format!("'{shown}' is no version such as 0.2.0")
        })
    }
}

impl TryFrom<String> for ReleaseVersion {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

fn parse(text: &str) -> Option<ReleaseVersion> {
    let (release, pre) = match text.split_once('-') {
        Some((release, pre)) => (release, Some(pre)),
        None => (text, None),
    };
    let numbers: Vec<u64> = release.split('.').map(number).collect::<Option<_>>()?;
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let pre: Vec<String> = pre.into_iter().flat_map(|pre| pre.split('.')).map(str::to_owned).collect();
    if text.len() > 40 || !pre.iter().all(|part| is_part(part)) {
        return None;
    }
    Some(ReleaseVersion { numbers: numbers.try_into().ok()?, pre })
}

/// Digits only: the standard parser also accepts a sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

impl fmt::Display for ReleaseVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        if self.pre.is_empty() { Ok(()) } else { write!(f, "-{}", self.pre.join(".")) }
    }
}

impl PartialOrd for ReleaseVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ReleaseVersion {
    /// As in semantic versioning: a pre-release is older than its release, and its numbers are older than its words.
    fn cmp(&self, other: &Self) -> Ordering {
        let parts = |version: &Self| -> Vec<(bool, u64, String)> {
            version
                .pre
                .iter()
                .map(|part| match number(part) {
                    Some(number) => (false, number, String::new()),
                    None => (true, 0, part.clone()),
                })
                .collect()
        };
        self.numbers
            .cmp(&other.numbers)
            .then_with(|| self.pre.is_empty().cmp(&other.pre.is_empty()))
            .then_with(|| parts(self).cmp(&parts(other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_the_order_of_semantic_versioning() {
        let order = ["0.1.0", "0.2.0-alpha", "0.2.0-rc.2", "0.2.0-rc.10", "0.2.0", "0.10.0", "1.0.0"];
        let versions: Vec<ReleaseVersion> =
            order.iter().map(|text| text.parse().expect("a version")).collect();
        assert!(versions.is_sorted_by(|one, other| one < other), "{versions:?}");
        assert_eq!(versions.iter().map(ToString::to_string).collect::<Vec<_>>(), order);
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in [
            "",
            "1",
            "1.2",
            "1.2.3.4",
            "v1.2.3",
            "+1.2.3",
            "1.2.x",
            "1.2.3-",
            "1.2.3-rc..1",
            "1.2.3-$(id)",
            "1.2.3 ",
            "99999999999999999999.0.0",
        ] {
            assert!(text.parse::<ReleaseVersion>().is_err(), "{text:?}");
        }
        let long = format!("1.2.3-{}", "x".repeat(100));
        assert!(long.parse::<ReleaseVersion>().is_err());
    }
}
