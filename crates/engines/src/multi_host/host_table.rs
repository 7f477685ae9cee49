//! What is known about each host, and the slots of active requests.
//!
//! The list of hosts can change while requests run. A host that is no longer listed gets no new request; the requests
//! that it has hold it until they end.
//!
//! One lock guards the list and is held while a host is chosen; each host has a lock of its own for what is known about
//! it. Neither is held across an `.await`. Conversations are not stored.

use std::sync::{Arc, Weak};
use std::time::Duration;

use hob_core::{Engine, ModelInfo};
use hob_sync::Mutex;
use tokio::time::Instant;

use super::affinity;
use super::circuit_breaker::{Attempt, BreakerChange, BreakerOptions, BreakerState, CircuitBreaker, Failure};
use super::host_choice::{CacheAffinity, HostCandidate, choose};

/// What a request needs from a host.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostRequest<'a> {
    pub(super) model: &'a str,
    pub(super) conversation: u64,
    pub(super) loyalty: CacheAffinity,
}

/// One host, and what is known about it.
pub(super) struct TableHost {
    engine: Arc<dyn Engine>,
    /// Its hash for [`affinity::weight`].
    hash: u64,
    entry: Mutex<HostEntry>,
    /// Its latest health check. The lock is held during a check, so that concurrent requests share it.
    health_check: tokio::sync::Mutex<Option<HealthCheck>>,
}

struct HostEntry {
    breaker: CircuitBreaker,
    in_flight: usize,
    models: HostModels,
}

/// The models of a host.
enum HostModels {
    /// Not known, or known from before an outage: the host may have restarted with other models.
    Unknown,
    /// The host does not list its models.
    NotListed,
    /// The ids of its latest list.
    Listed(Vec<String>),
}

/// The result of a health check.
struct HealthCheck {
    at: Instant,
    well: bool,
}

pub(super) struct HostTable {
    hosts: Mutex<Hosts>,
    options: BreakerOptions,
}

#[derive(Default)]
struct Hosts {
    listed: Vec<Arc<TableHost>>,
    /// Hosts that are no longer listed, while requests hold them. One that is listed again continues with what is known about it.
    gone: Vec<Weak<TableHost>>,
}

/// What a new list changed, by address.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ListChange {
    pub(super) added: Vec<String>,
    pub(super) removed: Vec<String>,
}

impl TableHost {
    fn new(engine: Arc<dyn Engine>, options: BreakerOptions, now: Instant) -> Self {
        TableHost {
            hash: affinity::host(engine.address()),
            engine,
            entry: Mutex::new(HostEntry {
                breaker: CircuitBreaker::new(options, now),
                in_flight: 0,
                models: HostModels::Unknown,
            }),
            health_check: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Whether the host is healthy, by a check that is no older than `recent`.
    pub(super) async fn is_healthy(&self, recent: Duration) -> bool {
        let mut last = self.health_check.lock().await;
        if let Some(look) = &*last
            && look.at.elapsed() < recent
        {
            return look.well;
        }
        let at = Instant::now();
        let well = self.engine.health().await;
        *last = Some(HealthCheck { at, well });
        well
    }

    fn may_have(&self, entry: &HostEntry, model: &str) -> bool {
        match &entry.models {
            HostModels::Listed(models) if self.engine.lists_every_model() => {
                models.iter().any(|listed| self.engine.means(model, listed))
            }
            HostModels::Listed(_) | HostModels::Unknown | HostModels::NotListed => true,
        }
    }

    fn slot(self: &Arc<Self>, now: Instant) -> HostSlot {
        let mut entry = self.entry.lock();
        entry.in_flight += 1;
        let attempt = entry.breaker.begin(now);
        let is_known = !matches!(entry.models, HostModels::Unknown) || !self.engine.lists_every_model();
        HostSlot {
            host: Arc::clone(self),
            attempt,
            trusted: attempt.is_trusted() && is_known,
            reported: false,
        }
    }
}

impl HostTable {
    pub(super) fn new(hosts: Vec<Arc<dyn Engine>>, options: BreakerOptions, now: Instant) -> Self {
        let host = |engine| Arc::new(TableHost::new(engine, options, now));
        let listed = hosts.into_iter().map(host).collect();
        HostTable { hosts: Mutex::new(Hosts { listed, gone: Vec::new() }), options }
    }

    pub(super) fn hosts(&self) -> Vec<Arc<dyn Engine>> {
        self.hosts.lock().listed.iter().map(|host| Arc::clone(&host.engine)).collect()
    }

    /// Whether this is true of any host.
    pub(super) fn any(&self, is: impl Fn(&dyn Engine) -> bool) -> bool {
        self.hosts.lock().listed.iter().any(|host| is(host.engine.as_ref()))
    }

    /// The host at this address, if it is listed, or if it still has requests from when it was.
    pub(super) fn known(&self, address: &str) -> Option<Arc<TableHost>> {
        let hosts = self.hosts.lock();
        let gone = hosts.gone.iter().filter_map(Weak::upgrade);
        hosts.listed.iter().map(Arc::clone).chain(gone).find(|host| host.engine.address() == address)
    }

    /// A host that is not listed yet.
    pub(super) fn unlisted(&self, engine: Arc<dyn Engine>, now: Instant) -> Arc<TableHost> {
        Arc::new(TableHost::new(engine, self.options, now))
    }

    /// Replaces the list.
    pub(super) fn replace(&self, list: Vec<Arc<TableHost>>) -> ListChange {
        let mut hosts = self.hosts.lock();
        let before = std::mem::replace(&mut hosts.listed, list);
        let is_listed = |host: &Arc<TableHost>| is_among(&hosts.listed, host);
        let addresses = |hosts: Vec<&Arc<TableHost>>| -> Vec<String> {
            hosts.into_iter().map(|host| host.engine.address().to_owned()).collect()
        };
        let removed: Vec<&Arc<TableHost>> = before.iter().filter(|host| !is_listed(host)).collect();
        let gone = hosts.gone.iter().filter(|gone| gone.upgrade().is_some_and(|host| !is_listed(&host)));
        let gone = gone.cloned().chain(removed.iter().map(|host| Arc::downgrade(host))).collect();
        let added = hosts.listed.iter().filter(|host| !is_among(&before, host)).collect();
        let change = ListChange { added: addresses(added), removed: addresses(removed) };
        hosts.gone = gone;
        change
    }

    /// A slot on the best host that was not tried yet and may have the model. If the breakers of all such hosts are
    /// open, the slot is on the host whose breaker closes first: a likely failure is better than a certain one.
    pub(super) fn take(
        &self,
        need: HostRequest<'_>,
        tried: &[Arc<TableHost>],
        now: Instant,
    ) -> Option<HostSlot> {
        let hosts = self.hosts.lock();
        let mut candidates = Vec::with_capacity(hosts.listed.len());
        let mut open_breakers = Vec::new();
        for (index, host) in hosts.listed.iter().enumerate() {
            let entry = host.entry.lock();
            if is_among(tried, host) || !host.may_have(&entry, need.model) {
                continue;
            }
            match entry.breaker.state_at(now) {
                BreakerState::Closed | BreakerState::HalfOpen => candidates.push(HostCandidate {
                    index,
                    in_flight: entry.in_flight,
                    weight: affinity::weight(need.conversation, host.hash),
                }),
                BreakerState::Open { until } => open_breakers.push((until, index)),
            }
        }
        let next_to_close = || open_breakers.iter().min().map(|(_, index)| *index);
        let index = choose(&candidates, need.loyalty).or_else(next_to_close)?;
        Some(hosts.listed[index].slot(now))
    }

    /// Whether another host with a closed breaker could be tried.
    pub(super) fn has_another(&self, need: HostRequest<'_>, tried: &[Arc<TableHost>], now: Instant) -> bool {
        self.hosts.lock().listed.iter().any(|host| {
            let entry = host.entry.lock();
            let is_available = !matches!(entry.breaker.state_at(now), BreakerState::Open { .. });
            is_available && !is_among(tried, host) && host.may_have(&entry, need.model)
        })
    }

    /// A slot on every host whose breaker is not open, or on all hosts if all are open, to list their models.
    pub(super) fn take_all(&self, now: Instant) -> Vec<HostSlot> {
        let hosts = self.hosts.lock();
        let is_open =
            |host: &TableHost| matches!(host.entry.lock().breaker.state_at(now), BreakerState::Open { .. });
        let all_open = hosts.listed.iter().all(|host| is_open(host));
        let usable = hosts.listed.iter().filter(|host| all_open || !is_open(host));
        usable.map(|host| host.slot(now)).collect()
    }

    /// Every model of every list, without duplicates.
    pub(super) fn listed(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for host in &self.hosts.lock().listed {
            let entry = host.entry.lock();
            let HostModels::Listed(models) = &entry.models else { continue };
            for id in models {
                if !all.contains(id) {
                    all.push(id.clone());
                }
            }
        }
        all
    }

    /// The number of active requests of each host.
    #[cfg(test)]
    pub(super) fn in_flight(&self) -> Vec<usize> {
        self.hosts.lock().listed.iter().map(|host| host.entry.lock().in_flight).collect()
    }
}

fn is_among(tried: &[Arc<TableHost>], host: &Arc<TableHost>) -> bool {
    tried.iter().any(|other| Arc::ptr_eq(other, host))
}

/// A request's slot on a host. The request counts as active until the slot is dropped.
pub(super) struct HostSlot {
    host: Arc<TableHost>,
    attempt: Attempt,
    trusted: bool,
    /// Whether the result was reported to the breaker.
    reported: bool,
}

impl HostSlot {
    pub(super) fn table_host(&self) -> &Arc<TableHost> {
        &self.host
    }

    pub(super) fn host(&self) -> &Arc<dyn Engine> {
        &self.host.engine
    }

    /// Whether the host can be used without a check.
    pub(super) fn is_trusted(&self) -> bool {
        self.trusted
    }

    /// Stores the host's list. Whether it contains `model`.
    pub(super) fn set_models(&mut self, models: &[ModelInfo], model: &str) -> bool {
        let ids: Vec<String> = models.iter().map(|model| model.id.clone()).collect();
        let mut entry = self.host.entry.lock();
        entry.models = HostModels::Listed(ids);
        self.host.may_have(&entry, model)
    }

    /// The host does not list its models.
    pub(super) fn hide_models(&self) {
        self.host.entry.lock().models = HostModels::NotListed;
    }

    /// The host reports that it does not have this model, even if it listed it.
    pub(super) fn remove_model(&self, model: &str) {
        let host = self.host();
        if let HostModels::Listed(models) = &mut self.host.entry.lock().models {
            models.retain(|listed| !host.means(model, listed));
        }
    }

    /// The host responded.
    pub(super) fn responded(&mut self) {
        self.report(|breaker, attempt| breaker.responded(attempt));
    }

    /// The host gave a complete answer.
    pub(super) fn succeeded(&mut self) {
        self.report(|breaker, attempt| breaker.succeeded(attempt));
    }

    /// The host failed, or rejected the request.
    pub(super) fn failed(&mut self, failure: Failure, now: Instant) {
        self.report(|breaker, attempt| breaker.failed(attempt, failure, now));
    }

    fn report(&mut self, tell: impl FnOnce(&mut CircuitBreaker, Attempt) -> BreakerChange) {
        self.reported = true;
        let change = {
            let mut entry = self.host.entry.lock();
            let change = tell(&mut entry.breaker, self.attempt);
            if let BreakerChange::Opened { .. } = change {
                entry.models = HostModels::Unknown;
            }
            change
        };
        let (engine, host) = (self.host().key(), self.host().address());
        match change {
            BreakerChange::None => {}
            BreakerChange::Opened { pause } => {
                tracing::warn!(
                    engine,
                    host,
                    pause_s = pause.as_secs_f32(),
                    "a host failed; Hob tries it again after the pause"
                );
            }
            BreakerChange::Closed => tracing::info!(engine, host, "host is available"),
        }
    }
}

impl Drop for HostSlot {
    fn drop(&mut self) {
        let mut entry = self.host.entry.lock();
        entry.in_flight = entry.in_flight.saturating_sub(1);
        if !self.reported {
            entry.breaker.abandoned(self.attempt, Instant::now());
        }
    }
}

#[cfg(all(test, shuttle))]
#[path = "host_table_interleaving_tests.rs"]
mod interleavings;
