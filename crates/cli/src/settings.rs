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

/// The same for a server. An unknown key in its section is an error: `api_kye` would start a server without a key.
#[cfg(feature = "server")]
pub fn load_for_server() -> Result<Config> {
    let loaded = hob_config::load(&Environment::from_process())?;
    let (of_server, others): (Vec<_>, Vec<_>) =
        loaded.warnings.into_iter().partition(|warning| warning.is_about_server());
    for warning in &others {
        output::warning(warning);
    }
    if !of_server.is_empty() {
        let lines: Vec<String> = of_server.iter().map(ToString::to_string).collect();
        anyhow::bail!(
            "{}. The server does not start with a setting that has no effect, because it could be one that protects it. Correct or \
             remove it.",
            lines.join("\n")
        );
    }
    Ok(loaded.config)
}

/// The databases that the configuration names. A process opens them once.
pub fn databases(config: &Config) -> Result<Databases> {
    Ok(Databases::open(config, &home()?)?)
}
