//! Finds the configuration file and reads it.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::config::Config;
use crate::edit::set_text;
use crate::env::Environment;
use crate::error::ConfigError;
use crate::file_lock::FileLock;
use crate::kind::quote;
use crate::read::{Source, line_of, read};
use crate::warning::ConfigWarning;
use crate::write::{Overwrite, WriteError, write_new};

/// A configuration has a few kilobytes; anything this large is some other file.
pub(crate) const LARGEST: usize = 1024 * 1024;

/// The settings, and where they came from.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    /// Warnings about the file.
    pub warnings: Vec<ConfigWarning>,
    /// The file that was read; `None` when there is none and everything is at its default.
    pub path: Option<PathBuf>,
}

/// Loads the settings: the environment's keys over the file over the defaults. Without a file there are the defaults,
/// but a file named by `$HOB_CONFIG` must exist.
pub fn load(environment: &Environment) -> Result<Loaded, ConfigError> {
    let path = environment.config_file()?;
    let file = shown(&path, environment.home());
    let mut loaded = match read_file(&path, &file)? {
        Some(text) => {
            let (config, warnings) = read(Source { file: &file, text: &text, home: environment.home() })?;
            Loaded { config, warnings, path: Some(path) }
        }
        None if environment.named_config_file().is_some() => return Err(ConfigError::Missing { file }),
        None => Loaded { config: Config::default(), warnings: Vec::new(), path: None },
    };
    if let Some(key) = environment.api_key()? {
        loaded.config.server.api_key = Some(key);
    }
    if let Some(url) = environment.database_url()? {
        loaded.config.database.url = Some(url);
    }
    if let Some(token) = environment.telegram_token()? {
        loaded.config.channel.telegram.token = Some(token);
    }
    if let Some(password) = environment.mail_password()? {
        loaded.config.mail.password = Some(password);
    }
    loaded.config.passfile = environment.passfile();
    loaded.config.provider_keys = environment.provider_keys()?;
    loaded.config.hub = environment.hub()?;
    loaded.config.backends = environment.backends()?;
    Ok(loaded)
}

/// Why a setting could not be written into the file.
#[derive(Debug, Error)]
pub enum SetError {
    #[error(transparent)]
    Read(#[from] ConfigError),
    #[error("cannot change {key} in {file} because of the form it is written in. Change it with an editor.")]
    Form { file: String, key: &'static str },
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Writes the default model into the configuration file, which is made where there is none, and keeps all else that is in it. The
/// file that was written.
pub fn set_default_model(environment: &Environment, model: &str) -> Result<PathBuf, SetError> {
    let path = environment.config_file()?;
    let file = shown(&path, environment.home());
    let _lock = FileLock::take(&path)?;
    let text = read_file(&path, &file)?.unwrap_or_default();
    let edited = set_text(&text, "intelligence", "default_model", &quote(model))
        .ok_or(SetError::Form { file, key: "[intelligence] default_model" })?;
    write_new(&path, &edited, Overwrite::Force)?;
    Ok(path)
}

/// The text of the file; `None` when it does not exist.
pub(crate) fn read_file(path: &Path, file: &str) -> Result<Option<String>, ConfigError> {
    let bytes = match read_bounded(path) {
        Ok(bytes) => bytes,
        // A link that leads nowhere is a mistake, not a missing file.
        Err(error) if error.kind() == ErrorKind::NotFound && path.symlink_metadata().is_err() => {
            return Ok(None);
        }
        Err(error) if error.kind() == ErrorKind::IsADirectory => {
            return Err(ConfigError::Directory { file: file.to_owned() });
        }
        Err(source) => {
            return Err(ConfigError::Unreadable { file: file.to_owned(), source });
        }
    };
    if bytes.len() > LARGEST {
        return Err(ConfigError::TooLarge { file: file.to_owned(), limit: LARGEST });
    }
    let text = String::from_utf8(bytes).map_err(|error| ConfigError::NotUtf8 {
        file: file.to_owned(),
        line: line_of(error.as_bytes(), error.utf8_error().valid_up_to()),
    })?;
    Ok(Some(text))
}

/// One byte more than allowed at most, so that a device without an end does no harm.
fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    let mut bytes = Vec::new();
    file.take(LARGEST as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The path as a person would write it.
pub(crate) fn shown(path: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) => Path::new("~").join(rest).display().to_string(),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
