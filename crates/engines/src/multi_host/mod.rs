//! Several servers of one engine, as one engine: who is asked, who is left out, and what is asked again elsewhere.
//!
//! Knows hosts only by the contract of an engine. The rules are pure and in files of their own: which host suits
//! (`host_choice`, `affinity`), which is left alone for a while (`circuit_breaker`), and what a failure means (`failure_class`).
//!
//! A question goes to another host only while nothing of an answer has reached the caller, and only if the first did nothing
//! with it, or what it did is lost and cost nothing but time.

mod affinity;
mod circuit_breaker;
mod failure_class;
mod host_choice;
mod host_table;
mod tracked_stream;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{BoxFuture, join_all};
use futures::stream::{FuturesUnordered, StreamExt};
use hob_core::{
    EmbedRequest, Embeddings, Engine, EngineError, GenerateRequest, Generation, GenerationStream, ModelInfo,
};
use tokio::time::{Instant, timeout};

pub use self::circuit_breaker::BreakerOptions;
use self::circuit_breaker::Failure;
use self::failure_class::{FailureClass, RequestKind, RetryRule, classify};
use self::host_choice::CacheAffinity;
use self::host_table::{HostRequest, HostSlot, HostTable};
use self::tracked_stream::{StartedStream, TrackedStream};
use crate::wire::client::PROBE_TIMEOUT;
use crate::wire::remote::Resend;

#[derive(Debug, Clone, Copy)]
pub struct MultiHostOptions {
    pub resend: Resend,
    pub breaker: BreakerOptions,
    /// How long a host may be silent before it is looked at. One that does not answer the look either, twice in a row,
    /// hangs, and whoever waits for it is sent elsewhere.
    pub health_check_after: Duration,
}

impl Default for MultiHostOptions {
    fn default() -> Self {
        MultiHostOptions {
            resend: Resend::Unanswered,
            breaker: BreakerOptions::default(),
            health_check_after: Duration::from_secs(5),
        }
    }
}

/// Looks in vain after which a host counts as hung.
const MAX_FAILED_CHECKS: u32 = 2;

/// A host answers neither a question nor a look.
struct Hung;

/// Several servers of one engine.
pub struct MultiHost {
    key: String,
    /// All of theirs.
    address: String,
    lists_every_model: bool,
    table: Arc<HostTable>,
    options: MultiHostOptions,
    /// Sends requests that have no home round the hosts.
    turn: AtomicU64,
}

impl MultiHost {
    /// One engine of several hosts. A single host is itself; `None` when there is none.
    pub fn of(mut hosts: Vec<Arc<dyn Engine>>, options: MultiHostOptions) -> Option<Arc<dyn Engine>> {
        match hosts.len() {
            0 | 1 => hosts.pop(),
            _ => {
                let addresses: Vec<&str> = hosts.iter().map(|host| host.address()).collect();
                let multi_host = MultiHost {
                    key: hosts[0].key().to_owned(),
                    address: addresses.join(", "),
                    lists_every_model: hosts[0].lists_every_model(),
                    table: Arc::new(HostTable::new(hosts, options.breaker, Instant::now())),
                    options,
                    turn: AtomicU64::new(0),
                };
                Some(Arc::new(multi_host))
            }
        }
    }

    /// Asks one host after the other until one answers, as far as asking again is allowed.
    async fn ask<'a, T>(
        &'a self,
        need: HostRequest<'a>,
        asked: RequestKind,
        question: impl Fn(Arc<dyn Engine>) -> BoxFuture<'a, Result<T, EngineError>> + Send + 'a,
    ) -> Result<(T, HostSlot), EngineError> {
        let mut tried = Vec::new();
        let mut was_lost = false;
        let mut last_error = None;
        while let Some(mut slot) = self.table.take(need, &tried, Instant::now()) {
            tried.push(slot.index());
            if !slot.is_proven() {
                match hear(&mut slot, need.model).await {
                    Ok(true) => {}
                    Ok(false) => continue,
                    Err(error) => {
                        last_error = Some(telling(last_error, error));
                        continue;
                    }
                }
            }
            let may_lose = self.options.resend == Resend::Unanswered && !was_lost;
            let answer = question(Arc::clone(slot.host()));
            let answer = match may_lose {
                true => self.unless_hung(need, &tried, slot.index(), answer).await,
                false => Ok(answer.await),
            };
            let (error, FailureClass { failure, retry }) = match answer {
                Ok(Ok(answer)) => {
                    slot.heard();
                    return Ok((answer, slot));
                }
                Ok(Err(error)) => {
                    let class = classify(&error, asked);
                    (error, class)
                }
                Err(Hung) => {
                    (self.hangs(slot.host()), FailureClass { failure: Failure::Hard, retry: RetryRule::Once })
                }
            };
            slot.failed(failure, Instant::now());
            if matches!(error, EngineError::ModelNotFound { .. }) {
                slot.lacks(need.model);
            }
            match retry {
                RetryRule::Always => {}
                RetryRule::Once if may_lose => was_lost = true,
                RetryRule::Once | RetryRule::Never => return Err(error),
            }
            tracing::info!(engine = %self.key, host = slot.host().address(), %error, "asking another host");
            last_error = Some(telling(last_error, error));
        }
        Err(self.nobody(need.model, last_error, &tried))
    }

    /// The answer, unless the host stops answering anything at all and somebody else could be asked.
    async fn unless_hung<T>(
        &self,
        need: HostRequest<'_>,
        tried: &[usize],
        host: usize,
        answer: BoxFuture<'_, T>,
    ) -> Result<T, Hung> {
        let pause = self.options.health_check_after;
        let hung = async {
            let mut in_vain = 0;
            while in_vain < MAX_FAILED_CHECKS || !self.table.has_another(need, tried, Instant::now()) {
                tokio::time::sleep(pause).await;
                in_vain = if self.table.is_healthy(host, pause).await { 0 } else { in_vain + 1 };
            }
        };
        tokio::select! {
            biased;
            answer = answer => Ok(answer),
            // Dropping the question closes its connection, so a host that wakes up finds nobody to answer.
            () = hung => Err(Hung),
        }
    }

    fn hangs(&self, host: &Arc<dyn Engine>) -> EngineError {
        EngineError::Interrupted {
            engine: self.key.clone(),
            reason: format!("{} hangs, and does not even tell its health", host.address()),
        }
    }

    /// Why none of the hosts answered.
    fn nobody(&self, model: &str, last_error: Option<EngineError>, tried: &[usize]) -> EngineError {
        match last_error {
            Some(EngineError::Unreachable { reason, .. }) if tried.len() > 1 => EngineError::Unreachable {
                engine: self.key.clone(),
                address: tried
                    .iter()
                    .map(|index| self.table.hosts()[*index].address())
                    .collect::<Vec<_>>()
                    .join(", "),
                reason,
            },
            Some(last_error) => last_error,
            None => EngineError::ModelNotFound {
                engine: self.key.clone(),
                model: model.to_owned(),
                available: self.table.listed(),
            },
        }
    }

    /// A need without a home.
    fn anywhere<'a>(&self, model: &'a str) -> HostRequest<'a> {
        HostRequest {
            model,
            conversation: self.turn.fetch_add(1, Ordering::Relaxed),
            loyalty: CacheAffinity::None,
        }
    }
}

fn at_home(request: &GenerateRequest) -> HostRequest<'_> {
    HostRequest {
        model: &request.model,
        conversation: affinity::conversation(request),
        loyalty: CacheAffinity::Home,
    }
}

/// Hears a host that is not relied on yet, so that no question is put at risk by it. Whether it has the model.
async fn hear(slot: &mut HostSlot, model: &str) -> Result<bool, EngineError> {
    match list(slot).await {
        Ok(models) => Ok(slot.lists(&models, model)),
        Err(error) if keeps_its_list(&error) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Whether the host is well and only does not tell what it has, which is no reason not to ask it.
fn keeps_its_list(error: &EngineError) -> bool {
    classify(error, RequestKind::List) == FailureClass { failure: Failure::None, retry: RetryRule::Never }
}

/// A host's models, within the time of a probe. Its breaker hears how that went.
async fn list(slot: &mut HostSlot) -> Result<Vec<ModelInfo>, EngineError> {
    let host = Arc::clone(slot.host());
    let too_slow = || EngineError::Timeout { engine: host.key().to_owned(), after: PROBE_TIMEOUT };
    let listed = timeout(PROBE_TIMEOUT, host.list_models()).await.unwrap_or_else(|_| Err(too_slow()));
    match &listed {
        Ok(_) => slot.heard(),
        Err(error) if keeps_its_list(error) => {
            slot.heard();
            slot.tells_nothing();
        }
        Err(error) => slot.failed(classify(error, RequestKind::List).failure, Instant::now()),
    }
    listed
}

/// Of two failures the one that says more, of equals the later: a host that is away is less than one that has something to say,
/// and nothing hides that a question was lost, because then it was asked.
fn telling(earlier: Option<EngineError>, later: EngineError) -> EngineError {
    let weight = |error: &EngineError| match error {
        EngineError::Unreachable { .. } => 0,
        EngineError::ModelNotFound { .. } => 1,
        // Whatever was asked, this much is the same.
        error if classify(error, RequestKind::Stream).retry == RetryRule::Once => 3,
        _ => 2,
    };
    match earlier {
        Some(earlier) if weight(&earlier) > weight(&later) => earlier,
        _ => later,
    }
}

#[async_trait]
impl Engine for MultiHost {
    fn key(&self) -> &str {
        &self.key
    }

    fn address(&self) -> &str {
        &self.address
    }

    fn members(&self) -> &[Arc<dyn Engine>] {
        self.table.hosts()
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        let ask = |host: Arc<dyn Engine>| -> BoxFuture<'_, _> {
            Box::pin(async move { host.generate(request).await })
        };
        let (generation, mut slot) = self.ask(at_home(request), RequestKind::Whole, ask).await?;
        slot.succeeded();
        Ok(generation)
    }

    /// Waits for the first piece, because until then another host may have to be asked.
    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        let ask = |host: Arc<dyn Engine>| -> BoxFuture<'_, _> {
            Box::pin(async move { StartedStream::with(host.as_ref(), request).await })
        };
        let (StartedStream { warnings, first, deltas }, slot) =
            self.ask(at_home(request), RequestKind::Stream, ask).await?;
        Ok(GenerationStream { warnings, deltas: Box::pin(TrackedStream::new(first, deltas, slot)) })
    }

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        let ask = |host: Arc<dyn Engine>| -> BoxFuture<'_, _> {
            Box::pin(async move { host.embed(request).await })
        };
        let (embeddings, mut slot) = self.ask(self.anywhere(&request.model), RequestKind::Whole, ask).await?;
        slot.succeeded();
        Ok(embeddings)
    }

    /// What the hosts have that answer, each model once.
    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        let slots = self.table.take_all(Instant::now());
        let tried: Vec<usize> = slots.iter().map(HostSlot::index).collect();
        let lists = join_all(slots.into_iter().map(|mut slot| async move {
            let listed = list(&mut slot).await;
            if let Ok(models) = &listed {
                slot.lists(models, "");
            }
            listed
        }))
        .await;
        let mut union: Vec<ModelInfo> = Vec::new();
        let (mut answered, mut last_error) = (false, None);
        for listed in lists {
            match listed {
                Ok(models) => {
                    answered = true;
                    for model in models {
                        if !union.iter().any(|known| known.id == model.id) {
                            union.push(model);
                        }
                    }
                }
                Err(error) => last_error = Some(telling(last_error, error)),
            }
        }
        if answered { Ok(union) } else { Err(self.nobody("", last_error, &tried)) }
    }

    /// Whether any host answers.
    async fn health(&self) -> bool {
        let mut probes: FuturesUnordered<_> = self.table.hosts().iter().map(|host| host.health()).collect();
        while let Some(healthy) = probes.next().await {
            if healthy {
                return true;
            }
        }
        false
    }

    fn lists_every_model(&self) -> bool {
        self.lists_every_model
    }

    fn means(&self, asked: &str, listed: &str) -> bool {
        self.table.hosts().iter().any(|host| host.means(asked, listed))
    }

    /// On every host, so that whichever is asked is ready. One that can is enough.
    async fn prepare(&self, model: &str) -> Result<(), EngineError> {
        let prepared = join_all(self.table.hosts().iter().map(|host| host.prepare(model))).await;
        let mut last_error = None;
        for outcome in prepared {
            match outcome {
                Ok(()) => return Ok(()),
                Err(error) => last_error = Some(telling(last_error, error)),
            }
        }
        last_error.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
#[path = "multi_host_tests.rs"]
mod tests;
