//! `/v1/memory/folders`: directories of the server's machine whose documents are in the memory. For the owner only, and new ones only from
//! this machine: a key that is used elsewhere must not choose which files Hob reads.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{Extensions, StatusCode};
use hob_core::CollectionSet;
use hob_memory::{DocumentFolder, FolderRequest, IndexJob};
use serde::{Deserialize, Serialize};

use super::documents::DocumentCaller;
use crate::admin::audit;
use crate::error::{ApiError, ApiResult};
use crate::json::read;
use crate::limits::read_body::read_json;
use crate::request_context::RequestContext;
use crate::state::SharedState;

const PATH: &str = "/v1/memory/folders";

/// Bytes of a path.
const MAX_PATH: usize = 4_096;

/// The id in the path.
type Id = Result<Path<String>, PathRejection>;

#[derive(Deserialize)]
struct FolderBody {
    path: String,
    collection: Option<String>,
    #[serde(default)]
    watched: bool,
}

#[derive(Deserialize)]
struct FolderPatch {
    watched: bool,
}

#[derive(Serialize)]
pub(crate) struct FolderList {
    data: Vec<DocumentFolder>,
}

#[derive(Serialize)]
pub(crate) struct AddedFolder {
    #[serde(flatten)]
    folder: DocumentFolder,
    job: IndexJob,
}

#[derive(Serialize)]
pub(crate) struct RemovedFolder {
    id: i64,
    deleted: bool,
}

pub(crate) async fn list(State(state): SharedState, extensions: Extensions) -> ApiResult<Json<FolderList>> {
    let caller = DocumentCaller::owner(&state, &extensions, PATH)?;
    let mut data = caller.library.folders().await?;
    data.retain(|folder| is_allowed(&caller.allowed, folder));
    Ok(Json(FolderList { data }))
}

/// Adds a folder and indexes it. Answers before that is done.
pub(crate) async fn add(
    State(state): SharedState,
    request: Request,
) -> ApiResult<(StatusCode, Json<AddedFolder>)> {
    let caller = DocumentCaller::owner(&state, request.extensions(), PATH)?;
    if !caller.may_add_folders {
        return Err(ApiError::folder_from_elsewhere());
    }
    let actor = RequestContext::actor(request.extensions());
    let body = read_json(request, &state.body_reader).await?;
    let FolderBody { path, collection, watched } = read(&body)?;
    let path = path.trim().to_owned();
    if path.is_empty() || path.len() > MAX_PATH || path.contains('\0') {
        let message = format!("path: expected the path of a folder, with at most {MAX_PATH} bytes");
        return Err(ApiError::invalid("path", message));
    }
    let collection = caller.collection(collection)?;
    let request = FolderRequest { path, collection, watched };
    let (folder, job) = caller.library.add_folder(request, caller.scope(&state)).await?;
    audit::note(&state, actor, "folder.add", format!("{}:{}", folder.collection, folder.path)).await;
    Ok((StatusCode::ACCEPTED, Json(AddedFolder { folder, job })))
}

/// Watches a folder or not.
pub(crate) async fn patch(
    State(state): SharedState,
    id: Id,
    request: Request,
) -> ApiResult<Json<DocumentFolder>> {
    let caller = DocumentCaller::owner(&state, request.extensions(), PATH)?;
    let actor = RequestContext::actor(request.extensions());
    let id = known(&caller, id).await?;
    let body = read_json(request, &state.body_reader).await?;
    let FolderPatch { watched } = read(&body)?;
    let folder = caller.library.set_watched(id, watched).await?;
    let action = if watched { "folder.watch" } else { "folder.unwatch" };
    audit::note(&state, actor, action, folder.path.clone()).await;
    Ok(Json(folder))
}

/// Removes a folder, and its documents from the memory.
pub(crate) async fn delete(
    State(state): SharedState,
    id: Id,
    extensions: Extensions,
) -> ApiResult<Json<RemovedFolder>> {
    let caller = DocumentCaller::owner(&state, &extensions, PATH)?;
    let id = known(&caller, id).await?;
    let folder = caller.library.remove_folder(id).await?;
    audit::note(&state, RequestContext::actor(&extensions), "folder.remove", folder.path).await;
    Ok(Json(RemovedFolder { id, deleted: true }))
}

/// The id of a folder that the caller may change. To others it does not exist.
async fn known(caller: &DocumentCaller<'_>, id: Id) -> ApiResult<i64> {
    let Path(id) = id.map_err(|_| ApiError::malformed("the folder's id in the path is not valid UTF-8"))?;
    let id: i64 =
        id.parse().map_err(|_| ApiError::malformed("the folder's id in the path is not a number"))?;
    let folders = caller.library.folders().await?;
    let is_known = |folder: &DocumentFolder| folder.id == id && is_allowed(&caller.allowed, folder);
    match folders.iter().any(is_known) {
        true => Ok(id),
        false => Err(hob_memory::DocumentLibraryError::NoFolder.into()),
    }
}

fn is_allowed(allowed: &CollectionSet, folder: &DocumentFolder) -> bool {
    allowed.names().is_none_or(|names| names.iter().any(|name| name.as_str() == folder.collection))
}
