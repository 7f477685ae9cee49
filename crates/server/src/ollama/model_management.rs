//! `POST /api/pull`, `DELETE /api/delete` and `POST /api/copy`: for the owner only, because they change what everyone can use.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream::{self, StreamExt};
use hob_app::{ModelManagement, PullSteps};
use hob_core::{AnswerWarning, CallerRole};
use hob_models::{ModelFailureKind, PullStep};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::model_entry::digest;
use super::settings::says_nothing;
use super::{model_name, respond};
use crate::admin::audit;
use crate::error::{ApiError, ApiResult, ErrorFormat};
use crate::json::{check_model_name, push_json, read};
use crate::limits::read_body::read_json;
use crate::model_downloads::ListedDownload;
use crate::openai::ignored_fields::IgnoredFields;
use crate::pages::changes::{Audience, Changes, Topic};
use crate::request_context::RequestContext;
use crate::state::{ServerState, SharedState};
use crate::warning_header::with_warnings;

/// The bodies before they are checked.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct ModelBody {
    model: Option<String>,
    /// The older name of `model`.
    name: Option<String>,
    stream: Option<bool>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct CopyBody {
    source: String,
    destination: String,
}

/// One line of a download.
#[derive(Serialize)]
struct PullLine {
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed: Option<u64>,
}

/// Downloads a model. A client that hangs up stops the download; the next one resumes it.
pub(crate) async fn pull(State(state): SharedState, request: Request) -> ApiResult<Response> {
    respond(request, async |request| {
        let models = owners_models(&state, &request, "/api/pull")?;
        let actor = RequestContext::actor(request.extensions());
        let body = read_json(request, &state.body_reader).await?;
        let ModelBody { model, name, stream, rest } = read(&body)?;
        let model = model_name::required(model, name)?;
        check_model_name(&model)?;
        let warnings = ignored(&rest);
        let slot =
            Arc::clone(&state.pull_slots).try_acquire_owned().map_err(|_| ApiError::too_many_pulls())?;
        let steps = models.pull(&model).await?;
        audit::note(&state, actor, "model.pull", model.clone()).await;
        let (changes, stopping) = (state.changes.clone(), state.stopping.clone());
        let listed = state.downloads.begin(&model);
        let download = Download { steps, model, listed, changes, _slot: slot, stopping };
        let response = match stream.unwrap_or(true) {
            true => streamed(download),
            false => whole(download).await?,
        };
        Ok(with_warnings(response, warnings.iter()))
    })
    .await
}

/// Deletes a model.
pub(crate) async fn delete(State(state): SharedState, request: Request) -> ApiResult<Response> {
    respond(request, async |request| {
        let models = owners_models(&state, &request, "/api/delete")?;
        let actor = RequestContext::actor(request.extensions());
        let body = read_json(request, &state.body_reader).await?;
        let ModelBody { model, name, rest, .. } = read(&body)?;
        let requested = model_name::required(model, name)?;
        check_model_name(&requested)?;
        let model = model_name::meant(&state, &requested, CallerRole::Owner).await;
        models.delete(&model).await.map_err(|error| ApiError::from(error).for_missing_model(&requested))?;
        state.changes.publish(Topic::Models, &Audience::Everyone);
        audit::note(&state, actor, "model.delete", model).await;
        Ok(with_warnings(().into_response(), ignored(&rest).iter()))
    })
    .await
}

/// Gives a model a second name, where its engine is an Ollama.
pub(crate) async fn copy(State(state): SharedState, request: Request) -> ApiResult<Response> {
    respond(request, async |request| {
        let models = owners_models(&state, &request, "/api/copy")?;
        let actor = RequestContext::actor(request.extensions());
        let body = read_json(request, &state.body_reader).await?;
        let CopyBody { source, destination } = read(&body)?;
        check_model_name(&source)?;
        check_model_name(&destination)?;
        if destination.trim().is_empty() {
            return Err(ApiError::invalid("destination", "destination is empty"));
        }
        let model = model_name::meant(&state, &source, CallerRole::Owner).await;
        let copied = models.copy(&model, &destination).await;
        copied.map_err(|error| ApiError::from(error).for_missing_model(&source))?;
        state.changes.publish(Topic::Models, &Audience::Everyone);
        audit::note(&state, actor, "model.copy", format!("{model} as {destination}")).await;
        Ok(().into_response())
    })
    .await
}

/// The models, if the caller may change them.
fn owners_models(state: &ServerState, request: &Request, path: &str) -> ApiResult<Arc<ModelManagement>> {
    RequestContext::check_owner(request.extensions(), path)?;
    state.model_management.clone().ok_or_else(ApiError::no_model_management)
}

/// The fields without effect.
fn ignored(rest: &Map<String, Value>) -> Vec<AnswerWarning> {
    let mut ignored = IgnoredFields::default();
    for (field, _) in rest.iter().filter(|(_, value)| !says_nothing(value)) {
        ignored.note(field);
    }
    ignored.into_warnings()
}

/// A download in progress, with the slot that it holds.
pub(crate) struct Download {
    pub(crate) steps: PullSteps,
    pub(crate) model: String,
    /// Its entry in the list of downloads.
    pub(crate) listed: ListedDownload,
    /// Learns of the new model.
    pub(crate) changes: Changes,
    /// Bounds the downloads at a time.
    pub(crate) _slot: OwnedSemaphorePermit,
    pub(crate) stopping: CancellationToken,
}

impl Download {
    /// The next step. Open pages learn of the model after the last.
    async fn next(&mut self) -> Option<ApiResult<PullStep>> {
        let next = tokio::select! {
            biased;
            () = self.stopping.cancelled() => return Some(Err(ApiError::shutting_down())),
            next = self.steps.next() => next?,
        };
        if let Ok(step) = &next {
            self.listed.note(step);
        }
        if next.as_ref().is_ok_and(PullStep::is_last) {
            self.changes.publish(Topic::Models, &Audience::Everyone);
        }
        Some(next.map_err(|error| {
            // A failure of the disk is logged with its answer.
            if error.reason() != ModelFailureKind::Disk {
                tracing::warn!(
                    model = self.model,
                    %error,
                    "a model is not available; the caller gets the reason"
                );
            }
            ApiError::from(error)
        }))
    }
}

/// The steps, one object in each line.
pub(crate) fn streamed(download: Download) -> Response {
    let lines = stream::unfold(Some(download), |download| async move {
        let mut download = download?;
        let next = download.next().await?;
        let mut line = Vec::new();
        let rest = match next {
            Ok(step) => {
                push_json(&mut line, &PullLine::new(step, &download.model));
                Some(download)
            }
            Err(error) => {
                line.extend_from_slice(&error.event(ErrorFormat::Ollama));
                None
            }
        };
        line.push(b'\n');
        Some((Ok::<_, std::convert::Infallible>(Bytes::from(line)), rest))
    });
    let content_type = [(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"))];
    (content_type, Body::from_stream(lines)).into_response()
}

/// Waits for the end of a download.
async fn whole(mut download: Download) -> ApiResult<Response> {
    while let Some(step) = download.next().await {
        step?;
    }
    Ok(axum::Json(json!({ "status": "success" })).into_response())
}

impl PullLine {
    fn new(PullStep { status, digest: own, total, completed }: PullStep, model: &str) -> Self {
        // Clients show a bar for each digest.
        let digest = own.or_else(|| total.is_some().then(|| format!("sha256:{}", digest("pull", model))));
        PullLine { status, digest, total, completed }
    }
}
