//! Chooses the engine at startup. Knows engines only by the trait `Engine`: their key, their address, and whether
//! they answer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesOrdered;
use hob_core::engine::CLOUD;
use hob_core::{Engine, EngineError, ModelReason, UnreachableReason};
use hob_net::{BindAddress, is_own_address};
use thiserror::Error;

use crate::wire::client::PROBE_TIMEOUT;

/// An engine that failed the health check gets this much time to say why.
const REASON_TIMEOUT: Duration = Duration::from_secs(1);

/// The rules of a selection.
#[derive(Debug, Clone, Default)]
pub struct SelectionRules {
    /// The engine that the user named on the command line. No other engine is used in its place.
    pub key: Option<String>,
    /// The configured default. If it does not answer, another engine may be used.
    pub default: Option<String>,
    /// The address on which this process listens.
    pub own_address: Option<BindAddress>,
    /// Whether the cloud may be used in place of a local engine that does not answer.
    pub allow_cloud_fallback: bool,
}

/// The selected engine.
pub struct SelectedEngine {
    pub engine: Arc<dyn Engine>,
    pub because: SelectionReason,
}

impl fmt::Debug for SelectedEngine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SelectedEngine")
            .field("engine", &self.engine.key())
            .field("because", &self.because)
            .finish()
    }
}

/// Why an engine was selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelectionReason {
    /// The user named it.
    Given,
    /// It is the default.
    Default,
    /// It answers, and the default does not. `instead_of` is the default, if there is one.
    Fallback { instead_of: Option<String> },
}

impl SelectionReason {
    /// What answers of the engine `key` report, if it is the cloud and was selected only because no other engine answered.
    pub fn cloud_reason(&self, key: &str) -> Option<ModelReason> {
        let SelectionReason::Fallback { instead_of } = self else { return None };
        let missing = match instead_of {
            Some(key) => format!("{key} did not answer"),
            None => "no other engine answered".to_owned(),
        };
        let reason = format!("the cloud answers: {missing} when Hob was started");
        (key == CLOUD).then(|| ModelReason::new(reason))
    }
}

/// An engine that was checked and not selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedEngine {
    pub key: String,
    /// Empty for an engine without one.
    pub address: String,
    pub why_not: RejectionReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectionReason {
    /// It did not answer within two seconds.
    Unhealthy,
    /// Its address is Hob's own.
    OwnAddress,
    /// It is the cloud, which is not used in place of others unless allowed.
    CloudNotAllowed,
}

impl fmt::Display for RejectedEngine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.key)?;
        if !self.address.is_empty() {
            write!(formatter, " at {}", self.address)?;
        }
        formatter.write_str(match self.why_not {
            RejectionReason::Unhealthy => " does not answer",
            RejectionReason::OwnAddress => " is Hob's own address",
            RejectionReason::CloudNotAllowed => " is not used in place of a local engine",
        })
    }
}

/// Why no engine was selected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoEngine {
    #[error("unknown engine '{key}'; known engines: {}", known.join(", "))]
    UnknownKey { key: String, known: Vec<String> },

    /// The engine that the user named cannot be used.
    #[error("{0}")]
    Given(RejectedEngine),

    #[error("no engine answers: {}", listed(tried))]
    NoneHealthy { tried: Vec<RejectedEngine> },
}

impl NoEngine {
    /// The engines that were checked, in the order in which they would have been selected.
    pub fn tried(&self) -> &[RejectedEngine] {
        match self {
            NoEngine::UnknownKey { .. } => &[],
            NoEngine::Given(rejected) => std::slice::from_ref(rejected),
            NoEngine::NoneHealthy { tried } => tried,
        }
    }
}

fn listed(tried: &[RejectedEngine]) -> String {
    match tried {
        [] => "none is configured".to_owned(),
        tried => tried.iter().map(RejectedEngine::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// The outcome of a selection.
pub type Selection = Result<SelectedEngine, NoEngine>;

/// Selects an engine: the named one and no other; else the default; else the first of the rest that is healthy. All
/// are probed concurrently.
pub async fn select(engines: &[Arc<dyn Engine>], wanted: &SelectionRules) -> Selection {
    if let Some(key) = &wanted.key {
        return select_given(engines, key, wanted).await;
    }
    let default = wanted.default.as_deref();
    let mut checks: FuturesOrdered<_> = default_first(engines, default)
        .into_iter()
        .map(|engine| async {
            let why_not = check(&engine, wanted).await;
            (engine, why_not)
        })
        .collect();
    let mut tried = Vec::with_capacity(engines.len());
    while let Some((engine, why_not)) = checks.next().await {
        match why_not {
            None => {
                let because = if default == Some(engine.key()) {
                    SelectionReason::Default
                } else {
                    SelectionReason::Fallback { instead_of: wanted.default.clone() }
                };
                return Ok(SelectedEngine { engine, because });
            }
            Some(why_not) => tried.push(rejected(&engine, why_not)),
        }
    }
    Err(NoEngine::NoneHealthy { tried })
}

async fn select_given(engines: &[Arc<dyn Engine>], key: &str, wanted: &SelectionRules) -> Selection {
    let Some(engine) = engines.iter().find(|engine| engine.key() == key) else {
        return Err(NoEngine::UnknownKey {
            key: key.to_owned(),
            known: engines.iter().map(|engine| engine.key().to_owned()).collect(),
        });
    };
    match check(engine, wanted).await {
        None => Ok(SelectedEngine { engine: Arc::clone(engine), because: SelectionReason::Given }),
        Some(why_not) => Err(NoEngine::Given(rejected(engine, why_not))),
    }
}

/// The engines that answer, the default first. This list is for display, so it includes the cloud.
pub async fn healthy(engines: &[Arc<dyn Engine>], wanted: &SelectionRules) -> Vec<Arc<dyn Engine>> {
    let candidates: Vec<_> = default_first(engines, wanted.default.as_deref())
        .into_iter()
        .filter(|engine| !is_ourselves(engine, wanted))
        .collect();
    let answered = probe_all(&candidates).await;
    candidates.into_iter().zip(answered).filter_map(|(engine, answers)| answers.then_some(engine)).collect()
}

/// Whether each engine answers. All are probed concurrently.
pub async fn probe_all(engines: &[Arc<dyn Engine>]) -> Vec<bool> {
    join_all(engines.iter().map(probe)).await
}

/// Enforces the time limit of the contract of `Engine::health`.
async fn probe(engine: &Arc<dyn Engine>) -> bool {
    tokio::time::timeout(PROBE_TIMEOUT, engine.health()).await.unwrap_or(false)
}

/// Why an engine that failed its health check cannot be used, if its server runs: it says so when it lists its models.
pub async fn failure_of(engine: &dyn Engine) -> Option<EngineError> {
    let listed = tokio::time::timeout(REASON_TIMEOUT, engine.list_models()).await.ok()?;
    listed.err().filter(|error| match error {
        EngineError::Refused { .. } | EngineError::Malformed { .. } => true,
        EngineError::Unreachable { .. } => has_bad_certificate(error),
        _ => false,
    })
}

/// Whether an engine was not asked because of its certificate.
pub fn has_bad_certificate(error: &EngineError) -> bool {
    matches!(error, EngineError::Unreachable { reason: UnreachableReason::BadCertificate(_), .. })
}

/// Why this engine cannot be selected; `None` when it can.
async fn check(engine: &Arc<dyn Engine>, wanted: &SelectionRules) -> Option<RejectionReason> {
    let asked_for =
        [&wanted.key, &wanted.default].into_iter().any(|key| key.as_deref() == Some(engine.key()));
    if is_ourselves(engine, wanted) {
        Some(RejectionReason::OwnAddress)
    } else if engine.key() == CLOUD && !asked_for && !wanted.allow_cloud_fallback {
        Some(RejectionReason::CloudNotAllowed)
    } else if probe(engine).await {
        None
    } else {
        Some(RejectionReason::Unhealthy)
    }
}

fn rejected(engine: &Arc<dyn Engine>, why_not: RejectionReason) -> RejectedEngine {
    RejectedEngine { key: engine.key().to_owned(), address: engine.address().to_owned(), why_not }
}

fn default_first(engines: &[Arc<dyn Engine>], default: Option<&str>) -> Vec<Arc<dyn Engine>> {
    let mut ordered = engines.to_vec();
    ordered.sort_by_key(|engine| Some(engine.key()) != default);
    ordered
}

fn is_ourselves(engine: &Arc<dyn Engine>, wanted: &SelectionRules) -> bool {
    wanted.own_address.as_ref().is_some_and(|bind| points_to_self(engine.as_ref(), bind))
}

/// The engines of `pool` besides the selected one, in its order. One at the address `own`, on which this process listens, is skipped.
pub fn others_of_pool(
    chosen: &dyn Engine,
    engines: &[Arc<dyn Engine>],
    pool: &[&str],
    own: &BindAddress,
) -> Vec<Arc<dyn Engine>> {
    let mut others = Vec::new();
    for key in pool {
        let Some(engine) = engines.iter().find(|engine| engine.key() == *key) else {
            tracing::warn!(
                engine = key,
                "an engine of the pool is not in this build. Remove it from [engine] pool"
            );
            continue;
        };
        if points_to_self(engine.as_ref(), own) {
            tracing::warn!(
                engine = key,
                "an engine of the pool is skipped: its address is Hob's own. Change its address, or [server] \
                 port"
            );
        } else if engine.key() != chosen.key() {
            others.push(Arc::clone(engine));
        }
    }
    others
}

/// Whether requests to this engine reach the Hob server that listens on `bind`.
pub fn points_to_self(engine: &dyn Engine, bind: &BindAddress) -> bool {
    match engine.members().as_slice() {
        [] => is_own_address(engine.address(), bind),
        members => members.iter().all(|member| points_to_self(member.as_ref(), bind)),
    }
}
