//! The configuration, and warnings about its file.

use std::path::PathBuf;

use anyhow::Result;
use hob_app::Databases;
use hob_config::{Config, Environment};

use crate::output;

/// Where Hob keeps its files.
pub fn home() -> Result<PathBuf> {
    Ok(Environment::from_process().config_dir()?)
}

/// Loads the settings. Prints warnings about the file on stderr first.
pub fn load() -> Result<Config> {
    let loaded = hob_config::load(&Environment::from_process())?;
    for warning in &loaded.warnings {
        output::warning(warning);
    }
    Ok(loaded.config)
}

/// The databases that the configuration names. A process opens them once.
pub fn databases(config: &Config) -> Result<Databases> {
    Ok(Databases::open(config, &home()?)?)
}
