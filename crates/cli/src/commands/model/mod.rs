//! `hob model`: what models there are, and more of them.

mod info;
mod list;
mod pull;

use std::process::ExitCode;

use anyhow::{Result, bail};
use hob_config::{Config, EngineKey};

use crate::args::ModelCommand;
use crate::commands::block_on;
use crate::local;
use crate::output::progress::Spinner;
use crate::settings;
use crate::survey::{State, Surveyed, survey};

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
        ModelCommand::Rm { model } => local::remove(&config, &model),
        ModelCommand::Tune { model, always } => block_on(local::tune(&config, &model, always)),
    }
}

/// For whom to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    People,
    Json,
}

impl From<bool> for Format {
    /// From the flag `--json`.
    fn from(json: bool) -> Self {
        if json { Format::Json } else { Format::People }
    }
}

/// All engines; an error when none of them answers.
async fn look_around(config: &Config) -> Result<Vec<Surveyed>> {
    let engines = hob_system::engines(config, &settings::home()?)?;
    let found = {
        let _waiting = Spinner::start("asking the engines");
        survey(&engines, config).await
    };
    if found.iter().any(|surveyed| matches!(surveyed.state, State::Answers { .. } | State::Failing { .. })) {
        return Ok(found);
    }
    let addresses: Vec<String> = found.iter().filter_map(silent).collect();
    let own = match found.iter().any(|surveyed| surveyed.engine.key() == EngineKey::Embedded.as_str()) {
        true => "; get Hob a model of its own with 'hob model pull smollm2-135m-instruct'",
        false => "",
    };
    bail!("no engine answers: {}. Start one of them{own}; or run 'hob doctor'.", addresses.join(", "))
}

/// An engine that does not answer, with its address.
fn silent(surveyed: &Surveyed) -> Option<String> {
    match &surveyed.state {
        State::Silent => Some(format!("{} at {}", surveyed.engine.key(), surveyed.engine.address())),
        State::Ourselves | State::NotSetUp | State::Failing { .. } | State::Answers { .. } => None,
    }
}
