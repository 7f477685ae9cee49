//! Paths, with `~` for the home directory.

use std::path::{Path, PathBuf};

use crate::kind::{quote, quote_all};
use crate::settings_schema::{Exposure, Kind};

/// A path that may be empty, which is the same as leaving the key out.
pub(crate) const OPTIONAL_PATH: Kind<Option<PathBuf>> = Kind {
    expected: "a path, or \"\" for none",
    read: |typed| match typed.text()? {
        "" => Some(None),
        path => expand(path, typed.home).map(Some),
    },
    write: |path| quote(&path.as_deref().map(Path::to_string_lossy).unwrap_or_default()),
    exposure: Exposure::Open,
};

/// The same, and absolute: commands that run in other directories read it too.
pub(crate) const OPTIONAL_ABSOLUTE_PATH: Kind<Option<PathBuf>> = Kind {
    expected: "an absolute path, or \"\" for none",
    read: |typed| (OPTIONAL_PATH.read)(typed).filter(|path| path.as_deref().is_none_or(Path::is_absolute)),
    write: OPTIONAL_PATH.write,
    exposure: Exposure::Open,
};

/// Absolute, because what a list of permissions means must not depend on where Hob was started.
pub(crate) const ABSOLUTE_PATHS: Kind<Vec<PathBuf>> = Kind {
    expected: "a list of absolute paths",
    read: |typed| {
        let expanded = |path| expand(path, typed.home).filter(|path| path.is_absolute());
        typed.texts()?.into_iter().map(expanded).collect()
    },
    write: |paths| quote_all(&paths.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>()),
    exposure: Exposure::Open,
};

/// Puts `home` in the place of a leading `~`; `None` when there is one but no home.
pub(crate) fn expand(path: &str, home: Option<&Path>) -> Option<PathBuf> {
    if path == "~" {
        return home.map(Path::to_owned);
    }
    match path.strip_prefix("~/") {
        Some(rest) => home.map(|home| home.join(rest)),
        None => Some(PathBuf::from(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::read_as;

    #[test]
    fn a_tilde_is_the_home_directory() {
        assert_eq!(read_as(&OPTIONAL_PATH, "'~/llama-server'"), Some(Some("/home/ann/llama-server".into())));
        assert_eq!(read_as(&OPTIONAL_PATH, "'llama-server'"), Some(Some("llama-server".into())));
        assert_eq!(read_as(&OPTIONAL_PATH, "''"), Some(None));
        assert_eq!(expand("~/x", None), None);
    }

    #[test]
    fn a_path_that_other_directories_use_is_absolute() {
        assert_eq!(read_as(&OPTIONAL_ABSOLUTE_PATH, "'~/hob.pem'"), Some(Some("/home/ann/hob.pem".into())));
        assert_eq!(read_as(&OPTIONAL_ABSOLUTE_PATH, "''"), Some(None));
        assert_eq!(read_as(&OPTIONAL_ABSOLUTE_PATH, "'hob.pem'"), None);
    }

    #[test]
    fn what_is_allowed_does_not_depend_on_the_working_directory() {
        assert_eq!(
            read_as(&ABSOLUTE_PATHS, "['~', '/srv/data']"),
            Some(vec!["/home/ann".into(), "/srv/data".into()])
        );
        assert_eq!(read_as(&ABSOLUTE_PATHS, "['data']"), None);
        assert_eq!(read_as(&ABSOLUTE_PATHS, "['']"), None);
    }
}
