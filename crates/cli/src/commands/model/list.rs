//! `hob model list`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use futures::{StreamExt, stream};
use hob_app::ollama;
use hob_config::Config;
use hob_core::{ModelInfo, ModelKind};
use serde_json::{Value, json};

use super::{asked, check_all_engines, chosen, silent};
use crate::engine_status::{EngineState, EngineStatus};
use crate::failure;
use crate::output::number::{memory, tokens, weights};
use crate::output::table::{self, Column};
use crate::output::text::one_line;
use crate::output::{self, OutputFormat};
use crate::settings;
use crate::starter_model;

/// The number of concurrent requests for details, and the timeout of each.
const QUESTIONS: usize = 4;
const TIMEOUT: Duration = Duration::from_secs(5);

const COLUMNS: [Column; 5] = [
    Column::Words("ENGINE"),
    Column::Words("MODEL"),
    Column::Numbers("PARAMS"),
    Column::Numbers("CONTEXT"),
    Column::Numbers("SIZE"),
];

pub async fn run(config: &Config, format: OutputFormat) -> Result<ExitCode> {
    let mut found = check_all_engines(config).await?;
    for EngineStatus { engine, state, .. } in &mut found {
        if let (EngineState::Available { models }, "ollama") = (state, engine.key()) {
            add_contexts(config, models).await?;
        }
    }
    let default = default(config, &found).await?;
    let listed: Vec<ModelRow> = found
        .iter()
        .flat_map(|status| models(status).iter().map(|model| (status.engine.key(), model)))
        .map(|(engine, model)| ModelRow { engine, model, is_default: default == Some((engine, &model.id)) })
        .collect();
    match format {
        OutputFormat::Json => output::json(&listed.iter().map(ModelRow::as_json).collect::<Vec<_>>())?,
        OutputFormat::Text => {
            print(&listed)?;
            let default = listed.iter().find(|row| row.is_default);
            if let Some(trial) = default.and_then(|row| starter_model::trial_note(&row.model.id)) {
                output::note(trial);
            }
        }
    }
    note_other_engines(&found);
    Ok(ExitCode::SUCCESS)
}

/// Ollama's list has no context lengths, but its details do. Failures are ignored.
async fn add_contexts(config: &Config, models: &mut [ModelInfo]) -> Result<()> {
    let ollama = ollama(config)?;
    stream::iter(models)
        .for_each_concurrent(QUESTIONS, |model| async {
            if let Ok(Ok(details)) = tokio::time::timeout(TIMEOUT, ollama.show(&model.id)).await {
                model.context = model.context.or(details.context);
                model.parameters = details.parameters.or(model.parameters);
            }
        })
        .await;
    Ok(())
}

/// The default model, and the engine that answers with it; `None` where that is chosen for each question, or is not there.
async fn default<'a>(config: &Config, found: &'a [EngineStatus]) -> Result<Option<(&'a str, &'a str)>> {
    let Some(chosen) = chosen(config, found).await else { return Ok(None) };
    let default = hob_app::default_model(config, &settings::home()?, &chosen.engine).await;
    let Some(default) = default.ok().flatten() else { return Ok(None) };
    Ok(asked(chosen, found, config).into_iter().find_map(|status| {
        let model = models(status).iter().find(|model| status.engine.means(&default, &model.id))?;
        Some((status.engine.key(), model.id.as_str()))
    }))
}

pub fn models(status: &EngineStatus) -> &[ModelInfo] {
    match &status.state {
        EngineState::Available { models } => models,
        EngineState::OwnAddress
        | EngineState::NotConfigured
        | EngineState::NotResponding
        | EngineState::Failing(_) => &[],
    }
}

/// A line of the list.
struct ModelRow<'a> {
    engine: &'a str,
    model: &'a ModelInfo,
    is_default: bool,
}

impl ModelRow<'_> {
    fn as_json(&self) -> Value {
        let mut value = describe(self.engine, self.model);
        value["default"] = json!(self.is_default);
        value
    }
}

/// A model for another program. What is not known is null.
pub fn describe(engine: &str, model: &ModelInfo) -> Value {
    json!({
        "engine": engine,
        "model": model.id,
        "parameters": model.parameters,
        "context": model.context,
        "size": model.size,
        "quantization": model.quantization,
        "kind": match model.kind {
            ModelKind::Text => "text",
            ModelKind::Embedding => "embedding",
        },
    })
}

fn print(listed: &[ModelRow<'_>]) -> Result<()> {
    let rows: Vec<Vec<String>> = listed.iter().map(row).collect();
    if rows.is_empty() {
        output::note(
            "No engine has a model yet. Download one, e.g. with 'hob model pull qwen3:0.6b'. 'hob model list --available' lists others.",
        );
    } else {
        table::print(&COLUMNS, &rows)?;
    }
    Ok(())
}

fn row(ModelRow { engine, model, is_default }: &ModelRow<'_>) -> Vec<String> {
    let known = |number: Option<u64>, shown: fn(u64) -> String| number.map_or_else(|| "-".to_owned(), shown);
    vec![
        (*engine).to_owned(),
        match model.kind {
            ModelKind::Text if *is_default => format!("{} (default)", one_line(&model.id)),
            ModelKind::Text => one_line(&model.id),
            ModelKind::Embedding => format!("{} (embeddings)", one_line(&model.id)),
        },
        known(model.parameters, weights),
        known(model.context, tokens),
        // What a model takes on disk is roughly what it takes of memory.
        known(model.size, |bytes| format!("~{}", memory(bytes))),
    ]
}

fn note_other_engines(found: &[EngineStatus]) {
    for EngineStatus { engine, state, .. } in found {
        if let EngineState::Failing(error) = state {
            output::warning(format_args!(
                "{} does not list its models: {}",
                engine.key(),
                failure::explain(error)
            ));
        }
    }
    let silent: Vec<String> = found.iter().filter_map(silent).collect();
    if !silent.is_empty() {
        output::note(format_args!("Not running: {}", silent.join(", ")));
    }
}
