//! A model as Ollama lists and describes it.

use hob_core::{ListedModel, ModelCapabilities, ModelInfo, ModelKind, RunningModel};
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::model_name::TaggedNames;
use super::timestamp;

/// The engines whose models are GGUF files.
const GGUF_ENGINES: [&str; 3] = ["embedded", "llamacpp", "ollama"];

/// One entry of `GET /api/tags`.
#[derive(Debug, Serialize)]
pub(super) struct ModelEntry {
    name: String,
    model: String,
    modified_at: String,
    size: u64,
    digest: String,
    details: Details,
}

/// One entry of `GET /api/ps`.
#[derive(Debug, Serialize)]
pub(super) struct RunningEntry {
    name: String,
    model: String,
    size: u64,
    digest: String,
    details: Details,
    expires_at: String,
    size_vram: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_length: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Details {
    parent_model: &'static str,
    format: &'static str,
    family: String,
    families: [String; 1],
    parameter_size: String,
    quantization_level: String,
}

/// The answer of `POST /api/show`.
#[derive(Debug, Serialize)]
pub(super) struct Description {
    modelfile: String,
    parameters: &'static str,
    template: &'static str,
    details: Details,
    model_info: Map<String, Value>,
    capabilities: Vec<&'static str>,
    modified_at: String,
}

impl ModelEntry {
    pub(super) fn new(ListedModel { engine, model }: &ListedModel, names: &TaggedNames<'_>) -> Self {
        let name = names.name(&model.id);
        ModelEntry {
            name: name.clone(),
            model: name,
            modified_at: timestamp::of_unix(model.created),
            size: model.size.unwrap_or(0),
            digest: digest(engine, &model.id),
            details: Details::new(engine, model),
        }
    }
}

impl RunningEntry {
    /// `listed` is what the engine's list says of it.
    pub(super) fn new(
        engine: &str,
        running: RunningModel,
        listed: Option<&ModelInfo>,
        names: &TaggedNames<'_>,
    ) -> Self {
        let unlisted = ModelInfo::named(running.id.as_str());
        let model = listed.unwrap_or(&unlisted);
        let name = names.name(&model.id);
        RunningEntry {
            name: name.clone(),
            model: name,
            size: running.size.or(model.size).unwrap_or(0),
            digest: digest(engine, &model.id),
            details: Details::new(engine, model),
            expires_at: timestamp::of_unix(running.expires),
            size_vram: running.size_vram.unwrap_or(0),
            context_length: model.context,
        }
    }
}

impl Description {
    pub(super) fn new(ListedModel { engine, model }: &ListedModel) -> Self {
        // Clients look for the context under the architecture's name.
        let mut info = Map::from_iter([
            ("general.architecture".to_owned(), json!(engine)),
            ("general.name".to_owned(), json!(model.id)),
        ]);
        if let Some(parameters) = model.parameters {
            info.insert("general.parameter_count".to_owned(), json!(parameters));
        }
        if let Some(context) = model.context {
            info.insert(format!("{engine}.context_length"), json!(context));
        }
        Description {
            modelfile: format!("# Hob answers with this model by the engine {engine}.\nFROM {}\n", model.id),
            parameters: "",
            template: "",
            details: Details::new(engine, model),
            model_info: info,
            capabilities: capabilities(model),
            modified_at: timestamp::of_unix(model.created),
        }
    }
}

impl Details {
    fn new(engine: &str, model: &ModelInfo) -> Self {
        Details {
            parent_model: "",
            format: if GGUF_ENGINES.contains(&engine) { "gguf" } else { "" },
            family: engine.to_owned(),
            families: [engine.to_owned()],
            parameter_size: model.parameters.map(parameter_size).unwrap_or_default(),
            quantization_level: model.quantization.clone().unwrap_or_default(),
        }
    }
}

/// What a model can do. A model of which nothing is known is offered tools.
fn capabilities(model: &ModelInfo) -> Vec<&'static str> {
    if model.kind == ModelKind::Embedding {
        return vec!["embedding"];
    }
    let ModelCapabilities { vision, audio, tools, reasoning, fill_in_middle } = model.capabilities;
    let known = [
        ("completion", true),
        ("tools", tools != Some(false)),
        ("insert", fill_in_middle == Some(true)),
        ("vision", vision == Some(true)),
        ("audio", audio == Some(true)),
        ("thinking", reasoning == Some(true)),
    ];
    known.into_iter().filter_map(|(capability, can)| can.then_some(capability)).collect()
}

/// Clients cut a digest without a look at its length. This one names the entry, not the contents of a file.
pub(super) fn digest(engine: &str, id: &str) -> String {
    let hash = Sha256::digest(format!("{engine}\n{id}"));
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `134.52M`, `7.6B`
fn parameter_size(parameters: u64) -> String {
    let count = parameters as f64;
    match parameters {
        1_000_000_000.. => format!("{:.1}B", count / 1e9),
        1_000_000.. => format!("{:.2}M", count / 1e6),
        1_000.. => format!("{:.2}K", count / 1e3),
        _ => parameters.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_weights_is_written_as_people_say_it() {
        let written = [134_515_008, 7_615_616_512, 70_000_000_000, 999, 5_000].map(parameter_size);
        assert_eq!(written, ["134.52M", "7.6B", "70.0B", "999", "5.00K"]);
    }

    #[test]
    fn capabilities_are_those_that_the_engine_tells() {
        let of = |capabilities| capabilities_of(ModelKind::Text, capabilities);
        assert_eq!(of(ModelCapabilities::default()), ["completion", "tools"]);
        let all = ModelCapabilities {
            vision: Some(true),
            audio: Some(true),
            tools: Some(true),
            reasoning: Some(true),
            fill_in_middle: Some(true),
        };
        assert_eq!(of(all), ["completion", "tools", "insert", "vision", "audio", "thinking"]);
        let none =
            ModelCapabilities { tools: Some(false), vision: Some(false), ..ModelCapabilities::default() };
        assert_eq!(of(none), ["completion"]);
        assert_eq!(capabilities_of(ModelKind::Embedding, all), ["embedding"]);
    }

    fn capabilities_of(kind: ModelKind, known: ModelCapabilities) -> Vec<&'static str> {
        capabilities(&ModelInfo { kind, capabilities: known, ..ModelInfo::named("m") })
    }

    #[test]
    fn a_digest_has_the_length_that_clients_cut() {
        let one = digest("vllm", "m");
        assert!(one.len() == 64 && one.bytes().all(|byte| byte.is_ascii_hexdigit()), "{one}");
        assert_ne!(one, digest("ollama", "m"));
    }
}
