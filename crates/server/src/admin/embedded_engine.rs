//! `GET` and `POST /v1/engines/embedded`: the owner lets the embedded engine answer, without a restart. The first steps of the chat page
//! use it. What can be chosen, and what a choice does, is up to `hob-app`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::Extensions;
use axum::response::Response;
use hob_app::{EmbeddedEngine, EmbeddedEngineState, LoadedEngine, ModelManagementError};
use hob_config::{EngineName, SettingSection, SettingsError};
use hob_core::model::{AUTO, DEFAULT_MODEL};
use hob_keys::AuditActor;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::audit;
use crate::error::{ApiError, ApiResult};
use crate::json::{check_model_name, read};
use crate::limits::read_body::read_json;
use crate::ollama::model_management::{Download, streamed};
use crate::pages::changes::{Audience, Topic};
use crate::request_context::RequestContext;
use crate::state::{ServerState, SharedState};

const PATH: &str = "/v1/engines/embedded";

/// The setting that names the engine that answers.
const ENGINE_SETTING: &str = "engine.default";

/// The settings that may name a default model, which an engine that is chosen later need not have.
const MODEL_SETTINGS: [&str; 2] = ["server.model", "intelligence.default_model"];

#[derive(Serialize)]
pub(crate) struct EmbeddedEngineReport {
    object: &'static str,
    key: &'static str,
    /// Whether this build has it.
    included: bool,
    /// Whether it answers already.
    selected: bool,
    /// Why it cannot be chosen.
    problem: Option<String>,
    /// The models on the disk that can answer.
    models: Vec<ChoosableModel>,
}

#[derive(Serialize)]
struct ChoosableModel {
    id: String,
    size: Option<u64>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct ChoiceBody {
    /// One of the disk, or of the built-in list.
    model: String,
}

pub(crate) async fn show(
    State(state): SharedState,
    extensions: Extensions,
) -> ApiResult<Json<EmbeddedEngineReport>> {
    let EmbeddedEngineState { is_selected, problem, models } =
        embedded_for_owner(&state, &extensions)?.state().await;
    let models = models.into_iter().map(|model| ChoosableModel { id: model.id, size: model.size });
    Ok(Json(EmbeddedEngineReport {
        object: "engine",
        key: EngineName::Embedded.as_str(),
        included: !matches!(problem, Some(ModelManagementError::NoEmbeddedEngine)),
        selected: is_selected,
        problem: problem.map(|problem| problem.to_string()),
        models: models.collect(),
    }))
}

/// Downloads the model unless it is on the disk, loads it, saves the choice, and lets the engine answer. The answer has the steps.
pub(crate) async fn choose(State(state): SharedState, request: Request) -> ApiResult<Response> {
    let embedded = embedded_for_owner(&state, request.extensions())?;
    let actor = RequestContext::actor(request.extensions());
    let body = read_json(request, &state.body_reader).await?;
    let ChoiceBody { model } = read(&body)?;
    check_model_name(&model)?;
    let slot = Arc::clone(&state.pull_slots).try_acquire_owned().map_err(|_| ApiError::too_many_pulls())?;
    let (shared, chooser) = (Arc::clone(&state), actor.clone());
    let steps = embedded.open(&model, Box::new(move |loaded| shared.use_engine(loaded, chooser))).await?;
    audit::note(&state, actor, "engine.choose", format!("{} with {model}", EngineName::Embedded)).await;
    let (changes, stopping) = (state.changes.clone(), state.stopping.clone());
    let listed = state.downloads.begin(&model);
    Ok(streamed(Download { steps, model, listed, changes, _slot: slot, stopping }))
}

fn embedded_for_owner(state: &ServerState, extensions: &Extensions) -> ApiResult<Arc<EmbeddedEngine>> {
    RequestContext::check_owner(extensions, PATH)?;
    state.embedded.clone().ok_or_else(ApiError::no_model_management)
}

impl ServerState {
    /// Saves the choice, lets the engine answer, and tells the open pages. If it cannot be saved, nothing changes. Blocks.
    fn use_engine(&self, loaded: LoadedEngine, actor: AuditActor) -> Result<(), SettingsError> {
        let model = loaded.model().to_owned();
        let changed = match &self.settings {
            // The default model in effect must be the one of the file, also if another page or command changes it now.
            Some(settings) => {
                let file = settings.file.lock();
                let changed =
                    file.change_and_apply(|sections| wanted(sections, &model), || loaded.select())?;
                !changed.keys.is_empty()
            }
            None => {
                loaded.select();
                false
            }
        };
        self.check_other_engines();
        self.changes.publish(Topic::Models, &Audience::Everyone);
        if let Some(settings) = self.settings.as_ref().filter(|_| changed) {
            self.changes.publish(Topic::Settings, &Audience::Owner);
            settings.note_change(actor);
        }
        Ok(())
    }
}

/// The settings with which this engine and this model answer after a restart too.
fn wanted(sections: &[SettingSection], model: &str) -> BTreeMap<String, Option<Value>> {
    let mut wanted =
        BTreeMap::from([(ENGINE_SETTING.to_owned(), Some(EngineName::Embedded.as_str().into()))]);
    for setting in sections.iter().flat_map(|section| &section.settings) {
        let named = setting.value.as_ref().and_then(Value::as_str).unwrap_or_default();
        let names_model = MODEL_SETTINGS.contains(&setting.key.as_str());
        if names_model && !["", AUTO, DEFAULT_MODEL].contains(&named) {
            wanted.insert(setting.key.clone(), Some(model.into()));
        }
    }
    wanted
}
