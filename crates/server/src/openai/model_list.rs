//! The bodies of `GET /v1/models` and `GET /v1/models/{id}`.

use hob_core::model::AUTO;
use hob_core::{ListedModel, ModelKind};
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
}

impl From<ListedModel> for Model {
    fn from(ListedModel { engine, model }: ListedModel) -> Self {
        let kind = match model.kind {
            ModelKind::Text => None,
            ModelKind::Embedding => Some("embedding"),
        };
        let created = model.created.unwrap_or(0);
        Model { id: model.id, object: "model", created, owned_by: engine, kind, default: false }
    }
}

impl Model {
    /// The entry `auto`: Hob chooses a model for each request.
    pub(crate) fn auto() -> Self {
        Model {
            id: AUTO.to_owned(),
            object: "model",
            created: 0,
            owned_by: "hob".to_owned(),
            kind: None,
            default: false,
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
