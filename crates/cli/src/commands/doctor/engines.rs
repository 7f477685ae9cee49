//! The engines: which ones answer, and which one Hob would use.

use std::path::Path;
use std::sync::Arc;

use hob_config::{Config, EngineName};
use hob_core::{Engine, EngineError, ModelInfo};
use hob_engines::selection::{
    NoEngine, RejectedEngine, SelectedEngine, SelectionReason, has_bad_certificate,
};

use super::executable::is_program;
use super::report::{CheckStatus, DoctorCheck};
use crate::engine_advice;
use crate::engine_status::{EngineState, EngineStatus, is_discovered};
use crate::failure;
use crate::output::number::counted;
use crate::starter_model;
use crate::stored_models;

/// The engine that would answer a question now.
pub enum EngineToAsk<'a> {
    None,
    /// An engine that Hob starts, or a model that Hob downloads, on demand.
    Startable,
    /// An engine that runs, with its models if it lists them.
    Engine(Arc<dyn Engine>, Option<&'a [ModelInfo]>),
}

/// What the configuration expects of the engines.
#[derive(Clone, Copy)]
pub struct EngineExpectations<'a> {
    pub config: &'a Config,
    /// Whether a default engine that does not answer is a problem.
    pub is_default_missed: bool,
    pub download: StarterDownload,
}

/// Whether Hob could download a model if no engine answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StarterDownload {
    Possible,
    /// Neither the hub nor pip has it.
    NoSource,
    /// There is no place for it.
    NotWritable,
}

/// The check of one engine. An engine that is not running is a problem only if the configuration names it.
pub fn check(status: &EngineStatus, expectations: EngineExpectations<'_>) -> DoctorCheck {
    let EngineExpectations { config, is_default_missed, .. } = expectations;
    let (key, address) = (status.engine.key(), status.engine.address());
    let default = config.engine.default.iter().filter(|_| is_default_missed);
    let is_default = default.chain(&config.engine.pool).any(|wanted| wanted.as_str() == key);
    let missed = if is_default { CheckStatus::Warning } else { CheckStatus::Off };
    let missing = |message: String, advice: String| {
        let check = DoctorCheck::new(key, missed, message);
        if is_default { check.advise(advice) } else { check }
    };
    match &status.state {
        EngineState::Available { models } => {
            let models = counted(models.len(), "model");
            let place = match address {
                "" => "built in".to_owned(),
                _ if is_discovered(status.engine.as_ref()) => {
                    let hosts = status.engine.members();
                    let addresses: Vec<&str> = hosts.iter().map(|host| host.address()).collect();
                    format!("{address} → {}", addresses.join(", "))
                }
                _ => address.to_owned(),
            };
            match status.silent_hosts.as_slice() {
                [] => DoctorCheck::new(key, CheckStatus::Good, format!("{place}, {models}")),
                [first, ..] => {
                    let silent = status.silent_hosts.join(", ");
                    DoctorCheck::new(
                        key,
                        CheckStatus::Warning,
                        format!("{place}, {models}; no answer from {silent}"),
                    )
                    .advise(engine_advice::how_to_start(key, first))
                }
            }
        }
        EngineState::Failing(error) => {
            let severity = if is_default { CheckStatus::Bad } else { CheckStatus::Warning };
            let of_engine = error.downcast_ref::<EngineError>();
            if of_engine.is_some_and(has_bad_certificate) {
                // Its usual hint names this command.
                let message = format!("{address}: {}", failure::with_causes(error));
                return DoctorCheck::new(key, severity, message).advise(failure::CERTIFICATE_HINT);
            }
            let advice = match (of_engine, key) {
                (Some(EngineError::Refused { status: 401 | 403, .. }), "cloud") => {
                    "Set a valid provider key: OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY".to_owned()
                }
                (Some(EngineError::Refused { status: 401 | 403, .. }), _) => {
                    format!("Set [engine.{key}] api_key to a valid key")
                }
                _ if is_discovered(status.engine.as_ref()) => engine_advice::how_to_start(key, address),
                _ => format!("Check that {key} listens there, and read its log"),
            };
            DoctorCheck::new(key, severity, format!("{address}: {}", failure::explain(error))).advise(advice)
        }
        EngineState::NotConfigured => {
            let message = match key {
                "embedded" => "no model yet; download one with 'hob model pull smollm2-135m-instruct'",
                _ => "no API key is set (OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY)",
            };
            missing(message.to_owned(), engine_advice::how_to_start(key, address))
        }
        // vLLM's default port is Hob's own, so this is normal on a fresh machine.
        EngineState::OwnAddress => missing(
            format!("skipped, port {} is Hob's own port", config.server.port),
            engine_advice::how_to_part(key),
        ),
        EngineState::NotResponding
            if key == EngineName::Llamacpp.as_str() && config.engine.llamacpp.binary_path.is_some() =>
        {
            DoctorCheck::new(
                key,
                CheckStatus::Off,
                format!("{address} is not running; Hob starts it on demand"),
            )
        }
        EngineState::NotResponding => {
            missing(format!("{address} does not answer"), engine_advice::how_to_start(key, address))
        }
    }
}

/// A setting with which no engine can be created.
pub fn check_unmade(error: EngineError) -> DoctorCheck {
    let advice = match &error {
        EngineError::NotConfigured { engine, .. } if engine == EngineName::Cloud.as_str() => {
            "Set a valid provider key, or unset it: OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY"
                .to_owned()
        }
        EngineError::NotConfigured { engine, .. } => {
            format!("Correct [engine.{engine}] in the configuration")
        }
        _ => "Correct [engine] in the configuration".to_owned(),
    };
    DoctorCheck::new("engine", CheckStatus::Bad, failure::explain(&error.into())).advise(advice)
}

/// Model files of the embedded engine that are missing or cannot be loaded.
pub fn check_files(config: &Config, home: &Path) -> Vec<DoctorCheck> {
    let broken = stored_models::broken_models(config, home).into_iter();
    let check = broken.map(|(id, problem)| {
        DoctorCheck::new(
            EngineName::Embedded.as_str(),
            CheckStatus::Warning,
            format!("the model file of '{id}' cannot be used: {problem}"),
        )
        .advise(format!("Remove it with 'hob model rm {id}', then pull it again"))
    });
    let missing = stored_models::missing_draft_model(config, home).map(|model| {
        DoctorCheck::new(
            EngineName::Embedded.as_str(),
            CheckStatus::Warning,
            format!("the draft model '{model}' is not downloaded, so models answer without it"),
        )
        .advise(format!("Download it with 'hob model pull {model}', or remove [engine.embedded] draft_model"))
    });
    check.chain(missing).collect()
}

/// Which engine answers by the rules of selection.
pub fn check_choice<'a>(
    chosen: Result<SelectedEngine, NoEngine>,
    found: &'a [EngineStatus],
    expectations: EngineExpectations<'_>,
) -> (EngineToAsk<'a>, DoctorCheck) {
    const NAME: &str = "engine";
    let EngineExpectations { config, is_default_missed, download } = expectations;
    let none = match chosen {
        Ok(SelectedEngine { engine, because }) => {
            let check = match because {
                SelectionReason::Fallback { instead_of: Some(key) } if !is_default_missed => {
                    let message = format!(
                        "{} answers; {key}, which 'hob init' recommends here, is not running",
                        engine.key()
                    );
                    DoctorCheck::new(NAME, CheckStatus::Good, message)
                        .advise(format!("It is optional. For larger models: {}", how_to_have(&key, found)))
                }
                SelectionReason::Fallback { instead_of: Some(key) } => {
                    let message = format!("{} answers instead of {key}", engine.key());
                    DoctorCheck::new(NAME, CheckStatus::Warning, message)
                        .advise(format!("Start {key}, or set [engine] default = \"{}\"", engine.key()))
                }
                SelectionReason::Fallback { instead_of: None } => DoctorCheck::new(
                    NAME,
                    CheckStatus::Good,
                    format!("{} answers; no default is set", engine.key()),
                ),
                SelectionReason::Default | SelectionReason::Given => DoctorCheck::new(
                    NAME,
                    CheckStatus::Good,
                    format!("{} answers{}", engine.key(), beside(&engine, config)),
                ),
            };
            let answering = match has_default_model(&engine, found, config) {
                Some(status) => EngineToAsk::Engine(Arc::clone(&status.engine), models(status)),
                None => EngineToAsk::Engine(engine, None),
            };
            return (answering, check);
        }
        Err(none) => none,
    };
    match managed_binary(config) {
        Some(binary) if is_program(binary) => {
            let check = DoctorCheck::new(
                NAME,
                CheckStatus::Good,
                format!("Hob starts {} on demand", binary.display()),
            );
            (EngineToAsk::Startable, check)
        }
        Some(binary) => {
            let check = DoctorCheck::new(
                NAME,
                CheckStatus::Bad,
                format!("'{}' is not an executable program", binary.display()),
            )
            .advise("Correct [engine.llamacpp] binary_path, or make the file executable with 'chmod +x'");
            (EngineToAsk::None, check)
        }
        // If no engine is configured, the first question downloads a model.
        None if !is_default_missed && has_embedded(found) => check_download(download),
        None => {
            let mut advice = remedy(&none);
            if has_embedded(found) {
                advice += "; or use the embedded engine: 'hob model pull smollm2-135m-instruct'";
            }
            (EngineToAsk::None, DoctorCheck::new(NAME, CheckStatus::Bad, "no engine answers").advise(advice))
        }
    }
}

/// Whether the first question can download a model.
fn check_download<'a>(download: StarterDownload) -> (EngineToAsk<'a>, DoctorCheck) {
    const NAME: &str = "engine";
    match download {
        StarterDownload::Possible => {
            let message = format!(
                "no engine is running; the first question downloads a small starter model ({})",
                starter_model::starter_size()
            );
            let check = DoctorCheck::new(NAME, CheckStatus::Good, message).advise(
                "Download it now with 'hob model pull smollm2-135m-instruct', or start an engine, e.g. with 'ollama serve'",
            );
            (EngineToAsk::Startable, check)
        }
        StarterDownload::NoSource => {
            let message = "no engine is running, and Hob cannot download its small starter model: the model hub does not \
                           answer, and pip cannot get it either";
            let check = DoctorCheck::new(NAME, CheckStatus::Bad, message).advise(
                "Check the network connection, or set HF_ENDPOINT to a hub that this machine can reach; or start an \
                 engine, e.g. with 'ollama serve'; or import a model file: 'hob model pull FILE.gguf'",
            );
            (EngineToAsk::None, check)
        }
        StarterDownload::NotWritable => {
            let message = "no engine is running, and Hob cannot download its small starter model: its directory is not \
                           writable";
            let check = DoctorCheck::new(NAME, CheckStatus::Bad, message).advise(
                "Make Hob's directory writable, or set HOB_HOME to a directory that you own; or start an engine, e.g. \
                 with 'ollama serve'",
            );
            (EngineToAsk::None, check)
        }
    }
}

/// How to start an engine.
fn how_to_have(key: &str, found: &[EngineStatus]) -> String {
    let status = found.iter().find(|status| status.engine.key() == key);
    let is_ours = status.is_some_and(|status| matches!(status.state, EngineState::OwnAddress));
    match is_ours {
        true => engine_advice::how_to_start_beside_us(key),
        false => engine_advice::how_to_start(key, status.map_or("", |status| status.engine.address())),
    }
}

fn has_embedded(found: &[EngineStatus]) -> bool {
    found.iter().any(|status| status.engine.key() == EngineName::Embedded.as_str())
}

/// The models that an engine lists.
fn models(status: &EngineStatus) -> Option<&[ModelInfo]> {
    match &status.state {
        EngineState::Available { models } => Some(models.as_slice()),
        EngineState::OwnAddress
        | EngineState::NotConfigured
        | EngineState::NotResponding
        | EngineState::Failing(_) => None,
    }
}

/// The engine that answers for the default model: one of the pool that has it, else the chosen one.
fn has_default_model<'a>(
    chosen: &Arc<dyn Engine>,
    found: &'a [EngineStatus],
    config: &Config,
) -> Option<&'a EngineStatus> {
    let of = |key: &str| found.iter().find(|status| status.engine.key() == key);
    let has = |status: &&EngineStatus| {
        let default = config.default_model().unwrap_or_default();
        let listed = models(status).unwrap_or_default();
        listed.iter().any(|model| status.engine.means(default, &model.id))
    };
    let pool = config.engine.pool.iter().filter_map(|key| of(key.as_str()));
    let first = of(chosen.key());
    first.into_iter().chain(pool).find(has).or(first)
}

/// The other engines of the pool.
fn beside(chosen: &Arc<dyn Engine>, config: &Config) -> String {
    let others = config.engine.pool.iter().map(|key| key.as_str()).filter(|key| *key != chosen.key());
    match others.collect::<Vec<_>>().as_slice() {
        [] => String::new(),
        others => format!(", also {}", others.join(", ")),
    }
}

fn remedy(none: &NoEngine) -> String {
    match none {
        NoEngine::UnknownKey { known, .. } => format!("Set [engine] default to one of {}", known.join(", ")),
        NoEngine::Given(RejectedEngine { key, address, .. }) => engine_advice::how_to_start(key, address),
        NoEngine::NoneHealthy { tried } => match tried.first() {
            Some(RejectedEngine { key, address, .. }) => {
                format!("{key} is tried first. {}", engine_advice::how_to_start(key, address))
            }
            None => "Configure an engine in [engine]".to_owned(),
        },
    }
}

/// The server that Hob would start.
fn managed_binary(config: &Config) -> Option<&Path> {
    let is_preferred = config.engine.default.is_none_or(|key| key == EngineName::Llamacpp);
    config.engine.llamacpp.binary_path.as_deref().filter(|_| is_preferred)
}
