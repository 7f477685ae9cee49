//! Ollama's commands: each runs the command of Hob that does the same.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::Parser;
use futures::future::join_all;
use hob_core::{Engine, EngineError, RunningModel};
use hob_models::catalogue::find;
use serde_json::json;
use tokio::time::timeout;

use crate::answers::{FoundServer, ServerRequest, find_server};
use crate::args::{AskArgs, ChatArgs, ModelCommand, OllamaCommand};
use crate::commands::model::{self, UsableModel};
use crate::commands::{ask, block_on, chat};
use crate::output::number::memory;
use crate::output::table::{self, Column};
use crate::output::text::one_line;
use crate::output::{self, OutputFormat};
use crate::running_server;
use crate::settings;

/// An engine that takes longer is skipped.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The name of a running server in the place of an engine's.
const SERVER: &str = "hob";

const COLUMNS: [Column; 4] =
    [Column::Words("MODEL"), Column::Words("ENGINE"), Column::Numbers("MEMORY"), Column::Words("UNLOADED")];

pub fn run(word: OllamaCommand, verbose: u8) -> Result<ExitCode> {
    match word {
        OllamaCommand::Run { model: Some(model), prompt } => run_model(&model, &prompt.join(" "), verbose),
        OllamaCommand::Run { model: None, .. } => {
            chat::run(ChatArgs::try_parse_from(["hob"])?, verbose.into())
        }
        OllamaCommand::Ps { json } => block_on(list_running(json.into())),
        OllamaCommand::List { json } => model::run(ModelCommand::List { available: false, json }),
        OllamaCommand::Pull { model, offline } => model::run(ModelCommand::Pull { model, offline }),
        OllamaCommand::Show { model, json } => model::run(ModelCommand::Info { model, json }),
        OllamaCommand::Stop { model: Some(model) } => block_on(stop(&model)),
        OllamaCommand::Stop { model: None } => bail!(
            "'hob stop MODEL' removes a model from memory. To stop the server, press Ctrl-C where 'hob serve' runs, or use \
             'hob service stop' for a service."
        ),
        OllamaCommand::Rm { model } => model::run(ModelCommand::Rm { model, yes: false }),
    }
}

/// A chat with a model, or one question. A model that is not there can be downloaded first.
fn run_model(name: &str, prompt: &str, verbose: u8) -> Result<ExitCode> {
    let config = settings::load()?;
    let UsableModel { engine } = match block_on(model::find_or_download(&config, name))? {
        Ok(usable) => usable,
        Err(code) => return Ok(code),
    };
    let mut words = vec!["hob", "-m", name];
    if let Some(engine) = &engine {
        words.extend(["-e", engine]);
    }
    if prompt.is_empty() {
        return chat::run(ChatArgs::try_parse_from(words)?, verbose.into());
    }
    words.extend(["--", prompt]);
    ask::run(AskArgs::try_parse_from(words)?, verbose.into())
}

/// Lists the models in memory.
async fn list_running(format: OutputFormat) -> Result<ExitCode> {
    let mut running = running(&engines().await?).await?;
    name_engines(&mut running).await?;
    match format {
        OutputFormat::Json => {
            let models = running.iter().map(|InMemory { source, model, .. }| {
                json!({
                    "engine": source,
                    "model": model.id,
                    "size": model.size,
                    "expires": model.expires,
                })
            });
            output::json(&models.collect::<Vec<_>>())?;
        }
        OutputFormat::Text if running.is_empty() => output::note("No model is in memory."),
        OutputFormat::Text => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            let rows: Vec<Vec<String>> =
                running.iter().map(|InMemory { source, model, .. }| row(source, model, now)).collect();
            table::print(&COLUMNS, &rows)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Replaces the name of the server by those of the engines, as 'hob model list' has them. A server that cannot say keeps its name.
async fn name_engines(running: &mut [InMemory]) -> Result<()> {
    if running.iter().all(|model| model.source != SERVER) {
        return Ok(());
    }
    let FoundServer::Server(link) = find_server(&settings::home()?).await else { return Ok(()) };
    let listed: Result<Vec<(String, String)>, _> = link.request(&ServerRequest::AllModels).await;
    use_listed_names(running, &listed.unwrap_or_default());
    Ok(())
}

/// Gives the models of a server the names of this list of models and engines. Of several engines with a model, the first one answers.
fn use_listed_names(running: &mut [InMemory], listed: &[(String, String)]) {
    for InMemory { source, engine, model } in running.iter_mut().filter(|model| model.source == SERVER) {
        // The server adds a tag to names without one.
        let known = listed
            .iter()
            .find(|(id, _)| *id == model.id)
            .or_else(|| listed.iter().find(|(id, _)| engine.means(id, &model.id)));
        if let Some((id, key)) = known {
            model.id.clone_from(id);
            source.clone_from(key);
        }
    }
}

fn row(engine: &str, model: &RunningModel, now: u64) -> Vec<String> {
    let left = model.expires.and_then(|at| u64::try_from(at).ok()).map(|at| at.saturating_sub(now));
    vec![
        one_line(&model.id),
        engine.to_owned(),
        model.size.map_or_else(|| "-".to_owned(), memory),
        left.map_or_else(|| "-".to_owned(), |left| format!("in {} min", left.div_ceil(60))),
    ]
}

/// A model in memory.
struct InMemory {
    /// The name of its engine, or of the server that uses it.
    source: String,
    engine: Arc<dyn Engine>,
    model: RunningModel,
}

/// The running server, which lists the models of all its engines; without one, the engines that run on their own. Each with its name.
async fn engines() -> Result<Vec<(String, Arc<dyn Engine>)>> {
    let (config, home) = (settings::load()?, settings::home()?);
    let server = running_server::locate(&config.server, &home).await;
    if let Some(url) = server.url() {
        return Ok(vec![(SERVER.to_owned(), Arc::new(hob_app::running_server(&config, &url)?))]);
    }
    let engines = hob_app::engines(&config, &home)?;
    Ok(engines.into_iter().map(|engine| (engine.key().to_owned(), engine)).collect())
}

/// The models in memory. Engines that do not answer are skipped; a server that refuses is an error.
async fn running(engines: &[(String, Arc<dyn Engine>)]) -> Result<Vec<InMemory>> {
    let mut running = Vec::new();
    for list in join_all(engines.iter().map(|(source, engine)| running_on(source, engine))).await {
        running.extend(list?);
    }
    Ok(running)
}

async fn running_on(source: &str, engine: &Arc<dyn Engine>) -> Result<Vec<InMemory>> {
    let models = match timeout(TIMEOUT, engine.running_models()).await {
        Ok(Ok(models)) => models,
        Ok(Err(EngineError::Refused { status: 401, .. })) if source == SERVER => bail!(
            "the server at {} needs its key, which this shell does not have. Set HOB_API_KEY to it.",
            engine.address()
        ),
        Ok(Err(error)) if source == SERVER => return Err(error.into()),
        Ok(Err(_)) | Err(_) => Vec::new(),
    };
    let in_memory = |model| InMemory { source: source.to_owned(), engine: Arc::clone(engine), model };
    Ok(models.into_iter().map(in_memory).collect())
}

/// Removes a model from memory.
async fn stop(name: &str) -> Result<ExitCode> {
    let running = running(&engines().await?).await?;
    let is_meant = |InMemory { engine, model, .. }: &&InMemory| {
        engine.means(name, &model.id) || find(name).is_some_and(|entry| engine.means(entry.name, &model.id))
    };
    let Some(InMemory { engine, model, .. }) = running.iter().find(is_meant) else {
        bail!("'{name}' is not in memory. 'hob ps' lists the models that are.");
    };
    engine.unload(&model.id).await.with_context(|| format!("'{name}' stays in memory"))?;
    output::line(format_args!("{} is no longer in memory.", one_line(&model.id)))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use hob_config::Config;

    use super::*;

    #[tokio::test]
    async fn models_of_a_server_have_the_names_of_the_list() {
        let server = hob_app::running_server(&Config::default(), "http://127.0.0.1:1").expect("an engine");
        let server: Arc<dyn Engine> = Arc::new(server);
        let ids = ["tiny:latest", "qwen3:8b", "both", "both:latest", "unknown:latest"];
        let mut running = ids.map(|id| InMemory {
            source: SERVER.to_owned(),
            engine: Arc::clone(&server),
            model: RunningModel { id: id.to_owned(), ..RunningModel::default() },
        });
        let listed = [
            ("tiny", "embedded"),
            ("tiny", "vllm"),
            ("qwen3:8b", "ollama"),
            ("both", "vllm"),
            ("both:latest", "ollama"),
        ];
        use_listed_names(&mut running, &listed.map(|(id, key)| (id.to_owned(), key.to_owned())));
        let names = running.each_ref().map(|model| (model.model.id.as_str(), model.source.as_str()));
        let expected = [listed[0], listed[2], listed[3], listed[4], ("unknown:latest", SERVER)];
        assert_eq!(names, expected);
    }
}
