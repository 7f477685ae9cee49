//! The sums of a batch, gathered before they are written because many calls have the same key. Pure.

use std::collections::HashMap;
use std::hash::Hash;

use hob_core::time::{Moment, UtcDay};

use crate::call_record::CallOutcome;
use crate::entry::{Cost, Entry};
use crate::inference::Inference;
use crate::latency_histogram::Durations;

/// The calls of a batch, which is in the order of their ends, in the order of their starts.
pub(super) fn by_start(batch: &[Inference]) -> Vec<&Inference> {
    let mut sorted: Vec<&Inference> = batch.iter().collect();
    sorted.sort_by_key(|inference| Moment::of(inference.started));
    sorted
}

/// Sums by day and series. `S` is what a database knows a series by.
pub(super) struct Sums<S> {
    pub(super) days: HashMap<(UtcDay, S), DaySum>,
    /// By quarter of an hour.
    pub(super) served: HashMap<i64, ServedSum>,
}

impl<S> Default for Sums<S> {
    fn default() -> Self {
        Sums { days: HashMap::new(), served: HashMap::new() }
    }
}

/// The sums of a quarter of an hour.
#[derive(Default)]
pub(super) struct ServedSum {
    pub(super) calls: i64,
    pub(super) prompt_tokens: i64,
    pub(super) completion_tokens: i64,
}

#[derive(Default)]
pub(super) struct DaySum {
    pub(super) calls: i64,
    pub(super) failures: i64,
    pub(super) cancelled: i64,
    pub(super) estimated: i64,
    pub(super) prompt_tokens: i64,
    pub(super) completion_tokens: i64,
    pub(super) cached_tokens: i64,
    pub(super) latency_us: i64,
    pub(super) first_token_us: i64,
    pub(super) first_tokens: i64,
    pub(super) cost_pico: i64,
    pub(super) unpriced: i64,
    pub(super) energy_uj: i64,
    pub(super) measured: i64,
    /// The `completion_tokens` of completed calls.
    pub(super) completed_tokens: i64,
    /// Of completed calls; `None` without any.
    pub(super) durations: Option<Durations>,
}

impl<S: Eq + Hash> Sums<S> {
    pub(super) fn add(&mut self, series: S, entry: &Entry<'_>) {
        self.days.entry((entry.started.day(), series)).or_default().add(entry);
        if entry.saves() {
            let served = self.served.entry(entry.started.quarter()).or_default();
            served.calls += 1;
            served.prompt_tokens = served.prompt_tokens.saturating_add(entry.prompt_tokens);
            served.completion_tokens = served.completion_tokens.saturating_add(entry.completion_tokens);
        }
    }
}

impl DaySum {
    /// A failed call counts with its energy, and with its tokens only if they cost money. It has no speed. A cancelled call
    /// counts with its tokens, but not with its time.
    fn add(&mut self, entry: &Entry<'_>) {
        self.calls += 1;
        if let Some(energy) = entry.energy_uj {
            self.energy_uj = self.energy_uj.saturating_add(energy);
            self.measured += 1;
        }
        match entry.outcome {
            CallOutcome::Failed => self.failures += 1,
            CallOutcome::Cancelled => self.cancelled += 1,
            CallOutcome::Complete => {
                let durations = self.durations.get_or_insert_default();
                durations.latency.count(entry.latency_us);
                self.latency_us = self.latency_us.saturating_add(entry.latency_us);
                self.completed_tokens = self.completed_tokens.saturating_add(entry.completion_tokens);
                if let Some(first_token) = entry.first_token_us {
                    durations.first_token.count(first_token);
                    self.first_token_us = self.first_token_us.saturating_add(first_token);
                    self.first_tokens += 1;
                }
            }
        }
        if !entry.used_tokens() {
            return;
        }
        self.estimated += i64::from(entry.estimated);
        self.prompt_tokens = self.prompt_tokens.saturating_add(entry.prompt_tokens);
        self.completion_tokens = self.completion_tokens.saturating_add(entry.completion_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(entry.cached_tokens.unwrap_or_default());
        match entry.cost {
            Cost::Free => {}
            Cost::Pico(pico) => self.cost_pico = self.cost_pico.saturating_add(pico),
            Cost::Unknown => self.unpriced += 1,
        }
    }
}
