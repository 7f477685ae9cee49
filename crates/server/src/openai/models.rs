//! `GET /v1/models` and `GET /v1/models/{id}`. Callers see the models that they can use.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{Extensions, HeaderName, HeaderValue};
use hob_core::model::{AGENT_MODEL, AUTO, DEFAULT_MODEL};
use hob_core::{CallerRights, CallerRole, ListedModel, ModelCapabilities, ModelKind};
use serde::Serialize;

use crate::error::{ApiError, ApiResult};
use crate::request_context::RequestContext;
use crate::state::{ServerState, SharedState};

/// The role of the caller, so that a page offers nothing that would be refused.
const ROLE: HeaderName = HeaderName::from_static("x-hob-role");

pub(crate) async fn list(
    State(state): SharedState,
    extensions: Extensions,
) -> Result<([(HeaderName, HeaderValue); 1], Json<ModelList>), ApiError> {
    let rights = RequestContext::rights(&extensions);
    let role = rights.role;
    let seen_as = HeaderValue::from_static(match role {
        CallerRole::Owner => "owner",
        CallerRole::Member => "member",
        CallerRole::Stranger | CallerRole::ChannelSender => "stranger",
    });
    let listed = state
        .system
        .described_models(rights.clone())
        .await
        .map_err(|error| ApiError::from(error).for_caller(role))?;
    let default = state.system.default_among(&listed).await;
    let of_hob = names_of_hob(&state, &listed, &rights).await;
    let models = listed
        .into_iter()
        .enumerate()
        .map(|(index, listed)| Model::from(listed).marked(default == Some(index)))
        .chain(of_hob.into_iter().map(|name| entry_of_hob(&state, name)));
    Ok(([(ROLE, seen_as)], Json(ModelList::new(models))))
}

/// The names that stand for a choice of Hob, for clients that offer only listed models. They come last, because some clients use
/// the first entry. A name that is a model's belongs to the model, and without a model that answers there is nothing to choose.
pub(crate) async fn names_of_hob(
    state: &ServerState,
    listed: &[ListedModel],
    rights: &CallerRights,
) -> Vec<&'static str> {
    let is_answered = listed.iter().any(|listed| listed.model.kind == ModelKind::Text);
    // A key that names only `auto` sees no model, but Hob can choose one for it.
    if !is_answered && !state.system.can_choose_for(rights).await {
        return Vec::new();
    }
    let agent = state.system.agent().map(|_| AGENT_MODEL);
    let names = [Some(DEFAULT_MODEL), Some(AUTO), agent].into_iter().flatten();
    let names = names.filter(|name| !listed.iter().any(|listed| listed.model.id == *name));
    names.filter(|name| rights.may_use_model(name)).collect()
}

fn entry_of_hob(state: &ServerState, name: &str) -> Model {
    Model::of_hob(name).marked(name == AUTO && state.system.defaults_to_auto())
}

/// Shows one model. Ids can contain slashes. `default` shows the default model.
pub(crate) async fn show(
    State(state): SharedState,
    id: Result<Path<String>, PathRejection>,
    extensions: Extensions,
) -> ApiResult<Json<Model>> {
    let Path(id) = id.map_err(|_| ApiError::malformed("the model's id in the path is not valid UTF-8"))?;
    let rights = RequestContext::rights(&extensions);
    let role = rights.role;
    let listed = state.system.listed_model(&id, rights.clone()).await;
    if let Some(listed) = listed.map_err(|error| ApiError::from(error).for_caller(role))? {
        let default = state.system.default_among(std::slice::from_ref(&listed)).await;
        let listed = state.system.described_model(listed).await;
        return Ok(Json(Model::from(listed).marked(default.is_some())));
    }
    match choice_of_hob(&state, &id, &rights).await {
        Some(name) => Ok(Json(entry_of_hob(&state, name))),
        None => Err(ApiError::no_such_model(&id)),
    }
}

/// The name of Hob's own that `id` means, if no engine lists a model of it and the caller may use the name.
pub(crate) async fn choice_of_hob(
    state: &ServerState,
    id: &str,
    rights: &CallerRights,
) -> Option<&'static str> {
    let name = match state.system.meant_by(id) {
        AUTO => AUTO,
        DEFAULT_MODEL if state.system.defaults_to_auto() && rights.may_use_model(AUTO) => AUTO,
        DEFAULT_MODEL => {
            // A key that names `default` may use what that stands for, and does not see its name.
            let model = state.system.default_model().await.ok().flatten()?;
            (!rights.may_use_model(&model)).then_some(DEFAULT_MODEL)?
        }
        AGENT_MODEL => state.system.agent().map(|_| AGENT_MODEL)?,
        _ => return None,
    };
    rights.may_use_model(name).then_some(name)
}

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
