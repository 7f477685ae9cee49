//! `GET /v1/models` and `GET /v1/models/{id}`. Clients of Anthropic's API, which send `anthropic-version`, get its form; all others
//! get OpenAI's.

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query};
use axum::http::{Extensions, HeaderMap};
use axum::response::{IntoResponse, Response};
use hob_core::time::Moment;
use hob_core::{ListedModel, ModelKind};
use serde::{Deserialize, Serialize};

use crate::error::{ApiError, ApiResult, ErrorFormat};
use crate::openai::models as openai;
use crate::request_context::RequestContext;
use crate::request_id::ANTHROPIC_VERSION;
use crate::state::{ServerState, SharedState};

/// Models of a page, if the client does not say.
const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 1_000;

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

/// One model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct AnthropicModel {
    #[serde(rename = "type")]
    kind: &'static str,
    id: String,
    display_name: String,
    created_at: Moment,
    /// The context window, if the engine reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_input_tokens: Option<u64>,
}

impl From<ListedModel> for AnthropicModel {
    fn from(ListedModel { model, .. }: ListedModel) -> Self {
        AnthropicModel { max_input_tokens: model.context, ..AnthropicModel::named(&model.id, model.created) }
    }
}

impl AnthropicModel {
    /// A model of which only the name is known, and perhaps its age.
    pub(super) fn named(id: &str, created: Option<i64>) -> Self {
        let microseconds = created.unwrap_or(0).clamp(0, 253_402_207_200).saturating_mul(1_000_000);
        AnthropicModel {
            kind: "model",
            id: id.to_owned(),
            display_name: id.to_owned(),
            created_at: Moment::from_microseconds(microseconds),
            max_input_tokens: None,
        }
    }
}

/// Which part of the list is wanted.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct PageQuery {
    limit: Option<usize>,
    after_id: Option<String>,
    before_id: Option<String>,
}

/// A page of the list.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct AnthropicModelList {
    data: Vec<AnthropicModel>,
    has_more: bool,
    first_id: Option<String>,
    last_id: Option<String>,
}

impl AnthropicModelList {
    /// The page of `models` that `query` asks for.
    pub(super) fn page(models: Vec<AnthropicModel>, query: &PageQuery) -> ApiResult<Self> {
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            let message = format!("limit: it must be between 1 and {MAX_LIMIT}, got {limit}");
            return Err(ApiError::invalid("limit", message));
        }
        let position = |name: &str, id: &Option<String>| match id {
            None => Ok(None),
            Some(id) => match models.iter().position(|model| model.id == *id) {
                Some(at) => Ok(Some(at)),
                None => Err(ApiError::invalid(name, format!("{name}: there is no model '{id}'"))),
            },
        };
        let after = position("after_id", &query.after_id)?;
        let before = position("before_id", &query.before_id)?;
        let (begin, end) = (after.map_or(0, |at| at + 1), before.unwrap_or(models.len()));
        let wanted = models.get(begin..end).unwrap_or_default();
        // A page before a model ends with the last one before it.
        let shown = match (after, before) {
            (None, Some(_)) => &wanted[wanted.len().saturating_sub(limit)..],
            _ => &wanted[..wanted.len().min(limit)],
        };
        Ok(AnthropicModelList {
            has_more: shown.len() < wanted.len(),
            first_id: shown.first().map(|model| model.id.clone()),
            last_id: shown.last().map(|model| model.id.clone()),
            data: shown.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(query: PageQuery) -> Result<(Vec<String>, bool), String> {
        let models = ["a", "b", "c", "d"].map(|id| AnthropicModel::named(id, None)).to_vec();
        let page = AnthropicModelList::page(models, &query).map_err(|error| error.message().to_owned())?;
        let ids: Vec<String> = page.data.iter().map(|model| model.id.clone()).collect();
        assert_eq!((page.first_id.as_ref(), page.last_id.as_ref()), (ids.first(), ids.last()));
        Ok((ids, page.has_more))
    }

    #[test]
    fn pages_follow_each_other_in_both_directions() {
        let id = |id: &str| Some(id.to_owned());
        for (limit, after_id, before_id, ids, has_more) in [
            (None, None, None, "abcd", false),
            (Some(3), None, None, "abc", true),
            (Some(3), id("c"), None, "d", false),
            (Some(2), None, id("d"), "bc", true),
            (Some(2), None, id("b"), "a", false),
            (None, id("d"), None, "", false),
            (None, id("c"), id("b"), "", false),
        ] {
            let ids = ids.chars().map(String::from).collect();
            assert_eq!(page(PageQuery { limit, after_id, before_id }), Ok((ids, has_more)));
        }
    }

    #[test]
    fn a_page_that_cannot_be_is_refused_by_its_field() {
        let wrong = |query| page(query).unwrap_err().split(':').next().map(str::to_owned);
        assert_eq!(wrong(PageQuery { limit: Some(0), ..PageQuery::default() }).as_deref(), Some("limit"));
        assert_eq!(wrong(PageQuery { limit: Some(1_001), ..PageQuery::default() }).as_deref(), Some("limit"));
        let after_id = Some("z".to_owned());
        assert_eq!(wrong(PageQuery { after_id, ..PageQuery::default() }).as_deref(), Some("after_id"));
    }

    #[test]
    fn a_model_has_a_date_whatever_its_engine_says() {
        let created = |seconds| {
            serde_json::to_value(AnthropicModel::named("m", seconds)).unwrap()["created_at"].clone()
        };
        assert_eq!(created(None), "1970-01-01T00:00:00.000000Z");
        assert_eq!(created(Some(1_763_179_275)), "2025-11-15T04:01:15.000000Z");
        assert_eq!(created(Some(-5)), "1970-01-01T00:00:00.000000Z");
        assert!(created(Some(i64::MAX)).as_str().unwrap().starts_with("9999-12-"));
    }
}
