//! The bodies of `GET /v1/models` and `GET /v1/models/{id}`.

use hob_core::{ListedModel, ModelCapabilities, ModelKind};
use serde::Serialize;

/// One entry of the list of models.
#[derive(Debug, Serialize)]
pub(crate) struct Model {
    id: String,
    object: &'static str,
    created: i64,
    owned_by: String,
    /// The purpose of the model, if it does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    /// Whether it is the default model.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    default: bool,
    /// The longest conversation with its answer, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    context_length: Option<u64>,
    #[serde(skip_serializing_if = "Capabilities::is_empty")]
    capabilities: Capabilities,
}

/// What the model supports, as far as the engine reports it.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Capabilities {
    #[serde(skip_serializing_if = "Option::is_none")]
    vision: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    embedding: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fill_in_middle: Option<bool>,
}

impl Capabilities {
    fn is_empty(&self) -> bool {
        *self == Capabilities::default()
    }
}

impl From<ListedModel> for Model {
    fn from(ListedModel { engine, model }: ListedModel) -> Self {
        let kind = match model.kind {
            ModelKind::Text => None,
            ModelKind::Embedding => Some("embedding"),
        };
        let ModelCapabilities { vision, audio, tools, reasoning, fill_in_middle } = model.capabilities;
        let embedding = (model.kind == ModelKind::Embedding).then_some(true);
        Model {
            id: model.id,
            object: "model",
            created: model.created.unwrap_or(0),
            owned_by: engine,
            kind,
            default: false,
            context_length: model.context,
            capabilities: Capabilities { vision, audio, tools, embedding, reasoning, fill_in_middle },
        }
    }
}

impl Model {
    /// An entry for which Hob chooses the model, such as `auto`.
    pub(crate) fn of_hob(id: &str) -> Self {
        Model {
            id: id.to_owned(),
            object: "model",
            created: 0,
            owned_by: "hob".to_owned(),
            kind: None,
            default: false,
            context_length: None,
            capabilities: Capabilities::default(),
        }
    }

    /// Marks the default model.
    pub(crate) fn marked(self, default: bool) -> Self {
        Model { default, ..self }
    }
}

/// The list of models.
#[derive(Debug, Serialize)]
pub(crate) struct ModelList {
    object: &'static str,
    data: Vec<Model>,
}

impl ModelList {
    pub(crate) fn new(models: impl IntoIterator<Item = Model>) -> Self {
        ModelList { object: "list", data: models.into_iter().collect() }
    }
}
