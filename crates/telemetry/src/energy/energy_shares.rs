//! Shares energy among calls: the energy between two readings is divided equally among the calls that were active when the first
//! of them began. Pure.
//!
//! A reading takes time, and calls start and end meanwhile. A call that starts is measured from the next reading, because it is
//! unknown whether the counters were read before or after its start. A call that ends keeps its share until then; its part of the
//! rest is assigned to no call.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The largest age of the last reading when a call ends. Readings are more frequent; if the last one is older, the driver is
/// slow, and the energy of the call is unknown.
const STALE: Duration = Duration::from_millis(200);

/// The active calls and their shares.
#[derive(Debug, Default)]
pub(super) struct EnergyShares {
    under_way: HashMap<ShareId, ShareState>,
    next: u64,
    /// The number of calls that share the next amount, including those that have ended since.
    sharers: u64,
    /// The remainder of the last division.
    rest: u64,
    /// When the current reading began.
    reading: Option<Instant>,
    /// When the last complete reading began.
    read: Option<Instant>,
}

/// A call in [`EnergyShares`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ShareId(u64);

#[derive(Debug, Clone, Copy)]
enum ShareState {
    /// No reading has begun since it started.
    Waiting,
    /// The current reading is its first.
    Entering,
    /// Its share in microjoules; `None` before the first amount.
    Measured(Option<u64>),
    /// A part of it is unknown.
    Unknown,
}

impl EnergyShares {
    pub(super) fn is_any_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    pub(super) fn join(&mut self) -> ShareId {
        let id = ShareId(self.next);
        self.next += 1;
        self.under_way.insert(id, ShareState::Waiting);
        id
    }

    /// A reading begins. Active calls are measured from here.
    pub(super) fn begin_reading(&mut self, now: Instant) {
        self.reading = Some(now);
        for share in self.under_way.values_mut() {
            if let ShareState::Waiting = share {
                *share = ShareState::Entering;
            }
        }
    }

    /// A reading ends. Divides the energy since the last one among the calls that were active all the time. `None` is an unknown
    /// amount.
    pub(super) fn end_reading(&mut self, used: Option<u64>) {
        let all = used.map(|used| used.saturating_add(self.rest));
        let part = all.map(|all| all.checked_div(self.sharers).unwrap_or(0));
        self.rest = all.and_then(|all| all.checked_rem(self.sharers)).unwrap_or(0);
        self.sharers = 0;
        for share in self.under_way.values_mut() {
            *share = match (*share, part) {
                (ShareState::Waiting, _) => continue,
                (ShareState::Entering, _) => ShareState::Measured(None),
                (ShareState::Measured(given), Some(part)) => {
                    ShareState::Measured(Some(given.unwrap_or(0).saturating_add(part)))
                }
                (ShareState::Measured(_) | ShareState::Unknown, _) => ShareState::Unknown,
            };
            self.sharers += 1;
        }
        self.read = self.reading.take();
    }

    /// The total share of a call; `None` if there was none, or a part is unknown.
    pub(super) fn leave(&mut self, id: ShareId, now: Instant) -> Option<u64> {
        let share = self.under_way.remove(&id)?;
        let is_stale = self.read.is_none_or(|looked| now.saturating_duration_since(looked) > STALE);
        match share {
            ShareState::Measured(given) if !is_stale => given,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares of no question yet, and a clock that stands still.
    fn shares() -> (EnergyShares, Instant) {
        (EnergyShares::default(), Instant::now())
    }

    fn look(shares: &mut EnergyShares, now: Instant, used: u64) {
        shares.begin_reading(now);
        shares.end_reading(Some(used));
    }

    #[test]
    fn a_single_call_gets_all_energy() {
        let (mut shares, now) = shares();
        let only = shares.join();
        for used in [1_000, 7, 5] {
            look(&mut shares, now, used);
        }
        assert_eq!(shares.leave(only, now), Some(12), "the first was used before it came");
    }

    #[test]
    fn concurrent_calls_share_equally_and_only_for_their_own_time() {
        let (mut shares, now) = shares();
        let long = shares.join();
        look(&mut shares, now, 1_000);
        let short = shares.join();
        look(&mut shares, now, 100);
        look(&mut shares, now, 60);
        assert_eq!(shares.leave(short, now), Some(30));
        look(&mut shares, now, 10);
        look(&mut shares, now, 10);
        assert_eq!(shares.leave(long, now), Some(100 + 30 + 5 + 10));
        look(&mut shares, now, 1_000);
        let later = shares.join();
        look(&mut shares, now, 1_000);
        look(&mut shares, now, 3);
        assert_eq!(shares.leave(later, now), Some(3));
        assert!(!shares.is_any_under_way());
    }

    #[test]
    fn a_call_that_starts_during_a_reading_is_measured_from_the_next_one() {
        let (mut shares, now) = shares();
        let first = shares.join();
        look(&mut shares, now, 0);
        shares.begin_reading(now);
        let second = shares.join();
        shares.end_reading(Some(100));
        look(&mut shares, now, 50);
        look(&mut shares, now, 8);
        assert_eq!(shares.leave(first, now), Some(100 + 50 + 4));
        assert_eq!(shares.leave(second, now), Some(4));
    }

    #[test]
    fn a_call_that_ends_during_a_reading_does_not_change_other_shares() {
        let (mut shares, now) = shares();
        let [stays, goes] = [shares.join(), shares.join()];
        look(&mut shares, now, 0);
        shares.begin_reading(now);
        assert_eq!(shares.leave(goes, now), None, "nothing was split yet");
        shares.end_reading(Some(100));
        look(&mut shares, now, 7);
        assert_eq!(shares.leave(stays, now), Some(50 + 7));
    }

    #[test]
    fn no_energy_is_lost_by_division() {
        let (mut shares, now) = shares();
        let three = [shares.join(), shares.join(), shares.join()];
        look(&mut shares, now, 0);
        for _ in 0..10 {
            look(&mut shares, now, 1);
        }
        assert_eq!(three.map(|id| shares.leave(id, now)), [Some(3); 3]);
    }

    #[test]
    fn an_unknown_amount_affects_active_calls_only() {
        let (mut shares, now) = shares();
        let unlucky = shares.join();
        look(&mut shares, now, 0);
        let lucky = shares.join();
        shares.begin_reading(now);
        shares.end_reading(None);
        look(&mut shares, now, 10);
        assert_eq!((shares.leave(unlucky, now), shares.leave(lucky, now)), (None, Some(5)));
    }

    #[test]
    fn a_late_reading_gives_no_figure() {
        let (mut shares, now) = shares();
        let ids = [shares.join(), shares.join()];
        look(&mut shares, now, 0);
        look(&mut shares, now, 10);
        shares.begin_reading(now + STALE);
        let [in_time, late] = ids;
        assert_eq!(shares.leave(in_time, now + STALE), Some(5));
        assert_eq!(shares.leave(late, now + 2 * STALE), None);
    }

    #[test]
    fn a_call_that_ended_before_a_reading_has_no_figure() {
        let (mut shares, now) = shares();
        look(&mut shares, now, 10);
        let quick = shares.join();
        assert_eq!(shares.leave(quick, now), None);
        let quick = shares.join();
        look(&mut shares, now, 10);
        assert_eq!(shares.leave(quick, now), None);
    }
}
