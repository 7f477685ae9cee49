//! `GET /v1/usage`: the calls of each key. The owner sees all of them, a member sees its own.

use std::time::SystemTime;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{Extensions, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hob_core::UtcDay;
use hob_telemetry::KeyUsage;
use serde::{Deserialize, Serialize};

use crate::error::{ApiError, ApiResult};
use crate::request_context::RequestContext;
use crate::state::{ServerState, SharedState};

/// The longest report, in days.
const MAX_DAYS: u32 = 3_660;

#[derive(Deserialize)]
pub(crate) struct UsageQuery {
    /// The last days, including today; without it, everything that is recorded.
    days: Option<u32>,
}

/// The body.
#[derive(Serialize)]
struct UsageReport {
    object: &'static str,
    /// The first day, in UTC; `null` for everything that is recorded.
    since: Option<UtcDay>,
    data: Vec<KeyUsage>,
    /// Why figures are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

pub(crate) async fn show(
    State(state): SharedState,
    query: Result<Query<UsageQuery>, QueryRejection>,
    extensions: Extensions,
) -> ApiResult<Response> {
    let is_owner = RequestContext::is_owner(&extensions);
    let own = RequestContext::key(&extensions).map(|key| key.key.name.clone());
    if !is_owner && own.is_none() {
        return Err(ApiError::owner_only("/v1/usage"));
    }
    let Query(UsageQuery { days }) = query.map_err(|error| ApiError::malformed(error.body_text()))?;
    if days.is_some_and(|days| !(1..=MAX_DAYS).contains(&days)) {
        return Err(ApiError::invalid("days", format!("days must be between 1 and {MAX_DAYS}")));
    }
    let since = days.map(|days| UtcDay::of(SystemTime::now()).minus(days - 1));
    let mut data = read(&state, since).await?;
    if !is_owner {
        data.retain(|used| used.key.as_deref() == own.as_ref().map(|own| own.as_str()));
        // Reasons can name engines and their addresses.
        data.iter_mut().for_each(|used| used.frequent_failure = None);
    }
    let report = UsageReport { object: "list", since, data, message: state.record.why_not() };
    Ok(([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))], Json(report)).into_response())
}

/// Reads the record in the blocking pool, a few reports at once.
async fn read(state: &ServerState, since: Option<UtcDay>) -> ApiResult<Vec<KeyUsage>> {
    let _slot = state.report_slots.acquire().await.map_err(|_| ApiError::record_unreadable())?;
    let record = state.record.clone();
    let usage = state.blocking.run(move || record.key_usage(since)).await;
    usage.map_err(|error| {
        tracing::warn!(
            error = &error as &(dyn std::error::Error + 'static),
            "the usage report failed. 'hob doctor' checks the database"
        );
        ApiError::of_store(&error, ApiError::record_unreadable())
    })
}
