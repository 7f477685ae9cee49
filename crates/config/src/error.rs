//! How loading the settings fails. Every message names the place and says what to do.

use std::fmt;
use std::io;

use thiserror::Error;

use crate::did_you_mean::did_you_mean;

/// Why there are no settings. `file` is the path as a person would write it, with `~`.
#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("cannot find your home directory. Set HOME, or set HOB_HOME to a directory for Hob's files.")]
    NoHome,

    #[error(
        "{file} does not exist, but $HOB_CONFIG names it. Create it with 'hob init', or unset HOB_CONFIG."
    )]
    Missing { file: String },

    #[error("{file} is a directory, not a configuration file. Move it away, then run 'hob init'.")]
    Directory { file: String },

    #[error(
        "{file} is larger than {limit} bytes, too large for a configuration. Check that it is the right file."
    )]
    TooLarge { file: String, limit: usize },

    #[error("{file}:{line}: the text is not UTF-8. Save the file with that encoding.")]
    NotUtf8 { file: String, line: usize },

    #[error("cannot read {file}")]
    Unreadable { file: String, source: io::Error },

    /// The file is no TOML. The offending text is not repeated: it may be half a key.
    #[error("{file}:{line}:{column}: this is not valid TOML: {reason}")]
    Syntax { file: String, line: usize, column: usize, reason: String },

    /// The file is TOML, but some values are invalid. Lists all of them, so that they can be fixed at once.
    #[error("{}", lines(.0))]
    BadValues(Vec<BadValue>),

    #[error("${variable} is not valid UTF-8. Set it to the key itself, or unset it.")]
    VariableNotText { variable: &'static str },

    #[error("${variable} is a relative path. Set it to an absolute path, or unset it.")]
    RelativeVariable { variable: &'static str },
}

/// A value that its key cannot have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadValue {
    pub file: String,
    pub line: usize,
    /// With its section: `server.port`.
    pub key: String,
    /// Completes "expected …".
    pub expected: String,
    /// What was found, in a few words; never a secret.
    pub got: String,
    /// The name that was probably meant.
    pub nearest: Option<String>,
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BadValue { file, line, key, expected, got, nearest } = self;
        write!(f, "{file}:{line}: {key}: expected {expected}, got {got}")?;
        did_you_mean(f, nearest.as_deref())
    }
}

fn lines(values: &[BadValue]) -> String {
    values.iter().map(BadValue::to_string).collect::<Vec<_>>().join("\n")
}
