//! `/v1/keys`: named API keys, for the owner; and `/v1/keys/self`, for everyone with a key.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{Extensions, StatusCode};
use hob_keys::{
    ApiKey, CreatedKey, KeyName, KeyPatch, KeyRole, KeyService, NewKey, QuotaUsage, ROTATION_OVERLAP,
};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::content_type::require_json;
use crate::error::{ApiError, ApiResult};
use crate::json::read;
use crate::limits::read_body::read_json;
use crate::pages::changes::{Audience, Topic};
use crate::request_context::RequestContext;
use crate::state::{ServerState, SharedState};

const PATH: &str = "/v1/keys";

/// The name in the path.
type Name = Result<Path<String>, PathRejection>;

#[derive(Deserialize)]
struct NewKeyBody {
    name: String,
    role: Option<String>,
    #[serde(flatten)]
    _rules: KeyPatch,
    #[serde(flatten)]
    unknown: UnknownFields,
}

/// The fields of a change that no key has.
#[derive(Deserialize)]
struct ChangeBody {
    #[serde(flatten)]
    _rules: KeyPatch,
    #[serde(flatten)]
    unknown: UnknownFields,
}

/// What is left when all other fields are read.
type UnknownFields = BTreeMap<String, IgnoredAny>;

#[derive(Deserialize, Default)]
struct RotateBody {
    /// Seconds for which the old secret stays valid.
    overlap: Option<u64>,
    #[serde(flatten)]
    unknown: UnknownFields,
}

#[derive(Serialize)]
pub(crate) struct KeyList {
    object: &'static str,
    data: Vec<KeyWithUsage>,
}

/// A key with its secret, which is shown once.
#[derive(Serialize)]
pub(crate) struct KeyWithSecret {
    #[serde(flatten)]
    key: ApiKey,
    secret: String,
}

impl From<CreatedKey> for KeyWithSecret {
    fn from(created: CreatedKey) -> Self {
        KeyWithSecret { secret: created.secret.expose().to_owned(), key: created.key }
    }
}

/// A key with what it has used of its limits.
#[derive(Serialize)]
pub(crate) struct KeyWithUsage {
    #[serde(flatten)]
    key: ApiKey,
    usage: Vec<QuotaUsage>,
}

pub(crate) async fn list(State(state): SharedState, extensions: Extensions) -> ApiResult<Json<KeyList>> {
    let keys = keys_for_owner(&state, &extensions)?;
    let keys = keys.list_with_usage().await?;
    let data = keys.into_iter().map(|(key, usage)| KeyWithUsage { key, usage }).collect();
    Ok(Json(KeyList { object: "list", data }))
}

pub(crate) async fn create(
    State(state): SharedState,
    request: Request,
) -> ApiResult<(StatusCode, Json<KeyWithSecret>)> {
    let keys = keys_for_owner(&state, request.extensions())?;
    let actor = RequestContext::actor(request.extensions());
    let body = read_json(request, &state.body_reader).await?;
    // On its own, so that an error names the field.
    let rules: KeyPatch = read(&body)?;
    let NewKeyBody { name, role, unknown, .. } = read(&body)?;
    refuse_unknown(&unknown)?;
    let role = role.as_deref().map_or(Ok(KeyRole::Member), KeyRole::parse)?;
    let new = NewKey { name: KeyName::parse(&name)?, role, rules };
    let created = keys.create(new, actor).await?;
    Ok((StatusCode::CREATED, Json(changed(&state, created).into())))
}

pub(crate) async fn show(
    State(state): SharedState,
    name: Name,
    extensions: Extensions,
) -> ApiResult<Json<KeyWithUsage>> {
    let keys = keys_for_owner(&state, &extensions)?;
    let (key, usage) = keys.show(&read_name(name)?).await?;
    Ok(Json(KeyWithUsage { key, usage }))
}

/// The key of this request.
pub(crate) async fn show_own(
    State(state): SharedState,
    extensions: Extensions,
) -> ApiResult<Json<KeyWithUsage>> {
    let keys = state.keys.as_ref().ok_or_else(ApiError::no_keys)?;
    let own = RequestContext::key(&extensions).ok_or_else(ApiError::no_named_key)?;
    let (key, usage) = keys.show_active(own).await?;
    Ok(Json(KeyWithUsage { key, usage }))
}

pub(crate) async fn patch(
    State(state): SharedState,
    name: Name,
    request: Request,
) -> ApiResult<Json<ApiKey>> {
    let keys = keys_for_owner(&state, request.extensions())?;
    let (name, actor) = (read_name(name)?, RequestContext::actor(request.extensions()));
    let body = read_json(request, &state.body_reader).await?;
    let patch: KeyPatch = read(&body)?;
    refuse_unknown(&read::<ChangeBody>(&body)?.unknown)?;
    Ok(Json(changed(&state, keys.patch(&name, patch, actor).await?)))
}

/// `DELETE` revokes.
pub(crate) async fn revoke(
    State(state): SharedState,
    name: Name,
    extensions: Extensions,
) -> ApiResult<Json<ApiKey>> {
    let keys = keys_for_owner(&state, &extensions)?;
    let revoked = keys.revoke(&read_name(name)?, RequestContext::actor(&extensions)).await?;
    Ok(Json(changed(&state, revoked)))
}

pub(crate) async fn disable(
    State(state): SharedState,
    name: Name,
    request: Request,
) -> ApiResult<Json<ApiKey>> {
    let keys = keys_for_change(&state, &request)?;
    let actor = RequestContext::actor(request.extensions());
    Ok(Json(changed(&state, keys.disable(&read_name(name)?, actor).await?)))
}

pub(crate) async fn enable(
    State(state): SharedState,
    name: Name,
    request: Request,
) -> ApiResult<Json<ApiKey>> {
    let keys = keys_for_change(&state, &request)?;
    let actor = RequestContext::actor(request.extensions());
    Ok(Json(changed(&state, keys.enable(&read_name(name)?, actor).await?)))
}

pub(crate) async fn rotate(
    State(state): SharedState,
    name: Name,
    request: Request,
) -> ApiResult<Json<KeyWithSecret>> {
    let keys = keys_for_change(&state, &request)?;
    let (name, actor) = (read_name(name)?, RequestContext::actor(request.extensions()));
    let body = read_json(request, &state.body_reader).await?;
    let RotateBody { overlap, unknown } = match body.bytes.is_empty() {
        true => RotateBody::default(),
        false => read(&body)?,
    };
    refuse_unknown(&unknown)?;
    let overlap = overlap.map_or(ROTATION_OVERLAP, Duration::from_secs);
    Ok(Json(changed(&state, keys.rotate(&name, overlap, actor).await?).into()))
}

/// Tells the open pages. Returns the changed key.
fn changed<T>(state: &ServerState, key: T) -> T {
    state.changes.publish(Topic::Keys, &Audience::Owner);
    key
}

fn keys_for_owner<'a>(state: &'a ServerState, extensions: &Extensions) -> ApiResult<&'a Arc<KeyService>> {
    RequestContext::check_owner(extensions, PATH)?;
    state.keys.as_ref().ok_or_else(ApiError::no_keys)
}

/// The same for a change that may have no body: a web page cannot send its content type unasked.
fn keys_for_change<'a>(state: &'a ServerState, request: &Request) -> ApiResult<&'a Arc<KeyService>> {
    let keys = keys_for_owner(state, request.extensions())?;
    require_json(request.headers())?;
    Ok(keys)
}

/// A limit whose name is misspelt must not be a key without that limit.
fn refuse_unknown(unknown: &UnknownFields) -> ApiResult<()> {
    let Some(name) = unknown.keys().next() else { return Ok(()) };
    let shown: String = name.chars().take(60).collect();
    let message = format!("'{shown}' is not a field of this request. /openapi.json lists the fields");
    Err(ApiError::invalid(shown, message))
}

fn read_name(name: Name) -> ApiResult<KeyName> {
    let Path(name) =
        name.map_err(|_| ApiError::malformed("the key's name in the path is not valid UTF-8"))?;
    Ok(KeyName::parse(&name)?)
}
