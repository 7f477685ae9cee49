//! The audit log: `GET /v1/audit` for the owner, and notes of changes that callers make over HTTP.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::Extensions;
use hob_keys::{AuditActor, AuditChain, AuditEntry, AuditFault, AuditService, KeyError};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::{ApiError, ApiResult};
use crate::page_limit::page_limit;
use crate::request_context::RequestContext;
use crate::state::{ServerState, SharedState};

/// The number of entries without `limit`, and the most.
const DEFAULT_ENTRIES: usize = 50;
const MAX_ENTRIES: usize = 1_000;

#[derive(Deserialize)]
pub(crate) struct AuditQuery {
    /// The number of the entry before the first one; without it, the newest entries.
    after: Option<i64>,
    limit: Option<usize>,
    /// Whether to check the whole log.
    #[serde(default)]
    verify: bool,
}

/// Entries in the order in which they were written.
#[derive(Serialize)]
pub(crate) struct AuditPage {
    object: &'static str,
    data: Vec<AuditEntry>,
    /// Whether there are entries after the last one.
    has_more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    verification: Option<AuditVerification>,
}

/// Whether the chain of hashes is unbroken.
#[derive(Serialize)]
struct AuditVerification {
    unbroken: bool,
    /// Entries up to the end, or before the fault.
    entries: i64,
    /// Of the last entry that is in order; empty if there is none.
    hash: String,
    /// What is wrong, and where.
    fault: Option<String>,
}

impl AuditVerification {
    fn new(chain: AuditChain, fault: Option<AuditFault>) -> Self {
        let AuditChain { last, hash } = chain;
        let fault = fault.map(|fault| match fault {
            AuditFault::Gap { number } => format!("a change is missing before number {number}"),
            AuditFault::Unlinked { number } => {
                format!(
                    "number {number} does not follow the change before it: a change was removed or inserted"
                )
            }
            AuditFault::Changed { number } => format!("number {number} was altered"),
        });
        AuditVerification { unbroken: fault.is_none(), entries: last, hash, fault }
    }
}

pub(crate) async fn list(
    State(state): SharedState,
    query: Result<Query<AuditQuery>, QueryRejection>,
    extensions: Extensions,
) -> ApiResult<Json<AuditPage>> {
    RequestContext::check_owner(&extensions, "/v1/audit")?;
    let audit = state.keys.as_ref().ok_or_else(ApiError::no_keys)?.audit();
    let Query(query) = query.map_err(|error| ApiError::malformed(error.body_text()))?;
    let limit = page_limit(query.limit, DEFAULT_ENTRIES, MAX_ENTRIES)?;
    // A check reads the whole log, so only a few run at once.
    let _slot = match query.verify {
        true => Some(state.report_slots.acquire().await.map_err(|_| ApiError::shutting_down())?),
        false => None,
    };
    Ok(Json(state.blocking.run(move || read(&audit, &query, limit)).await?))
}

/// Blocks.
fn read(audit: &AuditService, query: &AuditQuery, limit: usize) -> Result<AuditPage, KeyError> {
    let (mut data, has_more) = match query.after {
        Some(number) => {
            let entries = audit.after(number, limit + 1)?;
            let has_more = entries.len() > limit;
            (entries, has_more)
        }
        None => {
            let mut newest = audit.latest(limit)?;
            newest.reverse();
            (newest, false)
        }
    };
    data.truncate(limit);
    let verification = query.verify.then(|| audit.checked()).transpose()?;
    let verification = verification.map(|(chain, fault)| AuditVerification::new(chain, fault));
    Ok(AuditPage { object: "list", data, has_more, verification })
}

/// Notes a change that was made.
pub(crate) async fn note(state: &ServerState, actor: AuditActor, action: &'static str, subject: String) {
    let Some(keys) = &state.keys else { return };
    let audit = keys.audit();
    // Waits until it is written, so that an answer means that the change is in the log.
    let work = move || audit.note(actor, action, &subject, &json!({}));
    if hob_db::spawn_blocking(work).await.is_err() {
        tracing::error!(
            action,
            "a change was made, but is not in the audit log. Report this bug with the panic message on \
             standard error"
        );
    }
}
