//! `hob model`: lists, downloads, chooses, tunes and deletes models.

mod available;
mod entry_info;
mod info;
mod list;
mod pull;
mod remove;
mod search;
mod tune;
mod use_model;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use hob_app::choose;
use hob_config::{Config, EngineName};
use hob_core::Engine;
use hob_models::tuned::KeepTuned;

use self::search::SearchOptions;
use crate::args::{ModelCommand, NetworkAccess};
use crate::change_notice::{ChangedPart, tell_servers};
use crate::commands::{audit, block_on};
use crate::engine_status::{EngineState, EngineStatus, check_engines};
use crate::missing_model_hint::is_downloadable;
use crate::model_download;
use crate::output;
use crate::output::progress::Spinner;
use crate::output::question::{is_interactive, yes_or_no};
use crate::own_address::{as_served, without_own_address};
use crate::settings;

pub fn run(command: ModelCommand) -> Result<ExitCode> {
    let config = settings::load()?;
    match command {
        ModelCommand::List { available: true, json } => block_on(available::run(&config, json.into())),
        ModelCommand::List { available: false, json } => block_on(list::run(&config, json.into())),
        ModelCommand::Search { words, limit, offline, json } => {
            let (network, format) = (offline.into(), json.into());
            let options = SearchOptions { words: words.join(" "), limit, network, format };
            block_on(search::run(&config, options))
        }
        ModelCommand::Info { model, json } => block_on(info::run(&config, &model, json.into())),
        ModelCommand::Pull { model, offline } => block_on(download(&config, &model, offline.into())),
        ModelCommand::Use { model } => block_on(use_model::run(&config, &model)),
        ModelCommand::Rm { model, yes } => remove::run(&config, &model, yes.into()),
        ModelCommand::Tune { model, always } => {
            let keep = if always { KeepTuned::Always } else { KeepTuned::IfFaster };
            block_on(tune::run(&config, &model, keep))
        }
    }
}

/// Downloads a model: by Hob itself, or by Ollama.
async fn download(config: &Config, name: &str, network: NetworkAccess) -> Result<ExitCode> {
    let code = match model_download::pull(config, name, network).await? {
        Some(code) => code,
        None => pull::run(config, name).await?,
    };
    if code == ExitCode::SUCCESS {
        audit::note(&settings::databases(config)?, "model.pull", name);
        tell_servers(ChangedPart::Models);
    }
    Ok(code)
}

/// A model that can be used.
pub struct UsableModel {
    /// The engine that must be named to use it; `None` if it answers anyway.
    pub engine: Option<String>,
}

/// Finds a model on the engines. One that none of them has can be downloaded first, if the user agrees; otherwise the exit code.
pub async fn find_or_download(config: &Config, name: &str) -> Result<Result<UsableModel, ExitCode>> {
    let checked = check_all_engines(config).await;
    if let Ok(found) = &checked
        && let Some(usable) = usable(config, name, found).await
    {
        return Ok(Ok(usable));
    }
    if !is_interactive() && !is_downloadable(name) {
        return Err(info::not_found(name, &checked?));
    }
    let entry = hob_models::catalogue::find(name);
    let size =
        entry.map_or_else(String::new, |entry| format!(" ({})", model_download::about_download(entry)));
    if !is_interactive() {
        bail!("no engine has the model '{name}'. Download it with 'hob model pull {name}'{size}.");
    }
    if !yes_or_no(&format!("No engine has the model '{name}'. Download it{size}?"))? {
        output::note(format_args!("{name} was not downloaded."));
        return Ok(Err(ExitCode::FAILURE));
    }
    let ended = download(config, name, NetworkAccess::Online).await?;
    if ended != ExitCode::SUCCESS {
        return Ok(Err(ended));
    }
    let found = check_all_engines(config).await?;
    match usable(config, name, &found).await {
        Some(usable) => Ok(Ok(usable)),
        None => Err(info::not_found(name, &found)),
    }
}

async fn usable(config: &Config, name: &str, found: &[EngineStatus]) -> Option<UsableModel> {
    let has = |status: &&EngineStatus| {
        list::models(status).iter().any(|model| status.engine.means(name, &model.id))
    };
    let having = found.iter().find(has)?;
    let answers = match chosen(config, found).await {
        Some(chosen) => asked(chosen, found, config).iter().any(has),
        None => false,
    };
    Some(UsableModel { engine: (!answers).then(|| having.engine.key().to_owned()) })
}

/// All engines; an error when none of them answers.
async fn check_all_engines(config: &Config) -> Result<Vec<EngineStatus>> {
    let home = settings::home()?;
    let found = {
        let _waiting = Spinner::start("querying the engines");
        let config = as_served(config, &home).await;
        check_engines(&hob_app::engines(&config, &home)?, &config).await
    };
    if found
        .iter()
        .any(|status| matches!(status.state, EngineState::Available { .. } | EngineState::Failing(_)))
    {
        return Ok(found);
    }
    let addresses: Vec<String> = found.iter().filter_map(silent).collect();
    let own = match found.iter().any(|status| status.engine.key() == EngineName::Embedded.as_str()) {
        true => ", or download the starter model with 'hob model pull smollm2-135m-instruct'",
        false => "",
    };
    bail!("no engine answers: {}. Start one of them{own}; or run 'hob doctor'.", addresses.join(", "))
}

/// The engine that answers, by the rules of selection, among those that were found to answer.
async fn chosen<'a>(config: &Config, found: &'a [EngineStatus]) -> Option<&'a EngineStatus> {
    let answering: Vec<Arc<dyn Engine>> = found
        .iter()
        .filter(|status| matches!(status.state, EngineState::Available { .. }))
        .map(|status| Arc::clone(&status.engine))
        .collect();
    // An engine at Hob's own address is not among them.
    let chosen = choose(&answering, &without_own_address(config), None).await.ok()?;
    found.iter().find(|status| status.engine.key() == chosen.engine.key())
}

/// The engines that are asked for a model: the one that answers, and those of the pool.
fn asked<'a>(chosen: &'a EngineStatus, found: &'a [EngineStatus], config: &Config) -> Vec<&'a EngineStatus> {
    let in_pool = |key: &EngineName| found.iter().find(|status| status.engine.key() == key.as_str());
    let others = config.engine.pool.iter().filter_map(in_pool);
    std::iter::once(chosen).chain(others.filter(|other| other.engine.key() != chosen.engine.key())).collect()
}

/// An engine that does not answer, with its address.
fn silent(status: &EngineStatus) -> Option<String> {
    match &status.state {
        EngineState::NotResponding => Some(format!("{} at {}", status.engine.key(), status.engine.address())),
        EngineState::OwnAddress
        | EngineState::NotConfigured
        | EngineState::Failing(_)
        | EngineState::Available { .. } => None,
    }
}
