//! What is known about each host, and the slots of active requests.
//!
//! One lock guards everything. It is held for a few comparisons, and never across an `.await`. The table has one
//! entry per host; conversations are not stored.

use std::sync::Arc;
use std::time::Duration;

use hob_core::{Engine, ModelInfo};
use parking_lot::Mutex;
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

/// What is known about one host.
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
    hosts: Vec<Arc<dyn Engine>>,
    /// The hosts' hashes for [`affinity::weight`].
    host_hashes: Vec<u64>,
    entries: Mutex<Vec<HostEntry>>,
    /// The latest health check of each host. The lock is held during a check, so that concurrent requests share it.
    health_checks: Vec<tokio::sync::Mutex<Option<HealthCheck>>>,
}

impl HostTable {
    pub(super) fn new(hosts: Vec<Arc<dyn Engine>>, options: BreakerOptions, now: Instant) -> Self {
        let entry = |_: &Arc<dyn Engine>| HostEntry {
            breaker: CircuitBreaker::new(options, now),
            in_flight: 0,
            models: HostModels::Unknown,
        };
        HostTable {
            entries: Mutex::new(hosts.iter().map(entry).collect()),
            health_checks: hosts.iter().map(|_| tokio::sync::Mutex::default()).collect(),
            host_hashes: hosts.iter().map(|host| affinity::host(host.address())).collect(),
            hosts,
        }
    }

    pub(super) fn hosts(&self) -> &[Arc<dyn Engine>] {
        &self.hosts
    }

    /// A slot on the best host that was not tried yet and may have the model. If the breakers of all such hosts are
    /// open, the slot is on the host whose breaker closes first: a likely failure is better than a certain one.
    pub(super) fn take(
        self: &Arc<Self>,
        need: HostRequest<'_>,
        tried: &[usize],
        now: Instant,
    ) -> Option<HostSlot> {
        let mut entries = self.entries.lock();
        let mut candidates = Vec::with_capacity(entries.len());
        let mut open_breakers = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            if tried.contains(&index) || !self.may_have(index, entry, need.model) {
                continue;
            }
            match entry.breaker.state_at(now) {
                BreakerState::Closed | BreakerState::HalfOpen => candidates.push(HostCandidate {
                    index,
                    in_flight: entry.in_flight,
                    weight: affinity::weight(need.conversation, self.host_hashes[index]),
                }),
                BreakerState::Open { until } => open_breakers.push((until, index)),
            }
        }
        let next_to_close = || open_breakers.iter().min().map(|(_, index)| *index);
        let index = choose(&candidates, need.loyalty).or_else(next_to_close)?;
        Some(self.slot(&mut entries[index], index, now))
    }

    /// Whether another host with a closed breaker could be tried.
    pub(super) fn has_another(&self, need: HostRequest<'_>, tried: &[usize], now: Instant) -> bool {
        self.entries.lock().iter().enumerate().any(|(index, entry)| {
            let is_available = !matches!(entry.breaker.state_at(now), BreakerState::Open { .. });
            is_available && !tried.contains(&index) && self.may_have(index, entry, need.model)
        })
    }

    /// Whether a host is healthy, by a check that is no older than `recent`.
    pub(super) async fn is_healthy(&self, index: usize, recent: Duration) -> bool {
        let mut last = self.health_checks[index].lock().await;
        if let Some(look) = &*last
            && look.at.elapsed() < recent
        {
            return look.well;
        }
        let at = Instant::now();
        let well = self.hosts[index].health().await;
        *last = Some(HealthCheck { at, well });
        well
    }

    /// A slot on every host whose breaker is not open, or on all hosts if all are open, to list their models.
    pub(super) fn take_all(self: &Arc<Self>, now: Instant) -> Vec<HostSlot> {
        let mut entries = self.entries.lock();
        let is_open = |entry: &HostEntry| matches!(entry.breaker.state_at(now), BreakerState::Open { .. });
        let all_open = entries.iter().all(is_open);
        let open = entries.iter_mut().enumerate().filter(|(_, entry)| all_open || !is_open(entry));
        open.map(|(index, entry)| self.slot(entry, index, now)).collect()
    }

    /// Every model of every list, without duplicates.
    pub(super) fn listed(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for entry in self.entries.lock().iter() {
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
        self.entries.lock().iter().map(|entry| entry.in_flight).collect()
    }

    fn slot(self: &Arc<Self>, entry: &mut HostEntry, index: usize, now: Instant) -> HostSlot {
        entry.in_flight += 1;
        let attempt = entry.breaker.begin(now);
        let is_known = !matches!(entry.models, HostModels::Unknown) || !self.hosts[index].lists_every_model();
        HostSlot {
            table: Arc::clone(self),
            index,
            attempt,
            trusted: attempt.is_trusted() && is_known,
            reported: false,
        }
    }

    fn may_have(&self, index: usize, entry: &HostEntry, model: &str) -> bool {
        let host = &self.hosts[index];
        match &entry.models {
            HostModels::Listed(models) if host.lists_every_model() => {
                models.iter().any(|listed| host.means(model, listed))
            }
            HostModels::Listed(_) | HostModels::Unknown | HostModels::NotListed => true,
        }
    }
}

/// A request's slot on a host. The request counts as active until the slot is dropped.
pub(super) struct HostSlot {
    table: Arc<HostTable>,
    index: usize,
    attempt: Attempt,
    trusted: bool,
    /// Whether the result was reported to the breaker.
    reported: bool,
}

impl HostSlot {
    pub(super) fn index(&self) -> usize {
        self.index
    }

    pub(super) fn host(&self) -> &Arc<dyn Engine> {
        &self.table.hosts[self.index]
    }

    /// Whether the host can be used without a check.
    pub(super) fn is_trusted(&self) -> bool {
        self.trusted
    }

    /// Stores the host's list. Whether it contains `model`.
    pub(super) fn set_models(&mut self, models: &[ModelInfo], model: &str) -> bool {
        let ids: Vec<String> = models.iter().map(|model| model.id.clone()).collect();
        let mut entries = self.table.entries.lock();
        let entry = &mut entries[self.index];
        entry.models = HostModels::Listed(ids);
        self.table.may_have(self.index, entry, model)
    }

    /// The host does not list its models.
    pub(super) fn hide_models(&self) {
        self.table.entries.lock()[self.index].models = HostModels::NotListed;
    }

    /// The host reports that it does not have this model, even if it listed it.
    pub(super) fn remove_model(&self, model: &str) {
        let host = self.host();
        if let HostModels::Listed(models) = &mut self.table.entries.lock()[self.index].models {
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
            let mut entries = self.table.entries.lock();
            let entry = &mut entries[self.index];
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
                    "host failed; skipping it for a while"
                );
            }
            BreakerChange::Closed => tracing::info!(engine, host, "host is available"),
        }
    }
}

impl Drop for HostSlot {
    fn drop(&mut self) {
        let mut entries = self.table.entries.lock();
        let entry = &mut entries[self.index];
        entry.in_flight = entry.in_flight.saturating_sub(1);
        if !self.reported {
            entry.breaker.abandoned(self.attempt, Instant::now());
        }
    }
}
