//! `GET /v1/models` and `GET /v1/models/{id}`.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use hob_core::routing::AUTO;

use crate::error::ApiError;
use crate::router::App;
use crate::wire::response::{Model, ModelList};

pub(crate) async fn list(State(app): State<Arc<App>>) -> Result<Json<ModelList>, ApiError> {
    let listed = app.system.listed_models().await?;
    let is_taken = listed.iter().any(|listed| listed.model.id == AUTO);
    let auto = own_auto(&app).filter(|_| !is_taken);
    Ok(Json(ModelList::new(listed.into_iter().map(Model::from).chain(auto))))
}

/// Ids may contain slashes, as those of models from a hub do.
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Model>, ApiError> {
    let Path(id) = id.map_err(|_| ApiError::malformed("the model's id in the path is not valid UTF-8"))?;
    let found = app.system.listed_model(&id).await?;
    let found = found.map(Model::from).or_else(|| own_auto(&app).filter(|_| id == AUTO));
    found.map(Json).ok_or_else(|| ApiError::no_such_model(&id))
}

/// `auto`, for clients that offer what is listed and nothing else. Where the owner did not choose it, the list is that of the
/// engines alone: some clients take every entry for a model, or the first for the one to use.
fn own_auto(app: &App) -> Option<Model> {
    app.system.defaults_to_auto().then(Model::auto)
}
