//! `hob model use`: chooses the default model, and writes it into the configuration file.

use std::process::ExitCode;

use anyhow::{Result, bail};
use hob_config::{Config, Environment, set_default_model};
use hob_core::ModelKind;
use hob_core::model::{AUTO, DEFAULT_MODEL};

use super::info::not_found;
use super::list::models;
use super::{asked, check_all_engines, chosen};
use crate::output;
use crate::output::text::one_line;

pub async fn run(config: &Config, name: &str) -> Result<ExitCode> {
    if name == DEFAULT_MODEL {
        bail!("'{DEFAULT_MODEL}' is an alias for the default model. Choose a model from 'hob model list'.");
    }
    let model = match name {
        AUTO => AUTO.to_owned(),
        name => find(config, name).await?,
    };
    let file = set_default_model(&Environment::from_process(), &model)?;
    let model = one_line(&model);
    output::line(format_args!("The default model is now {model} ({}).", file.display()))?;
    if let Some(overriding) = config.server.model.as_deref().filter(|served| *served != model) {
        output::warning(format_args!(
            "[server] model = \"{}\" overrides it. Remove that line.",
            one_line(overriding)
        ));
    }
    output::note("A running server uses it after a restart.");
    Ok(ExitCode::SUCCESS)
}

/// The model as its engine names it.
async fn find(config: &Config, name: &str) -> Result<String> {
    let found = check_all_engines(config).await?;
    let having = found.iter().find_map(|status| {
        let model = models(status).iter().find(|model| status.engine.means(name, &model.id))?;
        Some((status, model))
    });
    let Some((engine, model)) = having else { return Err(not_found(name, &found)) };
    if model.kind == ModelKind::Embedding {
        bail!("{} makes embeddings and cannot answer questions. Choose another model.", one_line(&model.id));
    }
    if let Some(chosen) = chosen(config, &found).await {
        let is_asked = |status: &&super::EngineStatus| {
            models(status).iter().any(|listed| status.engine.means(&model.id, &listed.id))
        };
        if !asked(chosen, &found, config).iter().any(is_asked) {
            let (has, answers) = (engine.engine.key(), chosen.engine.key());
            output::warning(format_args!(
                "{has} has this model, but {answers} answers. Set [engine] default = \"{has}\", or add it to [engine] pool."
            ));
        }
    }
    Ok(model.id.clone())
}
