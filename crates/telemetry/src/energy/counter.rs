//! Counters of energy, and what they say was used between two looks at them. Knows neither files nor drivers.

use std::error::Error;
use std::time::Instant;

/// Nothing with a counter of its own draws as much, in watts. A difference above that is a counter that began anew.
const MOST_WATTS: f64 = 3000.0;

/// A number that grows with the energy that some part of the machine has used.
pub(super) trait EnergyCounter: Send {
    /// What is counted, and by whom.
    fn name(&self) -> String;

    /// In microjoules, from a beginning that does not matter.
    fn read(&mut self) -> Result<u64, Box<dyn Error + Send + Sync>>;

    /// The number after which it begins at zero again; `None` for one that never gets there.
    fn wraps_after(&self) -> Option<u64>;
}

/// All counters of a machine, which are always looked at together: a figure has either all of them in it, or is none.
pub(super) struct EnergyCounters {
    counters: Vec<Known>,
    looked: Option<Instant>,
    failing: bool,
}

struct Known {
    counter: Box<dyn EnergyCounter>,
    last: Option<u64>,
}

impl EnergyCounters {
    pub(super) fn new(counters: Vec<Box<dyn EnergyCounter>>) -> Self {
        let counters = counters.into_iter().map(|counter| Known { counter, last: None }).collect();
        EnergyCounters { counters, looked: None, failing: false }
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.counters.iter().map(|known| known.counter.name()).collect()
    }

    /// What was used since the last look, in microjoules; `None` when that is not known. Blocks, a driver's bug for ever.
    pub(super) fn advance(&mut self, now: Instant) -> Option<u64> {
        let since = self.looked.replace(now).map(|looked| now.saturating_duration_since(looked));
        let most = (since.unwrap_or_default().as_secs_f64() * MOST_WATTS * 1e6) as u64;
        let mut used = Some(0u64);
        let mut failed = None;
        // One that fails does not keep the others from being read: each needs its number for the next time.
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
            tracing::debug!(meter = %name, %error, "energy cannot be measured at the moment");
        }
        self.failing = failed.is_some();
        used
    }
}

/// From one number to the next, which may have passed zero.
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
    fn what_was_used_is_the_sum_of_all_counters() {
        let (processor, card) = (dial("processor", 5), dial("card", 1_000));
        let (mut counters, start) = counting(&[processor.clone(), card.clone()]);
        processor.shows(7);
        card.shows(1_500);
        assert_eq!(counters.advance(start + SECOND), Some(502));
        assert_eq!(counters.advance(start + 2 * SECOND), Some(0));
        assert_eq!(counters.names(), ["processor", "card"]);
    }

    #[test]
    fn a_counter_that_passes_zero_goes_on() {
        let processor = dial("processor", 990).wrapping_after(1_000);
        let (mut counters, start) = counting(std::slice::from_ref(&processor));
        processor.shows(5);
        assert_eq!(counters.advance(start + SECOND), Some(15));
    }

    #[test]
    fn a_counter_that_begins_anew_says_nothing_once() {
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
    fn without_one_of_them_there_is_no_figure_until_it_is_back() {
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
