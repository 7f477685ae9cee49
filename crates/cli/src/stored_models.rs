//! Models on the disk of this machine: which cannot be loaded, which is the default, and their removal.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use hob_app::startup::local_models::{local_models, model_service};
use hob_config::Config;

use crate::output;
use crate::settings;

/// Models on the disk that cannot be loaded, each with the reason. Empty where the directory cannot be read, and in a build without
/// the engine that loads them.
pub fn broken_models(config: &Config, home: &Path) -> Vec<(String, String)> {
    let models = local_models(config, home);
    if models.engine().is_none() {
        return Vec::new();
    }
    let models = models.files.list().unwrap_or_default();
    models.into_iter().filter_map(|model| Some((model.id, model.problem?))).collect()
}

/// The draft model of the configuration, if it is not on the disk. None in a build without the engine that loads it.
pub fn missing_draft_model(config: &Config, home: &Path) -> Option<String> {
    let wanted = config.engine.embedded.draft_model.clone()?;
    let models = local_models(config, home);
    models.engine()?;
    let is_missing = matches!(models.files.find(&wanted), Ok(None));
    is_missing.then_some(wanted)
}

/// Whether this is a name of the default model, and the model is on the disk.
pub fn is_default(config: &Config, name: &str) -> Result<bool> {
    let Some(default) = config.default_model() else { return Ok(false) };
    let models = model_service(config, &settings::home()?);
    let Some(named) = models.find(name)? else { return Ok(false) };
    Ok(models.find(default)?.is_some_and(|default| default.id == named.id))
}

/// Removes a model.
pub fn remove(config: &Config, id: &str) -> Result<ExitCode> {
    model_service(config, &settings::home()?).remove(id)?;
    output::line(format_args!("Deleted {id}."))?;
    Ok(ExitCode::SUCCESS)
}
