//! `GET /api/tags`, `POST /api/show`, `GET /api/ps` and `GET /api/version`.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::Extensions;
use axum::response::{IntoResponse, Response};
use hob_core::{ListedModel, ModelInfo, RunningModel};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::model_entry::{Description, ModelEntry, RunningEntry};
use super::model_name::TaggedNames;
use super::{model_name, respond};
use crate::error::{ApiError, ApiResult, ErrorFormat};
use crate::json::{check_model_name, read};
use crate::limits::read_body::read_json;
use crate::openai::models::names_of_hob;
use crate::request_context::RequestContext;
use crate::state::SharedState;

/// The version of Ollama whose API this is. Clients refuse to work with one that is too old for what they need.
const OLLAMA_VERSION: &str = "0.14.0";

#[derive(Serialize)]
struct ModelEntries {
    models: Vec<ModelEntry>,
}

#[derive(Serialize)]
struct RunningEntries {
    models: Vec<RunningEntry>,
}

/// The body of `show` before it is checked. What else is in it changes nothing.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct ShowBody {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

pub(crate) async fn version() -> Json<Value> {
    Json(json!({ "version": OLLAMA_VERSION, "hob": env!("CARGO_PKG_VERSION") }))
}

/// Lists the models that this caller may use.
pub(crate) async fn tags(State(state): SharedState, extensions: Extensions) -> ApiResult<Response> {
    let rights = RequestContext::rights(&extensions);
    let role = rights.role;
    let listed = state.system.listed_models(rights.clone()).await;
    let listed =
        listed.map_err(|error| ApiError::from(error).for_caller(role).in_format(ErrorFormat::Ollama))?;
    let of_hob = names_of_hob(&state, &listed, &rights).await.into_iter().map(name_of_hob);
    let names = TaggedNames::of(&listed);
    let models =
        listed.iter().cloned().chain(of_hob).map(|listed| ModelEntry::new(&listed, &names)).collect();
    Ok(Json(ModelEntries { models }).into_response())
}

/// Lists the models in memory, if their engines report them.
pub(crate) async fn ps(State(state): SharedState, extensions: Extensions) -> Response {
    let rights = RequestContext::rights(&extensions);
    let running = state.system.running_models(rights.clone()).await;
    let listed = match running.is_empty() {
        true => Vec::new(),
        false => state.system.listed_models(rights).await.unwrap_or_default(),
    };
    let names = TaggedNames::of(&listed);
    let describe = |(engine, model): (String, RunningModel)| {
        let known = listed
            .iter()
            .find(|listed| listed.engine == engine && state.system.pool().means(&model.id, listed));
        RunningEntry::new(&engine, model, known.map(|known| &known.model), &names)
    };
    Json(RunningEntries { models: running.into_iter().map(describe).collect() }).into_response()
}

/// Describes one model.
pub(crate) async fn show(State(state): SharedState, request: Request) -> ApiResult<Response> {
    respond(request, async |request| {
        let rights = RequestContext::rights(request.extensions());
        let body = read_json(request, &state.body_reader).await?;
        let ShowBody { model, name } = read(&body)?;
        let requested = model_name::required(model, name)?;
        check_model_name(&requested)?;
        let model = model_name::meant(&state, &requested, rights.clone()).await;
        let listed = match state.system.listed_model(&model, rights.clone()).await? {
            Some(listed) => state.system.described_model(listed).await,
            None => {
                let listed = state.system.listed_models(rights.clone()).await?;
                let names = names_of_hob(&state, &listed, &rights).await;
                let name =
                    names.into_iter().find(|name| *name == state.system.meant_by(&model)).map(name_of_hob);
                name.ok_or_else(|| ApiError::no_such_model(&model).for_missing_model(&requested))?
            }
        };
        Ok(Json(Description::new(&listed)).into_response())
    })
    .await
}

/// A name for which Hob chooses the model, as an entry of the list.
fn name_of_hob(name: &str) -> ListedModel {
    ListedModel { engine: "hob".to_owned(), model: ModelInfo::named(name) }
}
