//! `hob model info`.

use std::process::ExitCode;

use anyhow::{Error, Result, anyhow};
use hob_app::ollama;
use hob_app::startup::local_models::local_models;
use hob_config::{Config, EngineName};
use hob_core::model::{AUTO, DEFAULT_MODEL};
use hob_core::{DevicePlan, DeviceShare, ModelInfo, ModelKind};
use hob_engines::ollama::ModelDetails;
use hob_models::catalogue;
use hob_models::{DraftPlan, LocalModels, ModelFootprint, StoredModel, StoredProjector};
use serde_json::{Value, json};

use super::available::abilities;
use super::entry_info::{memory_facts, memory_json};
use super::list::describe;
use super::{check_all_engines, entry_info};
use crate::engine_advice;
use crate::engine_status::{EngineState, EngineStatus};
use crate::missing_model_hint::{is_downloadable, near};
use crate::output::number::{memory, tokens, weights};
use crate::output::table::print_facts;
use crate::output::text::one_line;
use crate::output::{self, OutputFormat};
use crate::settings;

pub async fn run(config: &Config, name: &str, format: OutputFormat) -> Result<ExitCode> {
    let name = if name == DEFAULT_MODEL { config.default_model().unwrap_or(name) } else { name };
    let listed = catalogue::find(name);
    let found = match (check_all_engines(config).await, listed) {
        (Ok(found), _) => found,
        // What the built-in list says needs no engine.
        (Err(_), Some(entry)) => return entry_info::run(config, entry, format),
        (Err(error), None) => return Err(error),
    };
    let local = local_models(config, &settings::home()?);
    let mut known = Vec::new();
    for EngineStatus { engine, state, .. } in &found {
        let EngineState::Available { models } = state else { continue };
        let Some(model) = models.iter().find(|model| engine.means(name, &model.id)) else { continue };
        let details = if engine.key() == "ollama" { ask_ollama(config, &model.id).await? } else { None };
        let stored = match engine.key() == EngineName::Embedded.as_str() {
            true => match local.files.find(&model.id)? {
                Some(stored) => StoredFacts::of(&local, &stored).await,
                None => None,
            },
            false => None,
        };
        known.push(ModelOnEngine { engine: engine.key(), address: engine.address(), model, details, stored });
    }
    match (known.is_empty(), listed) {
        (true, Some(entry)) => return entry_info::run(config, entry, format),
        (true, None) => return Err(not_found(name, &found)),
        (false, _) => {}
    }
    match format {
        OutputFormat::Json => output::json(&known.iter().map(ModelOnEngine::as_json).collect::<Vec<_>>())?,
        OutputFormat::Text => {
            for (index, model) in known.iter().enumerate() {
                if index > 0 {
                    output::line("")?;
                }
                print_facts(&model.facts())?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Details that only Ollama's `show` has. Optional: the list is enough.
async fn ask_ollama(config: &Config, model: &str) -> Result<Option<ModelDetails>> {
    let details = ollama(config)?.show(model).await;
    if let Err(error) = &details {
        tracing::warn!(
            %error,
            "Ollama does not describe the model, so some details are missing. 'hob doctor' checks Ollama"
        );
    }
    Ok(details.ok())
}

/// A model on one engine.
struct ModelOnEngine<'a> {
    engine: &'a str,
    address: &'a str,
    model: &'a ModelInfo,
    /// Only for Ollama.
    details: Option<ModelDetails>,
    /// Only for the embedded engine.
    stored: Option<StoredFacts>,
}

/// What is known of a file on this machine.
struct StoredFacts {
    footprint: ModelFootprint,
    /// `None` without a graphics card that can be used.
    devices: Option<DevicePlan>,
    family: Option<String>,
    trained: Option<u64>,
    capabilities: Option<String>,
    license: Option<String>,
    projector: Option<StoredProjector>,
    /// `None` if the settings name none that the model can have.
    draft: Option<DraftPlan>,
}

impl StoredFacts {
    /// `None` if the file is broken, or in a build without the embedded engine.
    async fn of(local: &LocalModels, stored: &StoredModel) -> Option<Self> {
        let header = stored.header.as_ref()?;
        let entry = catalogue::find(&stored.id);
        let by_header = || {
            let projector = stored.projector.as_ref();
            let can = [
                ("chat", header.has_chat_template && !header.is_embedding),
                ("vision", projector.is_some_and(|projector| projector.sees)),
                ("audio", projector.is_some_and(|projector| projector.hears)),
            ];
            let can: Vec<&str> = can.into_iter().filter_map(|(word, can)| can.then_some(word)).collect();
            (!can.is_empty()).then(|| can.join(", "))
        };
        Some(StoredFacts {
            footprint: local.footprint(stored).await?,
            devices: local.device_plan(stored).await.filter(|plan| !plan.shares.is_empty()),
            family: header.architecture.clone(),
            trained: header.context_length,
            // The catalogue knows more, but not whether the projector is here.
            capabilities: entry
                .filter(|entry| entry.projector.is_some() == stored.projector.is_some())
                .map(abilities)
                .or_else(by_header),
            projector: stored.projector.clone(),
            draft: local.draft_plan(stored).await,
            license: header.license.clone().or_else(|| entry.map(|entry| entry.license.to_owned())),
        })
    }
}

impl ModelOnEngine<'_> {
    fn parameters(&self) -> Option<u64> {
        self.details.as_ref().and_then(|details| details.parameters).or(self.model.parameters)
    }

    fn context(&self) -> Option<u64> {
        self.details.as_ref().and_then(|details| details.context).or(self.model.context)
    }

    /// The known facts.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let details = self.details.clone().unwrap_or_default();
        let quantization = self.model.quantization.clone().or(details.quantization);
        let capabilities = match (details.capabilities.join(", "), self.model.kind) {
            (list, _) if !list.is_empty() => Some(list),
            (_, ModelKind::Embedding) => Some("embeddings only".to_owned()),
            (_, ModelKind::Text) => None,
        };
        let stored = self.stored.as_ref();
        let mut facts = vec![
            ("Model", Some(self.model.id.clone())),
            ("Engine", Some(engine_advice::place(self.engine, self.address))),
            ("Family", details.family.or_else(|| stored?.family.clone())),
            ("Parameters", self.parameters().map(weights)),
            ("Quantisation", quantization),
        ];
        match stored {
            Some(stored) => {
                let memory = memory_facts(&stored.footprint, stored.trained);
                facts.extend(memory.into_iter().map(|(name, value)| (name, Some(value))));
                facts.push(("Devices", stored.devices.as_ref().map(where_layers_go)));
            }
            None => facts.extend([
                ("Context", self.context().map(|context| format!("{} tokens", tokens(context)))),
                ("Memory", self.model.size.map(|size| format!("about {}, plus its context", memory(size)))),
            ]),
        }
        facts.extend([
            ("Draft model", stored.and_then(|stored| stored.draft.as_ref().map(draft_fact))),
            ("Projector", stored.and_then(|stored| stored.projector.as_ref().map(projector_fact))),
            ("Capabilities", capabilities.or_else(|| stored?.capabilities.clone())),
            ("Licence", details.license.or_else(|| stored?.license.clone())),
        ]);
        facts.into_iter().filter_map(|(name, value)| Some((name, one_line(&value?)))).collect()
    }

    fn as_json(&self) -> Value {
        let mut value = describe(self.engine, self.model);
        value["parameters"] = json!(self.parameters());
        value["context"] = json!(self.context());
        if let Some(details) = &self.details {
            value["family"] = json!(details.family);
            value["capabilities"] = json!(details.capabilities);
            value["license"] = json!(details.license);
        }
        if let Some(stored) = &self.stored {
            value["memory"] = memory_json(&stored.footprint);
            value["devices"] = json!(stored.devices.as_ref().map(devices_json));
            value["license"] = json!(stored.license);
            value["draft_model"] = json!(
                stored.draft.as_ref().map(|draft| { json!({"model": draft.model, "memory": draft.memory}) })
            );
            value["projector"] = json!(stored.projector.as_ref().map(|projector| {
                json!({
                    "file": projector.path, "size": projector.size, "vision": projector.sees, "audio": projector.hears,
                })
            }));
        }
        value
    }
}

/// The layers on each graphics card, and those that the processor computes.
fn where_layers_go(plan: &DevicePlan) -> String {
    let on_cards: u32 = plan.shares.iter().map(|share| share.layers).sum();
    let of_card = |share: &DeviceShare| {
        format!("{} layers on {} (about {})", share.layers, share.device, memory(share.bytes))
    };
    let mut parts: Vec<String> = plan.shares.iter().map(of_card).collect();
    match plan.layers.saturating_sub(on_cards) {
        0 => {}
        left => parts.push(format!("{left} layers on the processor")),
    }
    parts.join(", ")
}

fn devices_json(plan: &DevicePlan) -> Value {
    let card =
        |share: &DeviceShare| json!({"device": share.device, "layers": share.layers, "bytes": share.bytes});
    json!({"layers": plan.layers, "cards": plan.shares.iter().map(card).collect::<Vec<_>>()})
}

/// What guesses the next tokens for a model.
fn draft_fact(draft: &DraftPlan) -> String {
    match draft.memory {
        Some(bytes) => format!("{} (about {} more at most)", draft.model, memory(bytes)),
        None => format!("{}, for which there is not enough memory", draft.model),
    }
}

/// What reads pictures and sound for a model.
fn projector_fact(projector: &StoredProjector) -> String {
    let name = projector.path.file_name().unwrap_or_default().to_string_lossy();
    let reads = match (projector.sees, projector.hears) {
        (true, true) => "pictures and sound",
        (true, false) => "pictures",
        (false, true) => "sound",
        (false, false) => "nothing that Hob knows",
    };
    format!("{name} ({}), reads {reads}", memory(projector.size))
}

pub fn not_found(name: &str, found: &[EngineStatus]) -> Error {
    if [DEFAULT_MODEL, AUTO].contains(&name) {
        return anyhow!("'{name}' is no model of its own: Hob chooses one. 'hob' shows the default model.");
    }
    let names = found.iter().flat_map(|status| match &status.state {
        EngineState::Available { models } => models.as_slice(),
        EngineState::OwnAddress
        | EngineState::NotConfigured
        | EngineState::NotResponding
        | EngineState::Failing(_) => &[],
    });
    let meant = match near(name, names.map(|model| model.id.as_str())).as_slice() {
        [] => String::new(),
        near => format!(" Did you mean {}?", near.join(", ")),
    };
    let download = match is_downloadable(name) {
        true => format!("'hob model pull {name}' downloads it"),
        false => "'hob model list --available' those to download".to_owned(),
    };
    anyhow!("no engine has the model '{name}'.{meant} 'hob model list' lists all models, {download}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layers_are_shown_by_device() {
        let share = |device: &str, layers| DeviceShare { device: device.into(), layers, bytes: 3 << 30 };
        let plan = |shares| where_layers_go(&DevicePlan { layers: 33, shares });
        let size = memory(3 << 30);
        assert_eq!(plan(vec![share("CUDA0", 33)]), format!("33 layers on CUDA0 (about {size})"));
        assert_eq!(
            plan(vec![share("CUDA0", 12), share("CUDA1", 10)]),
            format!(
                "12 layers on CUDA0 (about {size}), 10 layers on CUDA1 (about {size}), 11 layers on the processor"
            )
        );
    }
}
