//! `GET /v1/calls`: every recorded call, newest first, in pages. The owner sees all of them, a member sees its own.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{Extensions, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hob_telemetry::{CallCursor, CallOutcome, CallPage, CallQuery, CallRecord, MAX_CALL_PAGE};
use serde::{Deserialize, Serialize};

use super::key_request::begin_request;
use crate::error::{ApiError, ApiResult};
use crate::page_limit::page_limit;
use crate::request_context::RequestContext;
use crate::state::{ServerState, SharedState};

const DEFAULT_LIMIT: usize = 50;

/// Characters of a name in a filter.
const MAX_NAME: usize = 256;

#[derive(Deserialize)]
pub(crate) struct CallsQuery {
    limit: Option<usize>,
    after: Option<String>,
    outcome: Option<CallOutcome>,
    model: Option<String>,
    /// Empty for calls without a named key.
    key: Option<String>,
    /// The id of a request or of a run.
    request: Option<String>,
}

/// The body.
#[derive(Serialize)]
struct CallList {
    object: &'static str,
    data: Vec<CallRecord>,
    /// `null` after the last page. A page with a cursor can be empty.
    next: Option<CallCursor>,
    /// Why calls are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

pub(crate) async fn list(
    State(state): SharedState,
    query: Result<Query<CallsQuery>, QueryRejection>,
    extensions: Extensions,
) -> ApiResult<Response> {
    let is_owner = RequestContext::is_owner(&extensions);
    let own = RequestContext::key(&extensions).map(|key| key.key.name.as_str().to_owned());
    if !is_owner && own.is_none() {
        return Err(ApiError::owner_only("/v1/calls"));
    }
    let Query(query) = query.map_err(|error| ApiError::malformed(error.body_text()))?;
    let mut query = query.checked()?;
    if !is_owner {
        query.key = own;
    }
    // A page may read many calls, so one of a member counts as a request of its key, like a question.
    let key = RequestContext::rights(&extensions).key.filter(|_| !is_owner);
    let _running = begin_request(key.as_ref()).await?;
    let CallPage { calls: mut data, next } = read(&state, query).await?;
    if !is_owner {
        // Reasons and hosts name machines of the owner.
        data.iter_mut().for_each(|call| (call.error, call.host) = (None, None));
    }
    let list = CallList { object: "list", data, next, message: state.record.why_not() };
    Ok(([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))], Json(list)).into_response())
}

impl CallsQuery {
    fn checked(self) -> ApiResult<CallQuery> {
        let limit = page_limit(self.limit, DEFAULT_LIMIT, MAX_CALL_PAGE)?;
        let after = match self.after.as_deref() {
            None => None,
            Some(text) => Some(CallCursor::parse(text).ok_or_else(|| {
                ApiError::invalid("after", "after is not a value of next of an earlier page")
            })?),
        };
        for (name, text) in [("model", &self.model), ("key", &self.key), ("request", &self.request)] {
            if text.as_ref().is_some_and(|text| text.chars().count() > MAX_NAME) {
                return Err(ApiError::invalid(name, format!("{name} is longer than {MAX_NAME} characters")));
            }
        }
        let CallsQuery { outcome, model, key, request, .. } = self;
        Ok(CallQuery { outcome, model, key, request, after, limit })
    }
}

/// Reads the record in the blocking pool, a few reports at once.
async fn read(state: &ServerState, query: CallQuery) -> ApiResult<CallPage> {
    let _slot = state.report_slots.acquire().await.map_err(|_| ApiError::record_unreadable())?;
    let record = state.record.clone();
    state.blocking.run(move || record.call_page(&query)).await.map_err(|error| {
        tracing::warn!(
            error = &error as &(dyn std::error::Error + 'static),
            "the calls cannot be listed. 'hob doctor' checks the database"
        );
        ApiError::of_store(&error, ApiError::record_unreadable())
    })
}
