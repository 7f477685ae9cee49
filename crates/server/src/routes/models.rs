//! `GET /v1/models` and `GET /v1/models/{id}`.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};

use crate::error::ApiError;
use crate::router::App;
use crate::wire::response::{Model, ModelList};

pub(crate) async fn list(State(app): State<Arc<App>>) -> Result<Json<ModelList>, ApiError> {
    Ok(Json(ModelList::new(app.system.listed_models().await?)))
}

/// Ids may contain slashes, as those of models from a hub do.
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Model>, ApiError> {
    let Path(id) = id.map_err(|_| ApiError::malformed("the model's id in the path is not valid UTF-8"))?;
    let found = app.system.listed_model(&id).await?;
    found.map(|listed| Json(Model::from(listed))).ok_or_else(|| ApiError::no_such_model(&id))
}
