//! `GET /v1/savings`: what this server answered, what that would have cost in the cloud, and its current state.

use std::mem;
use std::time::SystemTime;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{Extensions, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hob_core::Zone;
use hob_telemetry::Savings;
use hob_telemetry::savings::{MeasuredEnergy, RecentCall};
use serde::{Deserialize, Serialize};

use crate::error::{ApiError, ApiResult};
use crate::limits::concurrency_limit::InFlightCounts;
use crate::request_context::RequestContext;
use crate::state::{ServerState, SharedState};

/// The query parameters.
#[derive(Deserialize)]
pub(crate) struct SavingsQuery {
    /// The time zone of the days, such as `Europe/Berlin`.
    timezone: Option<String>,
}

/// The body.
#[derive(Serialize)]
struct SavingsReport {
    #[serde(flatten)]
    savings: Savings,
    /// The last calls, for the owner only.
    #[serde(skip_serializing_if = "Option::is_none")]
    recent: Option<Vec<RecentCall>>,
    /// Requests that run or wait now.
    live: InFlightCounts,
    engine: EngineState,
    /// `null` where energy is not measured.
    energy: Option<EnergyUse>,
    /// Why all figures are zero, if nothing is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Serialize)]
struct EngineState {
    key: String,
    /// `null` before the first health check has ended.
    healthy: Option<bool>,
}

/// The measured energy of all calls, including benchmarks and failures.
#[derive(Serialize)]
struct EnergyUse {
    joules: f64,
    /// Calls that were measured.
    calls: u64,
    /// Always true: without a measurement there is no value.
    measured: bool,
    /// The meter; `null` if it was present earlier but not now.
    meter: Option<String>,
}

impl EnergyUse {
    fn new(used: Option<MeasuredEnergy>, meter: Option<&str>) -> Option<Self> {
        let (joules, calls) = used.map_or((0.0, 0), |used| (used.energy.joules(), used.calls));
        let known = calls > 0 || meter.is_some();
        known.then(|| EnergyUse { joules, calls, measured: true, meter: meter.map(str::to_owned) })
    }
}

pub(crate) async fn show(
    State(state): SharedState,
    query: Result<Query<SavingsQuery>, QueryRejection>,
    extensions: Extensions,
) -> ApiResult<Response> {
    let Query(SavingsQuery { timezone }) = query.map_err(|error| ApiError::malformed(error.body_text()))?;
    let zone = match timezone {
        Some(name) => Zone::named(&name).ok_or_else(|| no_such_zone(&name))?,
        None => Zone::UTC,
    };
    let mut savings = compute_savings(&state, zone).await?;
    let recent = mem::take(&mut savings.recent);
    let report = SavingsReport {
        recent: RequestContext::is_owner(&extensions).then_some(recent),
        energy: EnergyUse::new(savings.energy, state.system.meters().names()),
        savings,
        live: state.concurrency_limit.counts(),
        engine: EngineState {
            key: state.system.engine().key().to_owned(),
            healthy: state.health.load_full().is_healthy().await,
        },
        message: state.record.why_not(),
    };
    Ok(([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))], Json(report)).into_response())
}

/// Reads the record in the blocking pool, a few reports at once.
async fn compute_savings(state: &ServerState, zone: Zone) -> ApiResult<Savings> {
    let _slot = state.report_slots.acquire().await.map_err(|_| ApiError::record_unreadable())?;
    let record = state.record.clone();
    let report = state.blocking.run(move || record.savings(SystemTime::now(), &zone)).await;
    report.map_err(|error| {
        tracing::warn!(
            error = &error as &(dyn std::error::Error + 'static),
            "the savings report failed. 'hob doctor' checks the database"
        );
        ApiError::of_store(&error, ApiError::record_unreadable())
    })
}

fn no_such_zone(name: &str) -> ApiError {
    let shown: String = name.chars().take(64).collect();
    ApiError::invalid(
        "timezone",
        format!("time zone '{shown}' does not exist. Send one such as Europe/Berlin"),
    )
}
