//! `hob model`: lists, downloads, chooses and deletes models.

mod info;
mod list;
mod pull;
mod use_model;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use hob_app::choose;
use hob_config::{Config, EngineName};
use hob_core::Engine;

use crate::args::ModelCommand;
use crate::commands::block_on;
use crate::engine_status::{EngineState, EngineStatus, check_engines};
use crate::local;
use crate::output::progress::Spinner;
use crate::settings;

pub fn run(command: ModelCommand) -> Result<ExitCode> {
    let config = settings::load()?;
    match command {
        ModelCommand::List { json } => block_on(list::run(&config, json.into())),
        ModelCommand::Info { model, json } => block_on(info::run(&config, &model, json.into())),
        ModelCommand::Pull { model, offline } => block_on(async {
            match local::pull(&config, &model, offline.into()).await? {
                Some(code) => Ok(code),
                None => pull::run(&config, &model).await,
            }
        }),
        ModelCommand::Use { model } => block_on(use_model::run(&config, &model)),
        ModelCommand::Rm { model } => local::remove(&config, &model),
        ModelCommand::Tune { model, always } => block_on(local::tune(&config, &model, always)),
    }
}

/// All engines; an error when none of them answers.
async fn check_all_engines(config: &Config) -> Result<Vec<EngineStatus>> {
    let engines = hob_app::engines(config, &settings::home()?)?;
    let found = {
        let _waiting = Spinner::start("querying the engines");
        check_engines(&engines, config).await
    };
    if found
        .iter()
        .any(|status| matches!(status.state, EngineState::Available { .. } | EngineState::Failing { .. }))
    {
        return Ok(found);
    }
    let addresses: Vec<String> = found.iter().filter_map(silent).collect();
    let own = match found.iter().any(|status| status.engine.key() == EngineName::Embedded.as_str()) {
        true => ", or download a built-in model with 'hob model pull smollm2-135m-instruct'",
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
    let chosen = choose(&answering, config, None).await.ok()?;
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
        | EngineState::Failing { .. }
        | EngineState::Available { .. } => None,
    }
}
