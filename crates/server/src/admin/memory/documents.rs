//! `/v1/memory/collections`, `documents`, `skipped`, `jobs` and `forget`: what the memory has, adding a file, and forgetting. A member sees
//! the collections of its key, and adds to them if its reach is `act`. Only the owner forgets.

use std::path::Path as FilePath;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::http::{Extensions, StatusCode};
use axum::response::Response;
use hob_core::{CollectionName, CollectionSet, KeyGrant, Reach};
use hob_memory::{
    CatalogPage, CatalogPosition, CollectionSummary, DocumentLibrary, DocumentUpload, IndexJob, JobKind,
    JobScope, SkippedFile, StoredDocument, UploadPayer,
};
use serde::{Deserialize, Serialize};

use super::{memory_for, not_cached, selected};
use crate::admin::audit;
use crate::admin::key_request::begin_request;
use crate::error::{ApiError, ApiResult};
use crate::json::read;
use crate::limits::read_body::{JsonBody, read_file, read_json};
use crate::page_limit::page_limit;
use crate::request_context::RequestContext;
use crate::state::{ServerState, SharedState};

/// Entries of a page without `limit`, and the most.
const DEFAULT_ENTRIES: usize = 50;
const MAX_ENTRIES: usize = 200;

/// Characters of a filter or of a name.
const MAX_TEXT: usize = 1_000;

#[derive(Deserialize)]
pub(crate) struct ListQuery {
    collection: Option<String>,
    query: Option<String>,
    limit: Option<usize>,
    after: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct UploadQuery {
    name: Option<String>,
    collection: Option<String>,
}

#[derive(Deserialize)]
struct ForgetBody {
    path: String,
    collection: Option<String>,
}

/// A page of a list, and where the next one begins.
#[derive(Serialize)]
struct Listed<T> {
    data: Vec<T>,
    next: Option<String>,
}

#[derive(Serialize)]
struct ListedDocument {
    #[serde(flatten)]
    document: StoredDocument,
    /// The name of the file, or the title of a note.
    name: String,
    /// Whether Hob has the file itself.
    uploaded: bool,
}

#[derive(Serialize)]
struct CollectionList {
    data: Vec<CollectionSummary>,
    /// Whether the caller may upload documents.
    may_add: bool,
    /// Whether the caller may forget documents, and watch and remove folders.
    may_manage: bool,
    /// Whether the caller may add folders.
    may_add_folders: bool,
}

#[derive(Serialize)]
struct JobPage {
    data: Vec<IndexJob>,
}

#[derive(Serialize)]
pub(crate) struct ForgottenDocuments {
    documents: u64,
    chunks: u64,
}

/// Who asks, and for what it may ask.
pub(super) struct DocumentCaller<'a> {
    pub(super) library: &'a DocumentLibrary,
    pub(super) allowed: CollectionSet,
    key: Option<Arc<KeyGrant>>,
    is_owner: bool,
    may_add: bool,
    pub(super) may_add_folders: bool,
}

impl<'a> DocumentCaller<'a> {
    pub(super) fn of(state: &'a ServerState, extensions: &Extensions, path: &str) -> ApiResult<Self> {
        let (_, allowed) = memory_for(state, extensions, path)?;
        let is_owner = RequestContext::is_owner(extensions);
        Ok(DocumentCaller {
            library: state.documents.as_ref().ok_or_else(ApiError::no_document_library)?,
            allowed,
            key: RequestContext::rights(extensions).key,
            is_owner,
            may_add: RequestContext::permit(extensions).most == Reach::Act,
            may_add_folders: is_owner && RequestContext::is_on_this_machine(extensions),
        })
    }

    /// The same for what only the owner may do.
    pub(super) fn owner(state: &'a ServerState, extensions: &Extensions, path: &str) -> ApiResult<Self> {
        match RequestContext::is_owner(extensions) {
            true => Self::of(state, extensions, path),
            false => Err(ApiError::owner_only(path)),
        }
    }

    /// A collection that the caller may use. Without a name it is the owner's, or the only one of a key.
    pub(super) fn collection(&self, name: Option<String>) -> ApiResult<CollectionName> {
        let only = match (&name, &self.allowed) {
            (Some(_), _) => None,
            (None, CollectionSet::All) => Some(CollectionName::default()),
            (None, CollectionSet::Only(names)) => match names.as_slice() {
                [only] => Some(only.clone()),
                _ => {
                    let message = "collection is missing; name one of the collections of your key";
                    return Err(ApiError::invalid("collection", message));
                }
            },
        };
        if let Some(only) = only {
            return Ok(only);
        }
        let names = selected(&self.allowed, "collection", name.into_iter().collect())?;
        Ok(names.names().and_then(|names| names.first()).cloned().unwrap_or_default())
    }

    /// Who pays for the vectors of a job.
    pub(super) fn scope(&self, state: &ServerState) -> JobScope {
        let (system, key) = (Arc::clone(&state.system), self.key.clone());
        Box::new(move |work| Box::pin(async move { system.charged_to(key, work).await }))
    }

    /// The same, for a later process.
    fn payer(&self) -> Option<UploadPayer> {
        let key = self.key.as_ref()?;
        Some(UploadPayer { key: key.name.to_string(), rule: key.rule.as_ref().map(ToString::to_string) })
    }

    pub(super) async fn count_request(&self) -> ApiResult<Option<hob_core::RunningRequest>> {
        begin_request(self.key.as_ref()).await
    }
}

pub(crate) async fn collections(State(state): SharedState, extensions: Extensions) -> ApiResult<Response> {
    let caller = DocumentCaller::of(&state, &extensions, "/v1/memory/collections")?;
    let allowed = caller.allowed.clone();
    let found = caller.library.memory().read(move |store| store.collections(&allowed)).await?;
    let mut data = found.unwrap_or_default();
    // A collection that a key names is listed before it has documents, because some can be added.
    for name in caller.allowed.names().unwrap_or_default() {
        if data.iter().all(|known| known.name != name.as_str()) {
            data.push(CollectionSummary {
                name: name.to_string(),
                documents: 0,
                chunks: 0,
                size: 0,
                skipped: 0,
                indexed: None,
            });
        }
    }
    data.sort_by(|one, other| one.name.cmp(&other.name));
    let DocumentCaller { may_add, may_add_folders, is_owner: may_manage, .. } = caller;
    Ok(not_cached(Json(CollectionList { data, may_add, may_manage, may_add_folders })))
}

pub(crate) async fn list(
    State(state): SharedState,
    query: Result<Query<ListQuery>, QueryRejection>,
    extensions: Extensions,
) -> ApiResult<Response> {
    let caller = DocumentCaller::of(&state, &extensions, "/v1/memory/documents")?;
    let Query(query) = query.map_err(unreadable)?;
    let collections =
        selected(&caller.allowed, "collection", query.collection.clone().into_iter().collect())?;
    let (page, limit) = page_of(&query)?;
    let after = CatalogPosition { path: query.after.unwrap_or_default(), ..CatalogPosition::default() };
    let page = CatalogPage { after, ..page };
    let found = caller.library.memory().read(move |store| store.documents(&collections, &page)).await?;
    let mut found = found.unwrap_or_default();
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| has_more).map(|last| last.path.clone());
    let uploads = caller.library.uploads();
    let data = found.into_iter().map(|document| listed(document, uploads)).collect();
    Ok(not_cached(Json(Listed { data, next })))
}

fn listed(document: StoredDocument, uploads: &FilePath) -> ListedDocument {
    let path = FilePath::new(&document.path);
    let is_note = document.path.starts_with("note:");
    let name = path.file_name().filter(|_| !is_note).map(|name| name.to_string_lossy().into_owned());
    ListedDocument {
        uploaded: path.starts_with(uploads),
        name: name.unwrap_or_else(|| document.title.clone()),
        document,
    }
}

/// Files that were not added. A member sees only uploaded ones: the names of other files are the owner's.
pub(crate) async fn skipped(
    State(state): SharedState,
    query: Result<Query<ListQuery>, QueryRejection>,
    extensions: Extensions,
) -> ApiResult<Response> {
    let caller = DocumentCaller::of(&state, &extensions, "/v1/memory/skipped")?;
    let Query(query) = query.map_err(unreadable)?;
    let collections =
        selected(&caller.allowed, "collection", query.collection.clone().into_iter().collect())?;
    let (page, limit) = page_of(&query)?;
    // Names of collections have no slash.
    let after = query.after.as_deref().and_then(|after| after.split_once('/')).unwrap_or_default();
    let after = CatalogPosition { collection: after.0.to_owned(), path: after.1.to_owned() };
    let uploads = caller.library.uploads().to_string_lossy().into_owned();
    let page = CatalogPage { after, below: (!caller.is_owner).then_some(uploads), ..page };
    let found = caller.library.memory().read(move |store| store.skipped(&collections, &page)).await?;
    let mut data: Vec<SkippedFile> = found.unwrap_or_default();
    let has_more = data.len() > limit;
    data.truncate(limit);
    let next = data.last().filter(|_| has_more).map(|last| format!("{}/{}", last.collection, last.path));
    Ok(not_cached(Json(Listed { data, next })))
}

/// A page without its beginning, with one more entry than its limit, which shows whether there is another page.
fn page_of(query: &ListQuery) -> ApiResult<(CatalogPage, usize)> {
    let limit = page_limit(query.limit, DEFAULT_ENTRIES, MAX_ENTRIES)?;
    let text = query.query.clone().unwrap_or_default();
    if text.chars().count() > MAX_TEXT {
        return Err(ApiError::invalid("query", format!("query has more than {MAX_TEXT} characters")));
    }
    // PostgreSQL has no such character in any text.
    if [Some(&text), query.after.as_ref()].into_iter().flatten().any(|text| text.contains('\0')) {
        return Err(ApiError::malformed("the query string contains the character U+0000"));
    }
    Ok((CatalogPage { text, limit: limit + 1, ..CatalogPage::default() }, limit))
}

/// What is being indexed. A member sees only uploads: folders are the owner's.
pub(crate) async fn jobs(State(state): SharedState, extensions: Extensions) -> ApiResult<Response> {
    let caller = DocumentCaller::of(&state, &extensions, "/v1/memory/jobs")?;
    let mut data = caller.library.jobs(&caller.allowed);
    data.retain(|job| caller.is_owner || job.kind == JobKind::Upload);
    Ok(not_cached(Json(JobPage { data })))
}

/// The bytes of a file, which count as long as they are in memory.
struct FileBody(JsonBody);

impl AsRef<[u8]> for FileBody {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Stores a file and indexes it. Answers before that is done.
pub(crate) async fn upload(
    State(state): SharedState,
    query: Result<Query<UploadQuery>, QueryRejection>,
    request: Request,
) -> ApiResult<(StatusCode, Json<IndexJob>)> {
    let caller = DocumentCaller::of(&state, request.extensions(), "/v1/memory/documents")?;
    let actor = RequestContext::actor(request.extensions());
    if !caller.may_add {
        return Err(ApiError::may_not_add(&actor.name));
    }
    let Query(UploadQuery { name, collection }) = query.map_err(unreadable)?;
    let name = name.filter(|name| !name.is_empty());
    let Some(name) = name.filter(|name| name.chars().count() <= MAX_TEXT) else {
        let message = format!("name: expected the name of the file, with at most {MAX_TEXT} characters");
        return Err(ApiError::invalid("name", message));
    };
    let collection = caller.collection(collection)?;
    let body = read_file(request, &state.body_reader).await?;
    if body.is_empty() {
        return Err(ApiError::malformed("the file is empty; send its bytes as the body of the request"));
    }
    let _running = caller.count_request().await?;
    let upload = DocumentUpload {
        collection: collection.clone(),
        name,
        bytes: FileBody(body),
        // A member does not change what others have added.
        may_replace: caller.is_owner,
        payer: caller.payer(),
    };
    let job = caller.library.upload(upload, caller.scope(&state)).await?;
    let stored = job.path.file_name().unwrap_or_default().to_string_lossy();
    audit::note(&state, actor, "document.upload", format!("{collection}/{stored}")).await;
    Ok((StatusCode::ACCEPTED, Json(job)))
}

pub(crate) async fn forget(
    State(state): SharedState,
    request: Request,
) -> ApiResult<Json<ForgottenDocuments>> {
    let caller = DocumentCaller::owner(&state, request.extensions(), "/v1/memory/forget")?;
    let actor = RequestContext::actor(request.extensions());
    let body = read_json(request, &state.body_reader).await?;
    let ForgetBody { path, collection } = read(&body)?;
    if path.trim().is_empty() || path.contains('\0') {
        return Err(ApiError::invalid("path", "path: expected the path of a document, as the list has it"));
    }
    let from = match collection {
        Some(name) => CollectionSet::of(caller.collection(Some(name))?),
        None => caller.allowed.clone(),
    };
    let gone = caller.library.forget(&path, from).await?;
    audit::note(&state, actor, "document.forget", path).await;
    Ok(Json(ForgottenDocuments { documents: gone.sources, chunks: gone.chunks }))
}

pub(crate) async fn forget_collection(
    State(state): SharedState,
    name: Result<Path<String>, PathRejection>,
    extensions: Extensions,
) -> ApiResult<Json<ForgottenDocuments>> {
    let caller = DocumentCaller::owner(&state, &extensions, "/v1/memory/collections")?;
    let Path(name) =
        name.map_err(|_| ApiError::malformed("the collection's name in the path is not valid UTF-8"))?;
    let name = caller.collection(Some(name))?;
    let gone = caller.library.forget_collection(name.clone()).await?;
    audit::note(&state, RequestContext::actor(&extensions), "collection.forget", name.to_string()).await;
    Ok(Json(ForgottenDocuments { documents: gone.sources, chunks: gone.chunks }))
}

pub(super) fn unreadable(rejection: QueryRejection) -> ApiError {
    ApiError::malformed(format!("the query string cannot be read: {}", rejection.body_text()))
}
