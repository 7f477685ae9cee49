//! `GET /v1/models` and `GET /v1/models/{id}`. Callers see the models that they can use.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{Extensions, HeaderName, HeaderValue};
use hob_core::CallerRole;
use hob_core::model::{AUTO, DEFAULT_MODEL};

use super::model_list::{Model, ModelList};
use crate::error::ApiError;
use crate::request_context::RequestContext;
use crate::state::ServerState;

/// The role of the caller, so that a page offers nothing that would be refused.
const ROLE: HeaderName = HeaderName::from_static("x-hob-role");

pub(crate) async fn list(
    State(state): State<Arc<ServerState>>,
    extensions: Extensions,
) -> Result<([(HeaderName, HeaderValue); 1], Json<ModelList>), ApiError> {
    let role = RequestContext::role(&extensions);
    let seen_as = HeaderValue::from_static(match role {
        CallerRole::Owner => "owner",
        CallerRole::Stranger | CallerRole::ChannelSender => "stranger",
    });
    let listed =
        state.system.listed_models(role).await.map_err(|error| ApiError::from(error).for_caller(role))?;
    let default = state.system.default_among(&listed).await;
    let is_taken = listed.iter().any(|listed| listed.model.id == AUTO);
    // `auto` is listed for clients that offer only listed models, and only if it is the default: some clients use the first
    // entry, or treat every entry as a model.
    let auto = state.system.defaults_to_auto() && !is_taken;
    let models = listed
        .into_iter()
        .enumerate()
        .map(|(index, listed)| Model::from(listed).marked(default == Some(index)))
        .chain(auto.then(|| Model::auto().marked(true)));
    Ok(([(ROLE, seen_as)], Json(ModelList::new(models))))
}

/// Shows one model. Ids can contain slashes. `default` shows the default model.
pub(crate) async fn show(
    State(state): State<Arc<ServerState>>,
    id: Result<Path<String>, PathRejection>,
    extensions: Extensions,
) -> Result<Json<Model>, ApiError> {
    let Path(id) = id.map_err(|_| ApiError::malformed("the model's id in the path is not valid UTF-8"))?;
    let role = RequestContext::role(&extensions);
    let listed = state.system.listed_model(&id, role).await;
    if let Some(listed) = listed.map_err(|error| ApiError::from(error).for_caller(role))? {
        let default = state.system.default_among(std::slice::from_ref(&listed)).await;
        return Ok(Json(Model::from(listed).marked(default.is_some())));
    }
    let by_default = state.system.defaults_to_auto();
    if id == AUTO || (id == DEFAULT_MODEL && by_default) {
        return Ok(Json(Model::auto().marked(by_default)));
    }
    Err(ApiError::no_such_model(&id))
}
