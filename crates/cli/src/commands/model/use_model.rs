//! `hob model use`: chooses the default model, writes it into the configuration file, and makes running servers read it.

use std::process::ExitCode;

use anyhow::{Result, bail};
use hob_config::{Config, Environment, LocalSetting, write_local_settings};
use hob_core::ModelKind;
use hob_core::model::{AUTO, DEFAULT_MODEL};
use hob_models::catalogue::{self, CatalogueEntry, ModelAbility};

use super::info::not_found;
use super::list::models;
use super::{asked, check_all_engines, chosen};
use crate::args::NetworkAccess;
use crate::commands::audit;
use crate::commands::reload::reload_running;
use crate::engine_status::EngineStatus;
use crate::model_download;
use crate::output;
use crate::output::text::one_line;
use crate::settings;

pub async fn run(config: &Config, name: &str) -> Result<ExitCode> {
    if name == DEFAULT_MODEL {
        bail!("'{DEFAULT_MODEL}' is an alias for the default model. Choose a model from 'hob model list'.");
    }
    let model = match name {
        AUTO => AUTO.to_owned(),
        name => match catalogue::find(name) {
            Some(entry) => find_or_expect(config, name, entry).await?,
            None => find(config, &check_all_engines(config).await?, name).await?,
        },
    };
    let setting = LocalSetting::new("intelligence", "default_model", model.as_str());
    let file = write_local_settings(&Environment::from_process(), &[setting])?;
    audit::note(&settings::databases(config)?, "config.default_model", &model);
    let model = one_line(&model);
    output::line(format_args!("The default model is now {model} ({file})."))?;
    if let Some(overriding) = config.server.model.as_deref().filter(|served| *served != model) {
        output::warning(format_args!(
            "[server] model = \"{}\" overrides it. Remove that line.",
            one_line(overriding)
        ));
    }
    reload_running().await;
    Ok(ExitCode::SUCCESS)
}

/// The model as its engine names it, or as its engine will name it after a download.
async fn find_or_expect(config: &Config, name: &str, entry: &CatalogueEntry) -> Result<String> {
    if entry.can(ModelAbility::Embedding) {
        bail!("{name} makes embeddings and cannot answer questions. Choose another model.");
    }
    if let Ok(found) = check_all_engines(config).await
        && let Ok(model) = find(config, &found, name).await
    {
        return Ok(model);
    }
    output::warning(format_args!(
        "No engine has {name} yet. Download it with 'hob model pull {name}' ({}).",
        model_download::about_download(entry)
    ));
    let is_own = model_download::own_source(config, name, NetworkAccess::Online).await?.is_some();
    Ok(if is_own { entry.name } else { name }.to_owned())
}

/// The model as its engine names it.
async fn find(config: &Config, found: &[EngineStatus], name: &str) -> Result<String> {
    let having = found.iter().find_map(|status| {
        let model = models(status).iter().find(|model| status.engine.means(name, &model.id))?;
        Some((status, model))
    });
    let Some((engine, model)) = having else { return Err(not_found(name, found)) };
    if model.kind == ModelKind::Embedding {
        bail!("{} makes embeddings and cannot answer questions. Choose another model.", one_line(&model.id));
    }
    if let Some(chosen) = chosen(config, found).await {
        let is_asked = |status: &&EngineStatus| {
            models(status).iter().any(|listed| status.engine.means(&model.id, &listed.id))
        };
        if !asked(chosen, found, config).iter().any(is_asked) {
            let (has, answers) = (engine.engine.key(), chosen.engine.key());
            output::warning(format_args!(
                "{has} has this model, but {answers} answers. Set [engine] default = \"{has}\", or add it to [engine] pool."
            ));
        }
    }
    Ok(model.id.clone())
}
