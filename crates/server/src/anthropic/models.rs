//! `GET /v1/models` and `GET /v1/models/{id}`. Clients of Anthropic's API, which send `anthropic-version`, get its form; all others
//! get OpenAI's.

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query};
use axum::http::{Extensions, HeaderMap};
use axum::response::{IntoResponse, Response};
use hob_core::ModelKind;

use super::model_list::{AnthropicModel, AnthropicModelList, PageQuery};
use crate::error::{ApiError, ApiResult, ErrorFormat};
use crate::openai::models as openai;
use crate::request_context::RequestContext;
use crate::request_id::ANTHROPIC_VERSION;
use crate::state::{ServerState, SharedState};

pub(crate) async fn list(
    state: SharedState,
    query: Result<Query<PageQuery>, QueryRejection>,
    headers: HeaderMap,
    extensions: Extensions,
) -> Response {
    if !headers.contains_key(ANTHROPIC_VERSION) {
        return openai::list(state, extensions).await.into_response();
    }
    let page = page(&state, query, &extensions).await;
    page.map(Json).map_err(|error| error.in_format(ErrorFormat::Anthropic)).into_response()
}

pub(crate) async fn show(
    state: SharedState,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    extensions: Extensions,
) -> Response {
    if !headers.contains_key(ANTHROPIC_VERSION) {
        return openai::show(state, id, extensions).await.into_response();
    }
    let model = model(&state, id, &extensions).await;
    model.map(Json).map_err(|error| error.in_format(ErrorFormat::Anthropic)).into_response()
}

/// The models that can answer this caller.
async fn page(
    state: &ServerState,
    query: Result<Query<PageQuery>, QueryRejection>,
    extensions: &Extensions,
) -> ApiResult<AnthropicModelList> {
    let Query(query) = query.map_err(|error| ApiError::malformed(error.body_text()))?;
    let role = RequestContext::role(extensions);
    let listed = state
        .system
        .listed_models(RequestContext::rights(extensions))
        .await
        .map_err(|error| ApiError::from(error).for_caller(role))?;
    let text_models = listed.into_iter().filter(|listed| listed.model.kind == ModelKind::Text);
    AnthropicModelList::page(text_models.map(AnthropicModel::from).collect(), &query)
}

async fn model(
    state: &ServerState,
    id: Result<Path<String>, PathRejection>,
    extensions: &Extensions,
) -> ApiResult<AnthropicModel> {
    let Path(id) = id.map_err(|_| ApiError::malformed("the model's id in the path is not valid UTF-8"))?;
    let rights = RequestContext::rights(extensions);
    let role = rights.role;
    let listed = state.system.listed_model(&id, rights.clone()).await;
    if let Some(listed) = listed.map_err(|error| ApiError::from(error).for_caller(role))? {
        return Ok(AnthropicModel::from(listed));
    }
    match openai::choice_of_hob(state, &id, &rights).await {
        Some(name) => Ok(AnthropicModel::named(name, None)),
        None => Err(ApiError::no_such_model(&id)),
    }
}
