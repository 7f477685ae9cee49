//! `/v1/settings`: the configuration, for the owner. A change is validated as a whole, written into the file, and reloaded. Which keys may
//! be changed is up to `hob-config`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::Extensions;
use hob_config::{Setting, SettingSection, SettingSource, SettingsError};
use hob_keys::AuditActor;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::audit;
use crate::error::{ApiError, ApiResult};
use crate::json::read;
use crate::limits::read_body::read_json;
use crate::pages::changes::{Audience, Topic};
use crate::reload::is_reloaded;
use crate::request_context::RequestContext;
use crate::server_settings::ServerSettings;
use crate::state::{ServerState, SharedState};

const PATH: &str = "/v1/settings";

#[derive(Serialize)]
pub(crate) struct SettingList {
    object: &'static str,
    /// The file, as a person would write its path.
    file: String,
    data: Vec<ShownSection>,
}

#[derive(Serialize)]
struct ShownSection {
    section: String,
    description: &'static str,
    settings: Vec<ShownSetting>,
}

#[derive(Serialize)]
struct ShownSetting {
    key: String,
    description: &'static str,
    expected: &'static str,
    choices: &'static [&'static str],
    default: Value,
    /// Null for a secret.
    value: Option<Value>,
    secret: bool,
    set: bool,
    source: &'static str,
    /// The variable of the environment, if the value comes from there.
    variable: Option<&'static str>,
    changeable: bool,
    needs_restart: bool,
}

impl From<Setting> for ShownSetting {
    fn from(setting: Setting) -> Self {
        let (source, variable) = match setting.source {
            SettingSource::Default => ("default", None),
            SettingSource::File => ("file", None),
            SettingSource::Environment(variable) => ("environment", Some(variable)),
        };
        ShownSetting {
            needs_restart: !is_reloaded(&setting.key),
            key: setting.key,
            description: setting.about,
            expected: setting.expected,
            choices: setting.choices,
            default: setting.default,
            secret: setting.value.is_none(),
            value: setting.value,
            set: setting.is_set,
            source,
            changeable: setting.is_changeable && variable.is_none(),
            variable,
        }
    }
}

impl ShownSetting {
    /// With the value that an option of the command line sets. The file cannot change it while this server runs.
    fn with_option(self, value: &Value) -> Self {
        ShownSetting {
            set: *value != self.default,
            value: Some(value.clone()),
            source: "option",
            variable: None,
            changeable: false,
            ..self
        }
    }
}

impl ShownSection {
    fn new(section: SettingSection, options: &BTreeMap<&'static str, Value>) -> Self {
        let shown = |setting: Setting| {
            let shown = ShownSetting::from(setting);
            match options.get(shown.key.as_str()) {
                Some(value) => shown.with_option(value),
                None => shown,
            }
        };
        let settings = section.settings.into_iter().map(shown).collect();
        ShownSection { section: section.name, description: section.about, settings }
    }
}

#[derive(Deserialize)]
struct ChangeBody {
    /// New values by key. Null removes a value, so that the default applies.
    settings: BTreeMap<String, Option<Value>>,
}

#[derive(Serialize)]
pub(crate) struct ChangeReport {
    changed: Vec<String>,
    /// In effect now.
    applied: Vec<String>,
    /// In effect after a restart.
    after_restart: Vec<String>,
}

pub(crate) async fn list(State(state): SharedState, extensions: Extensions) -> ApiResult<Json<SettingList>> {
    let settings = settings_for_owner(&state, &extensions)?;
    let read_from = Arc::clone(&settings);
    let read = move || {
        let file = read_from.file.lock();
        Ok::<_, SettingsError>((file.shown_path()?, file.list()?))
    };
    let (file, sections) = off_thread(read).await?;
    Ok(Json(SettingList {
        object: "list",
        file,
        data: sections.into_iter().map(|section| ShownSection::new(section, &settings.options)).collect(),
    }))
}

pub(crate) async fn change(State(state): SharedState, request: Request) -> ApiResult<Json<ChangeReport>> {
    let settings = settings_for_owner(&state, request.extensions())?;
    let actor = RequestContext::actor(request.extensions());
    let body = read_json(request, &state.body_reader).await?;
    let ChangeBody { settings: wanted } = read(&body)?;
    if let Some(key) = wanted.keys().find(|key| settings.options.contains_key(key.as_str())) {
        return Err(ApiError::setting_of_option(key));
    }
    let file = Arc::clone(&settings);
    let changed = off_thread(move || file.file.lock().change(&wanted)).await?.keys;
    if !changed.is_empty() {
        // The names only: the log keeps no values of settings.
        audit::note(&state, actor.clone(), "settings.change", changed.join(", ")).await;
        state.changes.publish(Topic::Settings, &Audience::Owner);
        settings.note_change(actor);
    }
    let (applied, after_restart) = changed.iter().cloned().partition(|key| is_reloaded(key));
    Ok(Json(ChangeReport { changed, applied, after_restart }))
}

/// Turns WhatsApp on in the file. The caller is known to be the owner, on this machine.
pub(super) async fn turn_on_whatsapp(state: &ServerState, actor: AuditActor) -> ApiResult<()> {
    let settings = state.settings.clone().ok_or_else(ApiError::no_settings)?;
    let file = Arc::clone(&settings);
    let changed = off_thread(move || file.file.lock().turn_on_whatsapp()).await?.keys;
    if !changed.is_empty() {
        audit::note(state, actor.clone(), "settings.change", changed.join(", ")).await;
        state.changes.publish(Topic::Settings, &Audience::Owner);
        settings.note_change(actor);
    }
    Ok(())
}

fn settings_for_owner(state: &ServerState, extensions: &Extensions) -> ApiResult<Arc<ServerSettings>> {
    RequestContext::check_owner(extensions, PATH)?;
    state.settings.clone().ok_or_else(ApiError::no_settings)
}

/// Files may be slow to read, and this thread serves requests.
async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SettingsError> + Send + 'static,
) -> ApiResult<T> {
    match hob_db::spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(ApiError::settings_failed("the settings cannot be read or changed")),
    }
}
