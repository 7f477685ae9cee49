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

use self::circuit_breaker::Harm;
pub use self::circuit_breaker::Pace;
use self::failure_class::{Again, Asked, Verdict, verdict};
use self::host_choice::Loyalty;
use self::host_table::{Desk, Need, Place};
use self::tracked_stream::{Begun, Escorted};
use crate::wire::client::{PROBE_TIMEOUT, Resend};

#[derive(Debug, Clone, Copy)]
pub struct FleetOptions {
    pub resend: Resend,
    pub pace: Pace,
    /// How long a host may be silent before it is looked at. One that does not answer the look either, twice in a row,
    /// hangs, and whoever waits for it is sent elsewhere.
    pub look_after: Duration,
}

impl Default for FleetOptions {
    fn default() -> Self {
        FleetOptions { resend: Resend::Unanswered, pace: Pace::default(), look_after: Duration::from_secs(5) }
    }
}

/// Looks in vain after which a host counts as hung.
const LOOKS: u32 = 2;

/// A host answers neither a question nor a look.
struct Hung;

/// Several servers of one engine.
pub struct Fleet {
    key: String,
    /// All of theirs.
    address: String,
    lists_every_model: bool,
    desk: Arc<Desk>,
    options: FleetOptions,
    /// Sends requests that have no home round the hosts.
    turn: AtomicU64,
}

impl Fleet {
    /// One engine of several hosts. A single host is itself; `None` when there is none.
    pub fn of(mut hosts: Vec<Arc<dyn Engine>>, options: FleetOptions) -> Option<Arc<dyn Engine>> {
        match hosts.len() {
            0 | 1 => hosts.pop(),
            _ => {
                let addresses: Vec<&str> = hosts.iter().map(|host| host.address()).collect();
                let fleet = Fleet {
                    key: hosts[0].key().to_owned(),
                    address: addresses.join(", "),
                    lists_every_model: hosts[0].lists_every_model(),
                    desk: Arc::new(Desk::new(hosts, options.pace, Instant::now())),
                    options,
                    turn: AtomicU64::new(0),
                };
                Some(Arc::new(fleet))
            }
        }
    }

    /// Asks one host after the other until one answers, as far as asking again is allowed.
    async fn ask<'a, T>(
        &'a self,
        need: Need<'a>,
        asked: Asked,
        question: impl Fn(Arc<dyn Engine>) -> BoxFuture<'a, Result<T, EngineError>> + Send + 'a,
    ) -> Result<(T, Place), EngineError> {
        let mut tried = Vec::new();
        let mut was_lost = false;
        let mut failure = None;
        while let Some(mut place) = self.desk.take(need, &tried, Instant::now()) {
            tried.push(place.index());
            if !place.is_proven() {
                match hear(&mut place, need.model).await {
                    Ok(true) => {}
                    Ok(false) => continue,
                    Err(error) => {
                        failure = Some(telling(failure, error));
                        continue;
                    }
                }
            }
            let may_lose = self.options.resend == Resend::Unanswered && !was_lost;
            let answer = question(Arc::clone(place.host()));
            let answer = match may_lose {
                true => self.unless_hung(need, &tried, place.index(), answer).await,
                false => Ok(answer.await),
            };
            let (error, Verdict { harm, again }) = match answer {
                Ok(Ok(answer)) => {
                    place.heard();
                    return Ok((answer, place));
                }
                Ok(Err(error)) => {
                    let verdict = verdict(&error, asked);
                    (error, verdict)
                }
                Err(Hung) => (self.hangs(place.host()), Verdict { harm: Harm::Gone, again: Again::Once }),
            };
            place.failed(harm, Instant::now());
            if matches!(error, EngineError::ModelNotFound { .. }) {
                place.lacks(need.model);
            }
            match again {
                Again::Freely => {}
                Again::Once if may_lose => was_lost = true,
                Again::Once | Again::No => return Err(error),
            }
            tracing::info!(engine = %self.key, host = place.host().address(), %error, "asking another host");
            failure = Some(telling(failure, error));
        }
        Err(self.nobody(need.model, failure, &tried))
    }

    /// The answer, unless the host stops answering anything at all and somebody else could be asked.
    async fn unless_hung<T>(
        &self,
        need: Need<'_>,
        tried: &[usize],
        host: usize,
        answer: BoxFuture<'_, T>,
    ) -> Result<T, Hung> {
        let pause = self.options.look_after;
        let hung = async {
            let mut in_vain = 0;
            while in_vain < LOOKS || !self.desk.has_another(need, tried, Instant::now()) {
                tokio::time::sleep(pause).await;
                in_vain = if self.desk.is_well(host, pause).await { 0 } else { in_vain + 1 };
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
    fn nobody(&self, model: &str, failure: Option<EngineError>, tried: &[usize]) -> EngineError {
        match failure {
            Some(EngineError::Unreachable { reason, .. }) if tried.len() > 1 => EngineError::Unreachable {
                engine: self.key.clone(),
                address: tried
                    .iter()
                    .map(|index| self.desk.hosts()[*index].address())
                    .collect::<Vec<_>>()
                    .join(", "),
                reason,
            },
            Some(failure) => failure,
            None => EngineError::ModelNotFound {
                engine: self.key.clone(),
                model: model.to_owned(),
                available: self.desk.listed(),
            },
        }
    }

    /// A need without a home.
    fn anywhere<'a>(&self, model: &'a str) -> Need<'a> {
        Need { model, conversation: self.turn.fetch_add(1, Ordering::Relaxed), loyalty: Loyalty::None }
    }
}

fn at_home(request: &GenerateRequest) -> Need<'_> {
    Need { model: &request.model, conversation: affinity::conversation(request), loyalty: Loyalty::Home }
}

/// Hears a host that is not relied on yet, so that no question is put at risk by it. Whether it has the model.
async fn hear(place: &mut Place, model: &str) -> Result<bool, EngineError> {
    match list(place).await {
        Ok(models) => Ok(place.lists(&models, model)),
        Err(error) if keeps_its_list(&error) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Whether the host is well and only does not tell what it has, which is no reason not to ask it.
fn keeps_its_list(error: &EngineError) -> bool {
    verdict(error, Asked::List) == Verdict { harm: Harm::None, again: Again::No }
}

/// A host's models, within the time of a probe. Its breaker hears how that went.
async fn list(place: &mut Place) -> Result<Vec<ModelInfo>, EngineError> {
    let host = Arc::clone(place.host());
    let too_slow = || EngineError::Timeout { engine: host.key().to_owned(), after: PROBE_TIMEOUT };
    let listed = timeout(PROBE_TIMEOUT, host.list_models()).await.unwrap_or_else(|_| Err(too_slow()));
    match &listed {
        Ok(_) => place.heard(),
        Err(error) if keeps_its_list(error) => {
            place.heard();
            place.tells_nothing();
        }
        Err(error) => place.failed(verdict(error, Asked::List).harm, Instant::now()),
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
        error if verdict(error, Asked::Stream).again == Again::Once => 3,
        _ => 2,
    };
    match earlier {
        Some(earlier) if weight(&earlier) > weight(&later) => earlier,
        _ => later,
    }
}

#[async_trait]
impl Engine for Fleet {
    fn key(&self) -> &str {
        &self.key
    }

    fn address(&self) -> &str {
        &self.address
    }

    fn members(&self) -> &[Arc<dyn Engine>] {
        self.desk.hosts()
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        let ask = |host: Arc<dyn Engine>| -> BoxFuture<'_, _> {
            Box::pin(async move { host.generate(request).await })
        };
        let (generation, mut place) = self.ask(at_home(request), Asked::Whole, ask).await?;
        place.succeeded();
        Ok(generation)
    }

    /// Waits for the first piece, because until then another host may have to be asked.
    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        let ask = |host: Arc<dyn Engine>| -> BoxFuture<'_, _> {
            Box::pin(async move { Begun::with(host.as_ref(), request).await })
        };
        let (Begun { warnings, first, deltas }, place) =
            self.ask(at_home(request), Asked::Stream, ask).await?;
        Ok(GenerationStream { warnings, deltas: Box::pin(Escorted::new(first, deltas, place)) })
    }

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        let ask = |host: Arc<dyn Engine>| -> BoxFuture<'_, _> {
            Box::pin(async move { host.embed(request).await })
        };
        let (embeddings, mut place) = self.ask(self.anywhere(&request.model), Asked::Whole, ask).await?;
        place.succeeded();
        Ok(embeddings)
    }

    /// What the hosts have that answer, each model once.
    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        let places = self.desk.take_all(Instant::now());
        let tried: Vec<usize> = places.iter().map(Place::index).collect();
        let lists = join_all(places.into_iter().map(|mut place| async move {
            let listed = list(&mut place).await;
            if let Ok(models) = &listed {
                place.lists(models, "");
            }
            listed
        }))
        .await;
        let mut union: Vec<ModelInfo> = Vec::new();
        let (mut answered, mut failure) = (false, None);
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
                Err(error) => failure = Some(telling(failure, error)),
            }
        }
        if answered { Ok(union) } else { Err(self.nobody("", failure, &tried)) }
    }

    /// Whether any host answers.
    async fn health(&self) -> bool {
        let mut probes: FuturesUnordered<_> = self.desk.hosts().iter().map(|host| host.health()).collect();
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
        self.desk.hosts().iter().any(|host| host.means(asked, listed))
    }

    /// On every host, so that whichever is asked is ready. One that can is enough.
    async fn prepare(&self, model: &str) -> Result<(), EngineError> {
        let prepared = join_all(self.desk.hosts().iter().map(|host| host.prepare(model))).await;
        let mut failure = None;
        for outcome in prepared {
            match outcome {
                Ok(()) => return Ok(()),
                Err(error) => failure = Some(telling(failure, error)),
            }
        }
        failure.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
#[path = "multi_host_tests.rs"]
mod tests;
