//! The configuration, and what the user should be told of its file.

use std::path::PathBuf;

use anyhow::Result;
use hob_config::{Config, Environment};

use crate::output;

/// Where Hob keeps its files.
pub fn home() -> Result<PathBuf> {
    Ok(Environment::from_process().config_dir()?)
}

/// Loads the settings. What is odd about the file is said on stderr, before anything else is.
pub fn load() -> Result<Config> {
    let loaded = hob_config::load(&Environment::from_process())?;
    for warning in &loaded.warnings {
        output::warning(warning);
    }
    Ok(loaded.config)
}
