//! Who sits where: what is known of each host, and the places that requests hold there.
//!
//! Everything is behind one lock that is held for a few comparisons and never across a wait. What is kept is one entry for
//! each host; conversations are not remembered at all.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hob_core::{Engine, ModelInfo};
use tokio::time::Instant;

use super::affinity;
use super::circuit_breaker::{Attempt, BreakerChange, BreakerOptions, BreakerState, CircuitBreaker, Failure};
use super::host_choice::{CacheAffinity, HostCandidate, choose};

/// What a request needs of a host.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostRequest<'a> {
    pub(super) model: &'a str,
    pub(super) conversation: u64,
    pub(super) loyalty: CacheAffinity,
}

/// What is known of one host.
struct HostEntry {
    breaker: CircuitBreaker,
    in_flight: usize,
    models: HostModels,
}

/// What a host has.
enum HostModels {
    /// It has to be asked, as after it was away: it may have come back with others.
    Unknown,
    /// It does not tell.
    NotListed,
    /// The ids it listed last.
    Listed(Vec<String>),
}

/// How a host was when it was looked at.
struct HealthCheck {
    at: Instant,
    well: bool,
}

pub(super) struct HostTable {
    hosts: Vec<Arc<dyn Engine>>,
    /// The hosts' numbers for [`affinity::weight`].
    host_hashes: Vec<u64>,
    entries: Mutex<Vec<HostEntry>>,
    /// The last look at each host. Held by whoever looks, so that a crowd looks once.
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

    /// A place on the host that suits best, of those that were not tried yet and may have the model. Where all of them are
    /// shut, on the one that opens first: a likely failure is better than a certain one.
    pub(super) fn take(
        self: &Arc<Self>,
        need: HostRequest<'_>,
        tried: &[usize],
        now: Instant,
    ) -> Option<HostSlot> {
        let mut entries = self.lock();
        let mut candidates = Vec::with_capacity(entries.len());
        let mut shut = Vec::new();
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
                BreakerState::Open { until } => shut.push((until, index)),
            }
        }
        let soonest = || shut.iter().min().map(|(_, index)| *index);
        let index = choose(&candidates, need.loyalty).or_else(soonest)?;
        Some(self.slot(&mut entries[index], index, now))
    }

    /// Whether somebody else could be asked who is not shut.
    pub(super) fn has_another(&self, need: HostRequest<'_>, tried: &[usize], now: Instant) -> bool {
        self.lock().iter().enumerate().any(|(index, entry)| {
            let is_open = !matches!(entry.breaker.state_at(now), BreakerState::Open { .. });
            is_open && !tried.contains(&index) && self.may_have(index, entry, need.model)
        })
    }

    /// Whether a host tells that it is well, or told somebody else within this time.
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

    /// A place on every host that is not shut, or on all where all are, to ask them for their models.
    pub(super) fn take_all(self: &Arc<Self>, now: Instant) -> Vec<HostSlot> {
        let mut entries = self.lock();
        let is_shut = |entry: &HostEntry| matches!(entry.breaker.state_at(now), BreakerState::Open { .. });
        let all_shut = entries.iter().all(is_shut);
        let open = entries.iter_mut().enumerate().filter(|(_, entry)| all_shut || !is_shut(entry));
        open.map(|(index, entry)| self.slot(entry, index, now)).collect()
    }

    /// Every model that a host listed, each once.
    pub(super) fn listed(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for entry in self.lock().iter() {
            let HostModels::Listed(models) = &entry.models else { continue };
            for id in models {
                if !all.contains(id) {
                    all.push(id.clone());
                }
            }
        }
        all
    }

    /// Requests at work on each host.
    #[cfg(test)]
    pub(super) fn in_flight(&self) -> Vec<usize> {
        self.lock().iter().map(|entry| entry.in_flight).collect()
    }

    fn slot(self: &Arc<Self>, entry: &mut HostEntry, index: usize, now: Instant) -> HostSlot {
        entry.in_flight += 1;
        let attempt = entry.breaker.begin(now);
        let is_known = !matches!(entry.models, HostModels::Unknown) || !self.hosts[index].lists_every_model();
        HostSlot {
            table: Arc::clone(self),
            index,
            attempt,
            proven: attempt.is_proven() && is_known,
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

    fn lock(&self) -> MutexGuard<'_, Vec<HostEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request's place on a host. The host counts as at work on it for as long as this lives.
pub(super) struct HostSlot {
    table: Arc<HostTable>,
    index: usize,
    attempt: Attempt,
    proven: bool,
    /// Whether the breaker was told how it went.
    reported: bool,
}

impl HostSlot {
    pub(super) fn index(&self) -> usize {
        self.index
    }

    pub(super) fn host(&self) -> &Arc<dyn Engine> {
        &self.table.hosts[self.index]
    }

    /// Whether the host can be asked without hearing it first.
    pub(super) fn is_proven(&self) -> bool {
        self.proven
    }

    /// The host has these. Whether `model` is one of them.
    pub(super) fn lists(&mut self, models: &[ModelInfo], model: &str) -> bool {
        let ids: Vec<String> = models.iter().map(|model| model.id.clone()).collect();
        let mut entries = self.table.lock();
        let entry = &mut entries[self.index];
        entry.models = HostModels::Listed(ids);
        self.table.may_have(self.index, entry, model)
    }

    /// The host does not tell what it has.
    pub(super) fn tells_nothing(&self) {
        self.table.lock()[self.index].models = HostModels::NotListed;
    }

    /// The host says that it does not have this one, whatever it listed.
    pub(super) fn lacks(&self, model: &str) {
        let host = self.host();
        if let HostModels::Listed(models) = &mut self.table.lock()[self.index].models {
            models.retain(|listed| !host.means(model, listed));
        }
    }

    /// The host gives a sign of life.
    pub(super) fn heard(&mut self) {
        self.report(|breaker, attempt| breaker.heard(attempt));
    }

    /// The host gave a whole answer.
    pub(super) fn succeeded(&mut self) {
        self.report(|breaker, attempt| breaker.succeeded(attempt));
    }

    /// The host failed, or refused.
    pub(super) fn failed(&mut self, failure: Failure, now: Instant) {
        self.report(|breaker, attempt| breaker.failed(attempt, failure, now));
    }

    fn report(&mut self, tell: impl FnOnce(&mut CircuitBreaker, Attempt) -> BreakerChange) {
        self.reported = true;
        let change = {
            let mut entries = self.table.lock();
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
                tracing::warn!(engine, host, pause_s = pause.as_secs_f32(), "a host is left out for a while");
            }
            BreakerChange::Closed => tracing::info!(engine, host, "a host answers"),
        }
    }
}

impl Drop for HostSlot {
    fn drop(&mut self) {
        let mut entries = self.table.lock();
        let entry = &mut entries[self.index];
        entry.in_flight = entry.in_flight.saturating_sub(1);
        if !self.reported {
            entry.breaker.abandoned(self.attempt, Instant::now());
        }
    }
}
