//! The engines: who answers, and who would be asked.

use std::path::Path;
use std::sync::Arc;

use hob_config::{Config, EngineKey};
use hob_core::{Engine, ModelInfo};
use hob_system::{Because, Chosen, NoEngine, Tried};

use super::report::{Check, Status};
use crate::advice;
use crate::output::number::counted;
use crate::survey::{State, Surveyed};

/// Who would answer a question now.
pub enum Answering<'a> {
    Nobody,
    /// An engine that Hob starts when it is needed.
    Startable,
    /// An engine that runs, with its models if it lists them.
    Engine(Arc<dyn Engine>, Option<&'a [ModelInfo]>),
}

/// How one engine is. Only the default one is missed when it does not run.
pub fn check(surveyed: &Surveyed, config: &Config) -> Check {
    let (key, address) = (surveyed.engine.key(), surveyed.engine.address());
    let is_default = config.engine.default.is_some_and(|default| default.as_str() == key);
    let missed = if is_default { Status::Warning } else { Status::Off };
    match &surveyed.state {
        State::Answers { models } => {
            let models = counted(models.len(), "model");
            let place = if address.is_empty() { "in this program" } else { address };
            Check::new(key, Status::Good, format!("{place}, {models}"))
        }
        State::Failing { reason } => Check::new(key, Status::Warning, format!("{address}: {reason}")),
        State::NotSetUp if key == EngineKey::Embedded.as_str() => {
            Check::new(key, missed, "has no model yet; 'hob model pull smollm2-135m-instruct' gets one")
        }
        State::NotSetUp => Check::new(
            key,
            missed,
            "no key is set; there are OPENAI_API_KEY, ANTHROPIC_API_KEY and GEMINI_API_KEY",
        ),
        State::Ourselves => Check::new(key, missed, format!("{address} is where Hob itself listens"))
            .advise(advice::how_to_part(key)),
        State::Silent
            if key == EngineKey::Llamacpp.as_str() && config.engine.llamacpp.binary_path.is_some() =>
        {
            Check::new(key, Status::Off, format!("{address} is not running; Hob starts it when it is needed"))
        }
        State::Silent => {
            let check = Check::new(key, missed, format!("{address} does not answer"));
            if is_default { check.advise(advice::how_to_start(key, address)) } else { check }
        }
    }
}

/// Which engine answers by the rules of selection.
pub fn check_choice<'a>(
    chosen: Result<Chosen, NoEngine>,
    found: &'a [Surveyed],
    config: &Config,
) -> (Answering<'a>, Check) {
    const NAME: &str = "engine";
    let none = match chosen {
        Ok(Chosen { engine, because }) => {
            let check = match because {
                Because::Fallback { instead_of: Some(key) } => {
                    let message = format!("{} answers in place of {key}", engine.key());
                    Check::new(NAME, Status::Warning, message)
                        .advise(format!("Start {key}, or set [engine] default = \"{}\"", engine.key()))
                }
                Because::Fallback { instead_of: None } => {
                    Check::new(NAME, Status::Good, format!("{} answers; no default is set", engine.key()))
                }
                Because::Default | Because::Given => {
                    Check::new(NAME, Status::Good, format!("{} answers", engine.key()))
                }
            };
            let models = found.iter().find(|surveyed| surveyed.engine.key() == engine.key());
            let models = models.and_then(|surveyed| match &surveyed.state {
                State::Answers { models } => Some(models.as_slice()),
                State::Ourselves | State::NotSetUp | State::Silent | State::Failing { .. } => None,
            });
            return (Answering::Engine(engine, models), check);
        }
        Err(none) => none,
    };
    match managed_binary(config) {
        Some(binary) if is_program(binary) => {
            let check =
                Check::new(NAME, Status::Good, format!("Hob starts {} when it is needed", binary.display()));
            (Answering::Startable, check)
        }
        Some(binary) => {
            let check =
                Check::new(NAME, Status::Bad, format!("there is no program '{}' to start", binary.display()))
                    .advise("Correct [engine.llamacpp] binary_path");
            (Answering::Nobody, check)
        }
        None => (Answering::Nobody, Check::new(NAME, Status::Bad, "no engine answers").advise(remedy(&none))),
    }
}

fn remedy(none: &NoEngine) -> String {
    match none {
        NoEngine::UnknownKey { known, .. } => format!("Set [engine] default to one of {}", known.join(", ")),
        NoEngine::Given(Tried { key, address, .. }) => advice::how_to_start(key, address),
        NoEngine::NoneHealthy { tried } => match tried.first() {
            Some(Tried { key, address, .. }) => {
                format!("{key} is tried first. {}", advice::how_to_start(key, address))
            }
            None => "Configure one in [engine]".to_owned(),
        },
    }
}

/// The server that Hob would start.
fn managed_binary(config: &Config) -> Option<&Path> {
    let is_preferred = config.engine.default.is_none_or(|key| key == EngineKey::Llamacpp);
    config.engine.llamacpp.binary_path.as_deref().filter(|_| is_preferred)
}

/// A bare name is looked up as the system would.
fn is_program(binary: &Path) -> bool {
    if binary.components().count() > 1 {
        return binary.is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(binary).is_file())
}
