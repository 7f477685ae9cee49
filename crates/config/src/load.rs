//! Finds the configuration file and reads it.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::env::Environment;
use crate::error::ConfigError;
use crate::read::{Source, line_of, read};
use crate::unknown_settings::ConfigWarning;

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
    load_with_text(environment).map(|(loaded, _)| loaded)
}

/// The same, with the text that the file has; empty if there is none.
pub(crate) fn load_with_text(environment: &Environment) -> Result<(Loaded, String), ConfigError> {
    let path = environment.config_file()?;
    let file = shown(&path, environment.home());
    let text = read_file(&path, &file)?;
    let mut loaded = match &text {
        Some(text) => {
            let (config, warnings) = read(Source { file: &file, text, home: environment.home() })?;
            Loaded { config, warnings, path: Some(path) }
        }
        None if environment.named_config_file().is_some() => return Err(ConfigError::Missing { file }),
        None => Loaded { config: Config::default(), warnings: Vec::new(), path: None },
    };
    loaded.config = overridden(loaded.config, environment)?;
    loaded.config.passfile = environment.passfile();
    loaded.config.provider_keys = environment.provider_keys()?;
    loaded.config.hub = environment.hub()?;
    loaded.config.backends = environment.backends()?;
    Ok((loaded, text.unwrap_or_default()))
}

/// The settings with what variables of the environment override.
pub(crate) fn overridden(mut config: Config, environment: &Environment) -> Result<Config, ConfigError> {
    if let Some(key) = environment.api_key()? {
        config.server.api_key = Some(key);
    }
    if let Some(url) = environment.database_url()? {
        config.database.url = Some(url);
    }
    if let Some(token) = environment.telegram_token()? {
        config.channel.telegram.token = Some(token);
    }
    if let Some(password) = environment.mail_password()? {
        config.mail.password = Some(password);
    }
    Ok(config)
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
