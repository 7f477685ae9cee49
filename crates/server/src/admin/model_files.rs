//! `GET /v1/model-files`, `GET /v1/model-files/search` and `GET /v1/model-files/downloads`: what the models page shows to the owner. Models
//! are downloaded and deleted with `/api/pull` and `/api/delete`.

use std::time::SystemTime;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::Extensions;
use hob_core::{CallerRole, ListedModel, ModelKind, UtcDay};
use hob_engines::ModelInMemory;
use hob_models::{BuiltInModel, HubSearch, ModelSearch};
use hob_telemetry::ModelSpeed;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{ApiError, ApiResult};
use crate::request_context::RequestContext;
use crate::state::{ServerState, SharedState};

/// The days over which speeds are measured, and the most models with a speed.
const SPEED_DAYS: u32 = 30;
const MAX_SPEEDS: u32 = 200;

/// Results of the hub.
const HUB_RESULTS: usize = 20;

/// Characters of a search.
const MAX_QUERY: usize = 200;

#[derive(Deserialize)]
pub(crate) struct SearchQuery {
    #[serde(default)]
    query: String,
}

/// What the engines have, what is loaded where, and what the engines compute with.
#[derive(Serialize)]
pub(crate) struct ModelFiles {
    object: &'static str,
    data: Vec<ModelFile>,
    engines: Vec<EngineEntry>,
    devices: Vec<Value>,
    /// Why the list is not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Serialize)]
struct ModelFile {
    id: String,
    engine: String,
    default: bool,
    kind: &'static str,
    size: Option<u64>,
    parameters: Option<u64>,
    context: Option<u64>,
    quantization: Option<String>,
    /// As measured in the last 30 days; `null` if it was not used.
    tokens_per_second: Option<f64>,
    /// Where it is in memory.
    loaded: Vec<LoadedOn>,
    can_delete: bool,
}

#[derive(Serialize)]
struct LoadedOn {
    /// `null` in this process.
    host: Option<String>,
    memory: Option<u64>,
    /// The part of it on graphics cards.
    memory_on_cards: Option<u64>,
    /// When it is unloaded unless it is asked again.
    expires_at: Option<String>,
    /// The graphics cards with a part of it, where the engine reports them.
    devices: Vec<Value>,
}

#[derive(Serialize)]
struct EngineEntry {
    key: String,
    /// Empty in this process.
    address: String,
    /// `null` before the first check has ended.
    healthy: Option<bool>,
    /// The hosts, where the engine has several.
    hosts: Vec<String>,
}

pub(crate) async fn list(State(state): SharedState, extensions: Extensions) -> ApiResult<Json<ModelFiles>> {
    RequestContext::check_owner(&extensions, "/v1/model-files")?;
    // An engine that does not answer is shown as such, so that the owner sees why there are no models.
    let (listed, message) = match state.system.described_models(CallerRole::Owner).await {
        Ok(listed) => (listed, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let default = state.system.default_among(&listed).await;
    let health = state.health.load_full();
    let (loaded, devices, health) =
        tokio::join!(state.system.pool().models_in_memory(), state.system.pool().devices(), health.all());
    let record = state.record.clone();
    let since = UtcDay::of(SystemTime::now()).minus(SPEED_DAYS);
    let speeds = state.blocking.run(move || record.speeds(since, MAX_SPEEDS)).await;
    // The list is useful without speeds.
    let speeds = speeds.unwrap_or_else(|error| {
        tracing::warn!(
            %error,
            "the speeds of models cannot be read; the list has none. 'hob doctor' checks the database"
        );
        Vec::new()
    });
    let data = listed.into_iter().enumerate();
    let data = data.map(|(index, listed)| state.model_file(listed, default == Some(index), &loaded, &speeds));
    let engines = state.system.pool().engines().map(|engine| EngineEntry {
        key: engine.key().to_owned(),
        address: engine.address().to_owned(),
        healthy: health.iter().find(|(key, _)| *key == engine.key()).map(|(_, healthy)| *healthy),
        hosts: engine.members().iter().map(|host| host.address().to_owned()).collect(),
    });
    let devices = devices.into_iter().map(|card| {
        json!({
            "name": card.name, "description": card.description, "backend": card.backend,
            "memory_total": card.memory_total, "memory_free": card.memory_free,
        })
    });
    Ok(Json(ModelFiles {
        object: "list",
        data: data.collect(),
        engines: engines.collect(),
        devices: devices.collect(),
        message,
    }))
}

impl ServerState {
    fn model_file(
        &self,
        listed: ListedModel,
        default: bool,
        loaded: &[ModelInMemory],
        speeds: &[ModelSpeed],
    ) -> ModelFile {
        let is_this = |found: &&ModelInMemory| {
            found.engine == listed.engine && self.system.pool().means(&found.model.id, &listed)
        };
        let loaded = loaded.iter().filter(is_this).map(LoadedOn::from).collect();
        let speed =
            speeds.iter().find(|speed| speed.engine == listed.engine && speed.model == listed.model.id);
        let can_delete =
            self.model_management.as_ref().is_some_and(|models| models.can_delete(&listed.engine));
        let ListedModel { engine, model } = listed;
        ModelFile {
            id: model.id,
            engine,
            default,
            kind: match model.kind {
                ModelKind::Text => "text",
                ModelKind::Embedding => "embedding",
            },
            size: model.size,
            parameters: model.parameters,
            context: model.context,
            quantization: model.quantization,
            tokens_per_second: speed.map(|speed| speed.tokens_per_second),
            loaded,
            can_delete,
        }
    }
}

impl From<&ModelInMemory> for LoadedOn {
    fn from(ModelInMemory { host, model, .. }: &ModelInMemory) -> Self {
        let expires = model.expires.and_then(|seconds| Timestamp::from_second(seconds).ok());
        let share = |share: &hob_core::DeviceShare| json!({ "device": share.device, "layers": share.layers, "memory": share.bytes });
        LoadedOn {
            host: host.clone(),
            memory: model.size,
            memory_on_cards: model.size_vram,
            expires_at: expires.map(|time| time.to_string()),
            devices: model.devices.iter().map(share).collect(),
        }
    }
}

/// Searches the built-in list, and the model hub if there are words to search for.
pub(crate) async fn search(
    State(state): SharedState,
    query: Result<Query<SearchQuery>, QueryRejection>,
    extensions: Extensions,
) -> ApiResult<Json<Value>> {
    RequestContext::check_owner(&extensions, "/v1/model-files/search")?;
    let Query(SearchQuery { query }) = query.map_err(|error| ApiError::malformed(error.body_text()))?;
    if query.chars().count() > MAX_QUERY {
        return Err(ApiError::invalid("query", format!("query is longer than {MAX_QUERY} characters")));
    }
    let models = state.model_management.clone().ok_or_else(ApiError::no_model_management)?;
    let words = query.trim();
    let hub = if words.is_empty() { HubSearch::BuiltInOnly } else { HubSearch::AlsoHub(HUB_RESULTS) };
    let ModelSearch { built_in, hub, hub_problem, machine } = models.search(words, hub).await;
    let of_hub = hub.into_iter().map(|found| {
        json!({
            "name": format!("hf:{}", found.repo), "about": null, "size": null, "parameters": null, "context": null,
            "capabilities": [], "license": found.license, "downloads": found.downloads, "built_in": false,
            "downloaded": false, "memory": null, "fits": null, "tokens_per_second": null,
        })
    });
    let data: Vec<Value> = built_in.iter().map(built_in_entry).chain(of_hub).collect();
    let machine = machine.map(|room| {
        json!({
            "memory": room.memory, "disk_free": room.disk, "memory_bandwidth": room.speed.bandwidth,
            "cores": room.speed.cores,
        })
    });
    let mut body = json!({ "object": "list", "data": data, "machine": machine });
    if let Some(problem) = hub_problem {
        body["message"] = problem.into();
    }
    Ok(Json(body))
}

/// The downloads in progress, of all clients.
pub(crate) async fn downloads(State(state): SharedState, extensions: Extensions) -> ApiResult<Json<Value>> {
    RequestContext::check_owner(&extensions, "/v1/model-files/downloads")?;
    Ok(Json(json!({ "object": "list", "data": state.downloads.list() })))
}

fn built_in_entry(found: &BuiltInModel) -> Value {
    let entry = found.entry;
    json!({
        "name": entry.short_name,
        "about": entry.about,
        "size": entry.total_size(),
        "parameters": entry.parameters,
        "context": entry.context,
        "capabilities": entry.can.iter().map(|ability| ability.as_str()).collect::<Vec<_>>(),
        "license": entry.license,
        "downloads": null,
        "built_in": true,
        "downloaded": found.is_here,
        "memory": found.memory,
        "fits": found.fits,
        "tokens_per_second": found.tokens_per_second,
    })
}
