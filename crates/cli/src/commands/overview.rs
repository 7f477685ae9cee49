//! `hob` without a command: shows what is running and what to do next. Takes at most two seconds.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures::future::join_all;
use hob_app::{Databases, beside, choose, default_model, is_default_missed};
use hob_config::Config;
use hob_core::model::AUTO;
use hob_core::{Engine, EngineError};
use hob_engines::EnginePool;
use tokio::time::timeout;

use crate::answers::{FoundServer, ServerRequest, find_server};
use crate::commands::block_on;
use crate::engine_advice;
use crate::output;
use crate::output::style::{DIM, NAME};
use crate::output::table;
use crate::output::text::one_line;
use crate::own_address::as_served;
use crate::running_server::{self, LocatedServer, ServerProbe, UrlScheme};
use crate::settings;
use crate::starter_model;

/// The time limits of all checks and of one request. An engine gets two requests: its health, and its models.
const TIMEOUT: Duration = Duration::from_millis(1_800);
const PROBE_TIMEOUT: Duration = Duration::from_millis(900);

/// What was found.
struct OverviewState {
    server: ServerProbe,
    engine: AnsweringEngine,
    /// The URL where the server listens or would listen.
    address: String,
}

/// The engine that would answer a question.
enum AnsweringEngine {
    /// None: the configured engine does not answer.
    ConfiguredSilent,
    /// None, and none is configured: a question would download the starter model.
    None {
        /// Whether the configuration names an engine.
        is_set_up: bool,
    },
    Engine {
        key: String,
        address: String,
        model: DefaultModelState,
    },
}

/// The state of the default model.
enum DefaultModelState {
    /// The engine has none.
    None,
    /// The engine has it, as far as is known.
    Available(String),
    /// It is configured, and the engine does not have it.
    Missing(String),
    /// Hob chooses a model for each question.
    Auto,
}

pub fn run() -> Result<ExitCode> {
    let config = settings::load()?;
    let home = settings::home()?;
    let state = block_on(async {
        let (server, engine, served) = tokio::join!(
            timeout(TIMEOUT, running_server::locate(&config.server, &home)),
            find_answering_engine(&config, &home),
            timeout(TIMEOUT, served_model(&home)),
        );
        let found = server.unwrap_or_else(|_| LocatedServer {
            host: config.server.host.clone(),
            port: config.server.port,
            probe: ServerProbe::OtherProgram,
        });
        Ok(OverviewState {
            server: found.probe,
            engine: match served {
                Ok(Some(served)) => engine?.serving(served),
                Ok(None) | Err(_) => engine?,
            },
            address: found.url().unwrap_or_else(|| {
                running_server::url(UrlScheme::of(&config.server), &found.host, found.port)
            }),
        })
    })?;
    table::print_facts(&state.facts())?;
    output::line("")?;
    let commands = state.commands();
    let width = commands.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0);
    for (command, purpose) in &commands {
        output::line(format_args!("  {NAME}{command:width$}{NAME:#}  {purpose}"))?;
    }
    output::line(format_args!("\n{DIM}'hob --help' shows all commands.{DIM:#}"))?;
    Ok(ExitCode::SUCCESS)
}

async fn find_answering_engine(config: &Config, home: &Path) -> Result<AnsweringEngine> {
    let all = hob_app::engines(config, home)?;
    let probes = all.iter().map(|engine| timeout(PROBE_TIMEOUT, engine.health()));
    let (answers, served) = tokio::join!(join_all(probes), timeout(PROBE_TIMEOUT, as_served(config, home)));
    let answers: Vec<bool> = answers.into_iter().map(|answer| answer.unwrap_or(false)).collect();
    let config = &served.unwrap_or_else(|_| config.clone());
    // Only engines that answered in time are candidates, so the selection does not wait.
    let engines: Vec<Arc<dyn Engine>> = all
        .iter()
        .zip(answers)
        .filter(|(_, answers)| *answers)
        .map(|(engine, _)| Arc::clone(engine))
        .collect();
    let Ok(chosen) = choose(&engines, config, None).await else {
        return Ok(match is_default_missed(config, &Databases::open(config, home)?.hob) {
            true => AnsweringEngine::ConfiguredSilent,
            false => AnsweringEngine::None { is_set_up: config.engine.default.is_some() },
        });
    };
    let engine = chosen.engine;
    let model = match config.default_model() {
        Some(AUTO) => DefaultModelState::Auto,
        Some(model) => default_model_state(model, &engine, beside(&engine, &all, config)).await,
        None => chosen_model(config, home, &engine)
            .await
            .map_or(DefaultModelState::None, DefaultModelState::Available),
    };
    Ok(AnsweringEngine::Engine { key: engine.key().to_owned(), address: engine.address().to_owned(), model })
}

/// The engine and the model of the running server, which may have been started with other settings than those of the file.
struct ServerDefault {
    engine: String,
    model: String,
}

/// `None` if there is no server, or if it has no model.
async fn served_model(home: &Path) -> Option<ServerDefault> {
    let FoundServer::Server(link) = find_server(home).await else { return None };
    let model = link.request(&ServerRequest::DefaultModel).await.ok()?;
    Some(ServerDefault { engine: link.info.engine, model })
}

impl AnsweringEngine {
    /// The same with the model that the running server answers with.
    fn serving(self, served: ServerDefault) -> Self {
        match self {
            AnsweringEngine::Engine { key, address, model } if key == served.engine => {
                let is_known = model.name() == Some(served.model.as_str());
                let model = if is_known { model } else { DefaultModelState::named(served.model) };
                AnsweringEngine::Engine { key, address, model }
            }
            AnsweringEngine::Engine { .. } => AnsweringEngine::Engine {
                key: served.engine,
                address: String::new(),
                model: DefaultModelState::named(served.model),
            },
            none @ (AnsweringEngine::ConfiguredSilent | AnsweringEngine::None { .. }) => none,
        }
    }
}

impl DefaultModelState {
    /// Of a model that exists.
    fn named(model: String) -> Self {
        if model == AUTO { DefaultModelState::Auto } else { DefaultModelState::Available(model) }
    }

    fn name(&self) -> Option<&str> {
        match self {
            DefaultModelState::None => None,
            DefaultModelState::Available(model) | DefaultModelState::Missing(model) => Some(model),
            DefaultModelState::Auto => Some(AUTO),
        }
    }
}

/// Whether an engine has the model. An engine that takes too long to answer may have it.
async fn default_model_state(
    model: &str,
    engine: &Arc<dyn Engine>,
    others: Vec<Arc<dyn Engine>>,
) -> DefaultModelState {
    let pool = EnginePool::new(Arc::clone(engine), others);
    match timeout(PROBE_TIMEOUT, pool.engine_of(model)).await {
        Ok(Err(EngineError::ModelNotFound { .. })) => DefaultModelState::Missing(model.to_owned()),
        Ok(_) | Err(_) => DefaultModelState::Available(model.to_owned()),
    }
}

/// The engine's default model if none is configured, unless its list takes too long.
async fn chosen_model(config: &Config, home: &Path, engine: &Arc<dyn Engine>) -> Option<String> {
    timeout(PROBE_TIMEOUT, default_model(config, home, engine)).await.ok()?.ok()?
}

impl OverviewState {
    fn facts(&self) -> Vec<(&'static str, String)> {
        let address = &self.address;
        let server = match self.server {
            ServerProbe::Hob { health: 200, .. } => {
                format!("running: chat at {address}, dashboard at {address}/dashboard")
            }
            ServerProbe::Hob { .. } => format!("running at {address}, but its engine does not answer"),
            ServerProbe::NoListener => "not running".to_owned(),
            ServerProbe::OtherProgram => format!("not running; another program listens on {address}"),
        };
        let (engine, model) = match &self.engine {
            AnsweringEngine::None { .. } if cfg!(feature = "embedded") => (
                format!(
                    "No engine found. Hob will download a small starter model ({}).",
                    starter_model::starter_size()
                ),
                None,
            ),
            AnsweringEngine::None { .. } | AnsweringEngine::ConfiguredSilent => {
                ("no engine answers".to_owned(), None)
            }
            AnsweringEngine::Engine { key, address, model } => {
                let model = match model {
                    DefaultModelState::None => "none yet".to_owned(),
                    DefaultModelState::Available(model) => one_line(model),
                    DefaultModelState::Missing(model) => {
                        format!("{}: not available on {key}; see 'hob model list'", one_line(model))
                    }
                    DefaultModelState::Auto => format!("{AUTO} (chosen for each question)"),
                };
                (engine_advice::place(key, address), Some(model))
            }
        };
        let mut facts = vec![("Server", server), ("Engine", engine)];
        facts.extend(model.map(|model| ("Model", model)));
        facts
    }

    /// The three most useful commands.
    fn commands(&self) -> [(&'static str, &'static str); 3] {
        let serve = match self.server {
            ServerProbe::OtherProgram => ("hob serve --port 8001", "serve OpenAI clients on a free port"),
            _ => ("hob serve", "serve OpenAI clients"),
        };
        let doctor = ("hob doctor", "find out what is wrong");
        match (&self.engine, self.server) {
            (AnsweringEngine::None { is_set_up }, _) if cfg!(feature = "embedded") => [
                ("hob chat", "chat with a small model (downloaded first)"),
                if *is_set_up {
                    serve
                } else {
                    ("hob init", "detect the hardware and write a configuration")
                },
                doctor,
            ],
            (AnsweringEngine::None { .. } | AnsweringEngine::ConfiguredSilent, _) => [
                ("hob doctor", "find out why no engine answers"),
                ("hob model list", "list the models"),
                ("hob init --force", "write a new configuration"),
            ],
            (AnsweringEngine::Engine { model: DefaultModelState::Missing(_), .. }, _) => [
                ("hob model list", "list the models"),
                ("hob chat -m MODEL", "chat with one of them"),
                doctor,
            ],
            (AnsweringEngine::Engine { key, model: DefaultModelState::None, .. }, _) if key == "ollama" => [
                ("hob model pull qwen3:0.6b", "download a model"),
                ("hob model list", "list the models"),
                doctor,
            ],
            (AnsweringEngine::Engine { model: DefaultModelState::None, .. }, _) => [
                ("hob model pull smollm2-135m-instruct", "download a model that Hob runs itself"),
                ("hob model list", "list the models"),
                doctor,
            ],
            (AnsweringEngine::Engine { .. }, ServerProbe::Hob { .. }) => [
                ("hob chat", "chat with the model"),
                ("hob telemetry stats", "show recorded calls and latencies"),
                ("hob memory index ~/notes", "use your documents in answers"),
            ],
            (AnsweringEngine::Engine { .. }, _) => [
                ("hob chat", "chat with the model"),
                serve,
                ("hob memory index ~/notes", "use your documents in answers"),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ollama(model: Option<&str>) -> AnsweringEngine {
        AnsweringEngine::Engine {
            key: "ollama".into(),
            address: "http://localhost:11434".into(),
            model: model
                .map_or(DefaultModelState::None, |model| DefaultModelState::Available(model.to_owned())),
        }
    }

    fn hob(health: u16) -> ServerProbe {
        ServerProbe::Hob { health, scheme: UrlScheme::Http }
    }

    /// The facts and the first words of the commands.
    fn shown(server: ServerProbe, engine: AnsweringEngine) -> String {
        let state = OverviewState { server, engine, address: "http://localhost:8000".into() };
        let facts =
            state.facts().into_iter().map(|(name, value)| format!("{name}: {value}\n")).collect::<String>();
        let commands: Vec<&str> = state.commands().into_iter().map(|(command, _)| command).collect();
        format!("{facts}{}", commands.join(" | "))
    }

    #[test]
    fn every_state_has_its_commands() {
        insta::assert_snapshot!(shown(hob(200), ollama(Some("qwen3:8b"))), @r"
        Server: running: chat at http://localhost:8000, dashboard at http://localhost:8000/dashboard
        Engine: ollama at http://localhost:11434
        Model: qwen3:8b
        hob chat | hob telemetry stats | hob memory index ~/notes
        ");
        insta::assert_snapshot!(shown(ServerProbe::NoListener, ollama(Some("qwen3:8b"))), @r"
        Server: not running
        Engine: ollama at http://localhost:11434
        Model: qwen3:8b
        hob chat | hob serve | hob memory index ~/notes
        ");
        insta::assert_snapshot!(shown(ServerProbe::OtherProgram, ollama(Some("qwen3:8b"))), @r"
        Server: not running; another program listens on http://localhost:8000
        Engine: ollama at http://localhost:11434
        Model: qwen3:8b
        hob chat | hob serve --port 8001 | hob memory index ~/notes
        ");
        insta::assert_snapshot!(shown(ServerProbe::NoListener, ollama(None)), @r"
        Server: not running
        Engine: ollama at http://localhost:11434
        Model: none yet
        hob model pull qwen3:0.6b | hob model list | hob doctor
        ");
        let missing = AnsweringEngine::Engine {
            key: "ollama".into(),
            address: "http://localhost:11434".into(),
            model: DefaultModelState::Missing("qwen9".into()),
        };
        insta::assert_snapshot!(shown(ServerProbe::NoListener, missing), @r"
        Server: not running
        Engine: ollama at http://localhost:11434
        Model: qwen9: not available on ollama; see 'hob model list'
        hob model list | hob chat -m MODEL | hob doctor
        ");
        insta::assert_snapshot!(shown(ServerProbe::NoListener, AnsweringEngine::None { is_set_up: false }), @r"
        Server: not running
        Engine: No engine found. Hob will download a small starter model (94 MB).
        hob chat | hob init | hob doctor
        ");
        insta::assert_snapshot!(shown(ServerProbe::NoListener, AnsweringEngine::None { is_set_up: true }), @r"
        Server: not running
        Engine: No engine found. Hob will download a small starter model (94 MB).
        hob chat | hob serve | hob doctor
        ");
        insta::assert_snapshot!(shown(hob(503), AnsweringEngine::ConfiguredSilent), @r"
        Server: running at http://localhost:8000, but its engine does not answer
        Engine: no engine answers
        hob doctor | hob model list | hob init --force
        ");
    }
}
