//! Energy counters, and the energy used between two readings. Knows neither files nor drivers.

use std::error::Error;
use std::time::Instant;

/// A larger difference means that the counter was reset. In watts.
const MAX_WATTS: f64 = 3000.0;

/// Counts the energy that a part of the machine has used.
pub(super) trait EnergyCounter: Send {
    /// The part, and the source of the counter.
    fn name(&self) -> String;

    /// In microjoules, from an arbitrary origin.
    fn read(&mut self) -> Result<u64, Box<dyn Error + Send + Sync>>;

    /// The value after which it wraps to zero, if it does.
    fn wraps_after(&self) -> Option<u64>;
}

/// The meters of a machine.
#[derive(Default)]
pub(super) struct FoundMeters {
    pub(super) counters: Vec<Box<dyn EnergyCounter>>,
    /// Why other meters cannot be used.
    pub(super) refused: Vec<String>,
}

/// All counters of a machine, which are read together: a figure includes all of them.
pub(super) struct EnergyCounters {
    counters: Vec<Known>,
    read: Option<Instant>,
    failing: bool,
}

struct Known {
    counter: Box<dyn EnergyCounter>,
    last: Option<u64>,
}

impl EnergyCounters {
    pub(super) fn new(counters: Vec<Box<dyn EnergyCounter>>) -> Self {
        let counters = counters.into_iter().map(|counter| Known { counter, last: None }).collect();
        EnergyCounters { counters, read: None, failing: false }
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.counters.iter().map(|known| known.counter.name()).collect()
    }

    /// The energy since the last reading in microjoules, if known. Blocks, with a broken driver forever.
    pub(super) fn advance(&mut self, now: Instant) -> Option<u64> {
        let since = self.read.replace(now).map(|looked| now.saturating_duration_since(looked));
        let most = (since.unwrap_or_default().as_secs_f64() * MAX_WATTS * 1e6) as u64;
        let mut used = Some(0u64);
        let mut failed = None;
        // All are read even if one fails, because each needs its value for the next time.
        for Known { counter, last } in &mut self.counters {
            let read = counter.read().map_err(|error| failed = Some((counter.name(), error))).ok();
            let before = std::mem::replace(last, read);
            let step = before.zip(read).and_then(|(before, now)| step(before, now, counter.wraps_after()));
            let step = step.filter(|step| *step <= most);
            used = used.zip(step).map(|(used, step)| used.saturating_add(step));
        }
        if let Some((name, error)) = &failed
            && !self.failing
        {
            tracing::debug!(meter = %name, %error, "cannot measure energy at the moment");
        }
        self.failing = failed.is_some();
        used
    }
}

/// The difference of two values, which may have wrapped.
fn step(before: u64, now: u64, wraps_after: Option<u64>) -> Option<u64> {
    now.checked_sub(before).or_else(|| wraps_after?.checked_sub(before)?.checked_add(now))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::energy::tests::{Dial, dial};

    const SECOND: Duration = Duration::from_secs(1);

    fn counting(dials: &[Dial]) -> (EnergyCounters, Instant) {
        let counters = dials.iter().map(|dial| Box::new(dial.clone()) as Box<dyn EnergyCounter>).collect();
        let (mut counters, start) = (EnergyCounters::new(counters), Instant::now());
        assert_eq!(counters.advance(start), None, "the first look is a beginning");
        (counters, start)
    }

    #[test]
    fn the_energy_is_the_sum_of_all_counters() {
        let (processor, card) = (dial("processor", 5), dial("card", 1_000));
        let (mut counters, start) = counting(&[processor.clone(), card.clone()]);
        processor.shows(7);
        card.shows(1_500);
        assert_eq!(counters.advance(start + SECOND), Some(502));
        assert_eq!(counters.advance(start + 2 * SECOND), Some(0));
        assert_eq!(counters.names(), ["processor", "card"]);
    }

    #[test]
    fn a_counter_that_wraps_continues() {
        let processor = dial("processor", 990).wrapping_after(1_000);
        let (mut counters, start) = counting(std::slice::from_ref(&processor));
        processor.shows(5);
        assert_eq!(counters.advance(start + SECOND), Some(15));
    }

    #[test]
    fn a_counter_that_is_reset_has_no_figure_once() {
        let card = dial("card", 990);
        let (mut counters, start) = counting(std::slice::from_ref(&card));
        card.shows(5);
        assert_eq!(counters.advance(start + SECOND), None);
        card.shows(8);
        assert_eq!(counters.advance(start + 2 * SECOND), Some(3));
        // As after a sleep of the machine: zero was not passed, however it looks.
        let processor = dial("processor", 1_000_000).wrapping_after(65_532_610_987);
        let (mut counters, start) = counting(std::slice::from_ref(&processor));
        processor.shows(5);
        assert_eq!(counters.advance(start + SECOND), None);
    }

    #[test]
    fn without_one_counter_there_is_no_figure_until_it_returns() {
        let (processor, card) = (dial("processor", 5), dial("card", 10));
        let (mut counters, start) = counting(&[processor.clone(), card.clone()]);
        card.disappears();
        processor.shows(6);
        assert_eq!(counters.advance(start + SECOND), None);
        card.shows(20);
        processor.shows(7);
        assert_eq!(counters.advance(start + 2 * SECOND), None, "what it used meanwhile is not known");
        card.shows(22);
        processor.shows(8);
        assert_eq!(counters.advance(start + 3 * SECOND), Some(3));
    }
}
