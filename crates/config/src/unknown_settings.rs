//! Warnings about settings without effect: unknown keys and sections, and keys of earlier versions. The file can still be used.

use std::fmt;

use crate::did_you_mean::did_you_mean;

/// Something in the file that has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigWarning {
    UnknownKey {
        file: String,
        line: usize,
        /// With its section: `server.prot`.
        key: String,
        /// The known key that was probably meant.
        nearest: Option<String>,
    },
    UnknownSection {
        file: String,
        line: usize,
        section: String,
        nearest: Option<String>,
    },
    /// A key of earlier versions.
    NoEffect {
        file: String,
        line: usize,
        /// With its section: `engine.embedded.tune`.
        key: String,
    },
    /// There are too many unknown keys to list.
    MoreUnknown {
        file: String,
        count: usize,
    },
}

impl ConfigWarning {
    /// Whether the server must not start with this: what has no effect may be meant to restrict access, such as `api_kye`.
    pub fn is_about_server(&self) -> bool {
        let is_server = |name: &str| name == "server" || name.starts_with("server.");
        match self {
            ConfigWarning::UnknownKey { key, nearest, .. } => {
                is_server(key) || nearest.as_deref().is_some_and(is_server)
            }
            ConfigWarning::UnknownSection { section, nearest, .. } => {
                is_server(section) || nearest.as_deref().is_some_and(is_server)
            }
            ConfigWarning::NoEffect { .. } | ConfigWarning::MoreUnknown { .. } => false,
        }
    }
}

impl fmt::Display for ConfigWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigWarning::UnknownKey { file, line, key, nearest } => {
                write!(f, "{file}:{line}: unknown key '{key}'")?;
                did_you_mean(f, nearest.as_deref())
            }
            ConfigWarning::UnknownSection { file, line, section, nearest } => {
                write!(f, "{file}:{line}: unknown section '{section}'")?;
                did_you_mean(f, nearest.as_deref())
            }
            ConfigWarning::NoEffect { file, line, key } => {
                write!(f, "{file}:{line}: '{key}' no longer has any effect")
            }
            ConfigWarning::MoreUnknown { file, count } => write!(f, "{file}: {count} more unknown keys"),
        }
    }
}
