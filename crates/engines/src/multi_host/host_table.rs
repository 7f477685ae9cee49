//! Who sits where: what is known of each host, and the places that requests hold there.
//!
//! Everything is behind one lock that is held for a few comparisons and never across a wait. What is kept is one entry for
//! each host; conversations are not remembered at all.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hob_core::{Engine, ModelInfo};
use tokio::time::Instant;

use super::affinity;
use super::circuit_breaker::{Breaker, Change, Harm, Pace, Standing, Ticket};
use super::host_choice::{Candidate, Loyalty, choose};

/// What a request needs of a host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Need<'a> {
    pub(super) model: &'a str,
    pub(super) conversation: u64,
    pub(super) loyalty: Loyalty,
}

/// What is known of one host.
struct Seat {
    breaker: Breaker,
    in_flight: usize,
    models: Models,
}

/// What a host has.
enum Models {
    /// It has to be asked, as after it was away: it may have come back with others.
    Unheard,
    /// It does not tell.
    Untold,
    /// The ids it listed last.
    Listed(Vec<String>),
}

/// How a host was when it was looked at.
struct Look {
    at: Instant,
    well: bool,
}

pub(super) struct Desk {
    hosts: Vec<Arc<dyn Engine>>,
    /// The hosts' numbers for [`affinity::weight`].
    marks: Vec<u64>,
    seats: Mutex<Vec<Seat>>,
    /// The last look at each host. Held by whoever looks, so that a crowd looks once.
    looks: Vec<tokio::sync::Mutex<Option<Look>>>,
}

impl Desk {
    pub(super) fn new(hosts: Vec<Arc<dyn Engine>>, pace: Pace, now: Instant) -> Self {
        let seat = |_: &Arc<dyn Engine>| Seat {
            breaker: Breaker::new(pace, now),
            in_flight: 0,
            models: Models::Unheard,
        };
        Desk {
            seats: Mutex::new(hosts.iter().map(seat).collect()),
            looks: hosts.iter().map(|_| tokio::sync::Mutex::default()).collect(),
            marks: hosts.iter().map(|host| affinity::host(host.address())).collect(),
            hosts,
        }
    }

    pub(super) fn hosts(&self) -> &[Arc<dyn Engine>] {
        &self.hosts
    }

    /// A place on the host that suits best, of those that were not tried yet and may have the model. Where all of them are
    /// shut, on the one that opens first: a likely failure is better than a certain one.
    pub(super) fn take(self: &Arc<Self>, need: Need<'_>, tried: &[usize], now: Instant) -> Option<Place> {
        let mut seats = self.lock();
        let mut candidates = Vec::with_capacity(seats.len());
        let mut shut = Vec::new();
        for (index, seat) in seats.iter().enumerate() {
            if tried.contains(&index) || !self.may_have(index, seat, need.model) {
                continue;
            }
            match seat.breaker.standing(now) {
                Standing::Closed | Standing::Due => candidates.push(Candidate {
                    index,
                    in_flight: seat.in_flight,
                    weight: affinity::weight(need.conversation, self.marks[index]),
                }),
                Standing::Shut { until } => shut.push((until, index)),
            }
        }
        let soonest = || shut.iter().min().map(|(_, index)| *index);
        let index = choose(&candidates, need.loyalty).or_else(soonest)?;
        Some(self.place(&mut seats[index], index, now))
    }

    /// Whether somebody else could be asked who is not shut.
    pub(super) fn has_another(&self, need: Need<'_>, tried: &[usize], now: Instant) -> bool {
        self.lock().iter().enumerate().any(|(index, seat)| {
            let is_open = !matches!(seat.breaker.standing(now), Standing::Shut { .. });
            is_open && !tried.contains(&index) && self.may_have(index, seat, need.model)
        })
    }

    /// Whether a host tells that it is well, or told somebody else within this time.
    pub(super) async fn is_well(&self, index: usize, recent: Duration) -> bool {
        let mut last = self.looks[index].lock().await;
        if let Some(look) = &*last
            && look.at.elapsed() < recent
        {
            return look.well;
        }
        let at = Instant::now();
        let well = self.hosts[index].health().await;
        *last = Some(Look { at, well });
        well
    }

    /// A place on every host that is not shut, or on all where all are, to ask them for their models.
    pub(super) fn take_all(self: &Arc<Self>, now: Instant) -> Vec<Place> {
        let mut seats = self.lock();
        let is_shut = |seat: &Seat| matches!(seat.breaker.standing(now), Standing::Shut { .. });
        let all_shut = seats.iter().all(is_shut);
        let open = seats.iter_mut().enumerate().filter(|(_, seat)| all_shut || !is_shut(seat));
        open.map(|(index, seat)| self.place(seat, index, now)).collect()
    }

    /// Every model that a host listed, each once.
    pub(super) fn listed(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for seat in self.lock().iter() {
            let Models::Listed(models) = &seat.models else { continue };
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
        self.lock().iter().map(|seat| seat.in_flight).collect()
    }

    fn place(self: &Arc<Self>, seat: &mut Seat, index: usize, now: Instant) -> Place {
        seat.in_flight += 1;
        let ticket = seat.breaker.begin(now);
        let is_known = !matches!(seat.models, Models::Unheard) || !self.hosts[index].lists_every_model();
        Place {
            desk: Arc::clone(self),
            index,
            ticket,
            proven: ticket.is_proven() && is_known,
            reported: false,
        }
    }

    fn may_have(&self, index: usize, seat: &Seat, model: &str) -> bool {
        let host = &self.hosts[index];
        match &seat.models {
            Models::Listed(models) if host.lists_every_model() => {
                models.iter().any(|listed| host.means(model, listed))
            }
            Models::Listed(_) | Models::Unheard | Models::Untold => true,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Seat>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request's place on a host. The host counts as at work on it for as long as this lives.
pub(super) struct Place {
    desk: Arc<Desk>,
    index: usize,
    ticket: Ticket,
    proven: bool,
    /// Whether the breaker was told how it went.
    reported: bool,
}

impl Place {
    pub(super) fn index(&self) -> usize {
        self.index
    }

    pub(super) fn host(&self) -> &Arc<dyn Engine> {
        &self.desk.hosts[self.index]
    }

    /// Whether the host can be asked without hearing it first.
    pub(super) fn is_proven(&self) -> bool {
        self.proven
    }

    /// The host has these. Whether `model` is one of them.
    pub(super) fn lists(&mut self, models: &[ModelInfo], model: &str) -> bool {
        let ids: Vec<String> = models.iter().map(|model| model.id.clone()).collect();
        let mut seats = self.desk.lock();
        let seat = &mut seats[self.index];
        seat.models = Models::Listed(ids);
        self.desk.may_have(self.index, seat, model)
    }

    /// The host does not tell what it has.
    pub(super) fn tells_nothing(&self) {
        self.desk.lock()[self.index].models = Models::Untold;
    }

    /// The host says that it does not have this one, whatever it listed.
    pub(super) fn lacks(&self, model: &str) {
        let host = self.host();
        if let Models::Listed(models) = &mut self.desk.lock()[self.index].models {
            models.retain(|listed| !host.means(model, listed));
        }
    }

    /// The host gives a sign of life.
    pub(super) fn heard(&mut self) {
        self.report(|breaker, ticket| breaker.heard(ticket));
    }

    /// The host gave a whole answer.
    pub(super) fn succeeded(&mut self) {
        self.report(|breaker, ticket| breaker.succeeded(ticket));
    }

    /// The host failed, or refused.
    pub(super) fn failed(&mut self, harm: Harm, now: Instant) {
        self.report(|breaker, ticket| breaker.failed(ticket, harm, now));
    }

    fn report(&mut self, tell: impl FnOnce(&mut Breaker, Ticket) -> Change) {
        self.reported = true;
        let change = {
            let mut seats = self.desk.lock();
            let seat = &mut seats[self.index];
            let change = tell(&mut seat.breaker, self.ticket);
            if let Change::Opened { .. } = change {
                seat.models = Models::Unheard;
            }
            change
        };
        let (engine, host) = (self.host().key(), self.host().address());
        match change {
            Change::None => {}
            Change::Opened { pause } => {
                tracing::warn!(engine, host, pause_s = pause.as_secs_f32(), "a host is left out for a while");
            }
            Change::Closed => tracing::info!(engine, host, "a host answers"),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut seats = self.desk.lock();
        let seat = &mut seats[self.index];
        seat.in_flight = seat.in_flight.saturating_sub(1);
        if !self.reported {
            seat.breaker.abandoned(self.ticket, Instant::now());
        }
    }
}
