//! Several servers of one engine, used as one engine.
//!
//! Knows hosts only by the trait `Engine`. `failover` asks one host after another. The rules are pure and have their own
//! files: which host gets a request (`host_choice`, `affinity`), which host is skipped for a while (`circuit_breaker`), and
//! what a failure means (`failure_class`). `discovery` keeps the list of hosts up to date where it comes from DNS, and `served` makes an
//! engine of the servers that the owner names.
//!
//! A request is sent to another host only while no part of an answer has reached the caller, and only if the first
//! host did not process it, or its work is lost and a second request costs nothing but time.

mod affinity;
mod circuit_breaker;
mod discovery;
mod dns_lookup;
mod failover;
mod failure_class;
mod host_check;
mod host_choice;
mod host_table;
mod name_servers;
pub(crate) mod served;
mod tracked_stream;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{BoxFuture, join_all};
use hob_core::{
    CompletionRequest, DetokenizeRequest, EmbedRequest, Embeddings, Engine, EngineError, GenerateRequest,
    Generation, GenerationStream, MediaAnswer, MediaRequest, ModelInfo, RerankRequest, Reranking,
    RunningModel, TokenizeRequest, Tokenized,
};
use tokio::time::Instant;

pub use self::circuit_breaker::BreakerOptions;
use self::discovery::Discovery;
pub use self::discovery::{DiscoveryOptions, FoundHost, MakeHost, RefreshTimes};
use self::failure_class::RequestKind;
use self::host_check::{answers, list, more_informative};
use self::host_choice::CacheAffinity;
use self::host_table::{HostRequest, HostTable, TableHost};
use self::tracked_stream::{StartedStream, TrackedStream};
use crate::health_cache::is_any_healthy;
use crate::wire::resend::Resend;

#[derive(Debug, Clone, Copy)]
pub struct MultiHostOptions {
    pub resend: Resend,
    pub breaker: BreakerOptions,
    /// How long a host may send nothing before its health is checked. After two failed checks in a row the host
    /// counts as hung, and the request is sent to another host.
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

/// Several servers of one engine.
pub struct MultiHost {
    key: String,
    /// The addresses of all hosts, or the name in DNS that lists them.
    address: String,
    table: Arc<HostTable>,
    /// Finds the hosts, if they are not fixed.
    discovery: Option<Discovery>,
    options: MultiHostOptions,
    /// Distributes requests without affinity over the hosts.
    next: AtomicU64,
}

impl MultiHost {
    /// One engine over several hosts. A single host is returned as it is; `None` without hosts.
    pub fn of(mut hosts: Vec<Arc<dyn Engine>>, options: MultiHostOptions) -> Option<Arc<dyn Engine>> {
        match hosts.len() {
            0 | 1 => hosts.pop(),
            _ => {
                let addresses: Vec<&str> = hosts.iter().map(|host| host.address()).collect();
                let multi_host = MultiHost {
                    key: hosts[0].key().to_owned(),
                    address: addresses.join(", "),
                    table: Arc::new(HostTable::new(hosts, options.breaker, Instant::now())),
                    discovery: None,
                    options,
                    next: AtomicU64::new(0),
                };
                Some(Arc::new(multi_host))
            }
        }
    }

    /// One engine over the hosts that DNS lists, looked up from now on until it is dropped. Must be called in a runtime.
    pub fn discovered(discovery: DiscoveryOptions, options: MultiHostOptions) -> Arc<dyn Engine> {
        let table = Arc::new(HostTable::new(discovery.fixed.clone(), options.breaker, Instant::now()));
        Arc::new(MultiHost {
            key: discovery.engine.clone(),
            address: discovery.dns.to_string(),
            discovery: Some(Discovery::start(discovery, Arc::clone(&table))),
            table,
            options,
            next: AtomicU64::new(0),
        })
    }

    /// The hosts, once they have been looked up. An error says why there are none.
    async fn hosts(&self) -> Result<Vec<Arc<dyn Engine>>, EngineError> {
        self.looked_up().await;
        match self.table.hosts() {
            hosts if hosts.is_empty() => Err(self.no_hosts_error()),
            hosts => Ok(hosts),
        }
    }

    /// Waits for the first lookup.
    async fn looked_up(&self) {
        if let Some(discovery) = &self.discovery {
            discovery.looked_up().await;
        }
    }

    fn no_hosts_error(&self) -> EngineError {
        EngineError::Unreachable {
            engine: self.key.clone(),
            address: self.address.clone(),
            reason: self.discovery.as_ref().map(Discovery::why_empty).unwrap_or_default().into(),
        }
    }

    /// The error when no host answered.
    fn no_answer_error(
        &self,
        model: &str,
        last_error: Option<EngineError>,
        tried: &[Arc<TableHost>],
    ) -> EngineError {
        match last_error {
            Some(EngineError::Unreachable { reason, .. }) if tried.len() > 1 => EngineError::Unreachable {
                engine: self.key.clone(),
                address: tried.iter().map(|host| host.engine().address()).collect::<Vec<_>>().join(", "),
                reason,
            },
            Some(last_error) => last_error,
            None if tried.is_empty() && self.table.hosts().is_empty() => self.no_hosts_error(),
            None => EngineError::ModelNotFound {
                engine: self.key.clone(),
                model: model.to_owned(),
                available: self.table.listed(),
            },
        }
    }

    /// The whole answer of any host that has the model.
    async fn anywhere<'a, T>(
        &'a self,
        model: &'a str,
        ask: impl Fn(Arc<dyn Engine>) -> BoxFuture<'a, Result<T, EngineError>> + Send + 'a,
    ) -> Result<T, EngineError> {
        let (answer, mut slot) = self.ask(self.without_affinity(model), RequestKind::Whole, ask).await?;
        slot.succeeded();
        Ok(answer)
    }

    /// A request without affinity.
    fn without_affinity<'a>(&self, model: &'a str) -> HostRequest<'a> {
        HostRequest {
            model,
            conversation: self.next.fetch_add(1, Ordering::Relaxed),
            loyalty: CacheAffinity::None,
        }
    }
}

fn with_affinity(request: &GenerateRequest) -> HostRequest<'_> {
    HostRequest {
        model: &request.model,
        conversation: affinity::conversation(request),
        loyalty: CacheAffinity::Home,
    }
}

/// Editors send the same file again and again, so its beginning chooses the host.
fn completion_affinity(request: &CompletionRequest) -> HostRequest<'_> {
    HostRequest {
        model: &request.model,
        conversation: affinity::prompt(request),
        loyalty: CacheAffinity::Home,
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

    fn members(&self) -> Vec<Arc<dyn Engine>> {
        self.table.hosts()
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        let ask = |host: Arc<dyn Engine>| -> BoxFuture<'_, _> {
            Box::pin(async move { host.generate(request).await })
        };
        let (generation, mut slot) = self.ask(with_affinity(request), RequestKind::Whole, ask).await?;
        slot.succeeded();
        Ok(generation)
    }

    /// Waits for the first delta, because until then the request can be sent to another host.
    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        let ask = |host: Arc<dyn Engine>| -> BoxFuture<'_, _> {
            Box::pin(async move { StartedStream::of(host.as_ref(), host.stream(request).await?).await })
        };
        let (StartedStream { warnings, first, deltas }, slot) =
            self.ask(with_affinity(request), RequestKind::Stream, ask).await?;
        Ok(GenerationStream { warnings, deltas: Box::pin(TrackedStream::new(first, deltas, slot)) })
    }

    async fn complete(&self, request: &CompletionRequest) -> Result<Generation, EngineError> {
        let ask = |host: Arc<dyn Engine>| -> BoxFuture<'_, _> {
            Box::pin(async move { host.complete(request).await })
        };
        let (generation, mut slot) = self.ask(completion_affinity(request), RequestKind::Whole, ask).await?;
        slot.succeeded();
        Ok(generation)
    }

    async fn stream_completion(&self, request: &CompletionRequest) -> Result<GenerationStream, EngineError> {
        let ask = |host: Arc<dyn Engine>| -> BoxFuture<'_, _> {
            Box::pin(
                async move { StartedStream::of(host.as_ref(), host.stream_completion(request).await?).await },
            )
        };
        let (StartedStream { warnings, first, deltas }, slot) =
            self.ask(completion_affinity(request), RequestKind::Stream, ask).await?;
        Ok(GenerationStream { warnings, deltas: Box::pin(TrackedStream::new(first, deltas, slot)) })
    }

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        self.anywhere(&request.model, |host| Box::pin(async move { host.embed(request).await })).await
    }

    async fn tokenize(&self, request: &TokenizeRequest) -> Result<Tokenized, EngineError> {
        self.anywhere(&request.model, |host| Box::pin(async move { host.tokenize(request).await })).await
    }

    async fn detokenize(&self, request: &DetokenizeRequest) -> Result<String, EngineError> {
        self.anywhere(&request.model, |host| Box::pin(async move { host.detokenize(request).await })).await
    }

    async fn media(&self, request: &MediaRequest) -> Result<MediaAnswer, EngineError> {
        self.anywhere(&request.model, |host| Box::pin(async move { host.media(request).await })).await
    }

    async fn rerank(&self, request: &RerankRequest) -> Result<Reranking, EngineError> {
        self.anywhere(&request.model, |host| Box::pin(async move { host.rerank(request).await })).await
    }

    /// The models of all hosts that answer, without duplicates.
    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.looked_up().await;
        let slots = self.table.take_all(Instant::now());
        let tried: Vec<_> = slots.iter().map(|slot| Arc::clone(slot.table_host())).collect();
        let lists = join_all(slots.into_iter().map(|mut slot| async move {
            let listed = list(&mut slot).await;
            if let Ok(models) = &listed {
                slot.set_models(models, "");
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
                Err(error) => last_error = Some(more_informative(last_error, error)),
            }
        }
        if answered { Ok(union) } else { Err(self.no_answer_error("", last_error, &tried)) }
    }

    /// The details from the first host that reports them.
    async fn describe(&self, model: &ModelInfo) -> Option<ModelInfo> {
        self.described(self.without_affinity(&model.id), model).await
    }

    /// Whether any host answers.
    async fn health(&self) -> bool {
        let Ok(hosts) = self.hosts().await else { return false };
        let checks: Vec<_> = hosts.iter().map(|host| answers(host.as_ref())).collect();
        is_any_healthy(checks).await
    }

    fn lists_every_model(&self) -> bool {
        !self.table.any(|host| !host.lists_every_model())
    }

    fn means(&self, asked: &str, listed: &str) -> bool {
        self.table.any(|host| host.means(asked, listed))
    }

    /// On every host, so that each is ready. One success is enough.
    async fn prepare(&self, model: &str) -> Result<(), EngineError> {
        let hosts = self.hosts().await?;
        let prepared = join_all(hosts.iter().map(|host| host.prepare(model))).await;
        let mut last_error = None;
        for outcome in prepared {
            match outcome {
                Ok(()) => return Ok(()),
                Err(error) => last_error = Some(more_informative(last_error, error)),
            }
        }
        last_error.map_or(Ok(()), Err)
    }

    /// On every host. A host that cannot be reached has nothing in memory that anyone could use.
    async fn unload(&self, model: &str) -> Result<(), EngineError> {
        let hosts = self.hosts().await?;
        let unloaded = join_all(hosts.iter().map(|host| host.unload(model))).await;
        let mut last_error = None;
        for outcome in unloaded {
            match outcome {
                Ok(()) => return Ok(()),
                Err(error) => last_error = Some(more_informative(last_error, error)),
            }
        }
        last_error.map_or(Ok(()), Err)
    }

    /// The models of all hosts that answer, each once.
    async fn running_models(&self) -> Result<Vec<RunningModel>, EngineError> {
        let hosts = self.hosts().await?;
        let lists = join_all(hosts.iter().map(|host| host.running_models())).await;
        let mut union: Vec<RunningModel> = Vec::new();
        let (mut answered, mut last_error) = (false, None);
        for listed in lists {
            match listed {
                Ok(models) => {
                    answered = true;
                    let is_new = |model: &RunningModel| !union.iter().any(|known| known.id == model.id);
                    let new: Vec<_> = models.into_iter().filter(is_new).collect();
                    union.extend(new);
                }
                Err(error) => last_error = Some(more_informative(last_error, error)),
            }
        }
        match last_error {
            Some(error) if !answered => Err(error),
            _ => Ok(union),
        }
    }
}

#[cfg(test)]
#[path = "multi_host_tests.rs"]
mod tests;
