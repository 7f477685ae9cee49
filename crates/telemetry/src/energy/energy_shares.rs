//! How energy is shared among the questions a machine works on: what is used between two looks at the meters is split equally
//! among those that were under way when the first of them began. Pure.
//!
//! A look takes time, and questions come and go meanwhile. One that comes is measured from the next look on, because it is not known
//! whether the meters were read before or after it came. One that goes has what it was given until then; its part of what is
//! still to be split is counted for no question, so that none is charged for another's work.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long ago the last look may have begun when a question ends. Looks are a fraction of this apart; where the last one is
/// older, the driver holds them up, and what the question has used is not known.
const STALE: Duration = Duration::from_millis(200);

/// Who is under way, and what each was given.
#[derive(Debug, Default)]
pub(super) struct EnergyShares {
    under_way: HashMap<ShareId, ShareState>,
    next: u64,
    /// Among how many the next amount is split, those who have left since then included.
    sharers: u64,
    /// What was left over when the last amount was split.
    rest: u64,
    /// When the look under way began.
    looking: Option<Instant>,
    /// When the last look that is over began.
    looked: Option<Instant>,
}

/// A question in [`EnergyShares`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ShareId(u64);

#[derive(Debug, Clone, Copy)]
enum ShareState {
    /// No look has begun since it joined.
    Waiting,
    /// The look under way is its first.
    Entering,
    /// What it was given, in microjoules; `None` until there was an amount to split.
    Measured(Option<u64>),
    /// A part of it is not known.
    Spoilt,
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

    /// The reader begins to read the meters. Questions under way now are measured from here on.
    pub(super) fn begin_look(&mut self, now: Instant) {
        self.looking = Some(now);
        for share in self.under_way.values_mut() {
            if let ShareState::Waiting = share {
                *share = ShareState::Entering;
            }
        }
    }

    /// The meters are read. What was used since the last time is split among the questions that were under way all the time.
    /// `None` is an amount that is not known.
    pub(super) fn end_look(&mut self, used: Option<u64>) {
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
                (ShareState::Measured(_) | ShareState::Spoilt, _) => ShareState::Spoilt,
            };
            self.sharers += 1;
        }
        self.looked = self.looking.take();
    }

    /// What a question was given in all; `None` when it was gone before there was anything to split, or a part is not known.
    pub(super) fn leave(&mut self, id: ShareId, now: Instant) -> Option<u64> {
        let share = self.under_way.remove(&id)?;
        let is_stale = self.looked.is_none_or(|looked| now.saturating_duration_since(looked) > STALE);
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
        shares.begin_look(now);
        shares.end_look(Some(used));
    }

    #[test]
    fn who_is_alone_is_given_all_of_it() {
        let (mut shares, now) = shares();
        let only = shares.join();
        for used in [1_000, 7, 5] {
            look(&mut shares, now, used);
        }
        assert_eq!(shares.leave(only, now), Some(12), "the first was used before it came");
    }

    #[test]
    fn those_at_the_same_time_share_equally_and_nobody_pays_for_another_time() {
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
    fn who_comes_while_the_meters_are_read_is_measured_from_the_next_time_on() {
        let (mut shares, now) = shares();
        let first = shares.join();
        look(&mut shares, now, 0);
        shares.begin_look(now);
        let second = shares.join();
        shares.end_look(Some(100));
        look(&mut shares, now, 50);
        look(&mut shares, now, 8);
        assert_eq!(shares.leave(first, now), Some(100 + 50 + 4));
        assert_eq!(shares.leave(second, now), Some(4));
    }

    #[test]
    fn who_goes_while_the_meters_are_read_makes_nobody_elses_part_larger() {
        let (mut shares, now) = shares();
        let [stays, goes] = [shares.join(), shares.join()];
        look(&mut shares, now, 0);
        shares.begin_look(now);
        assert_eq!(shares.leave(goes, now), None, "nothing was split yet");
        shares.end_look(Some(100));
        look(&mut shares, now, 7);
        assert_eq!(shares.leave(stays, now), Some(50 + 7));
    }

    #[test]
    fn nothing_is_lost_by_splitting() {
        let (mut shares, now) = shares();
        let three = [shares.join(), shares.join(), shares.join()];
        look(&mut shares, now, 0);
        for _ in 0..10 {
            look(&mut shares, now, 1);
        }
        assert_eq!(three.map(|id| shares.leave(id, now)), [Some(3); 3]);
    }

    #[test]
    fn what_is_not_known_spoils_the_figures_of_those_under_way_only() {
        let (mut shares, now) = shares();
        let unlucky = shares.join();
        look(&mut shares, now, 0);
        let lucky = shares.join();
        shares.begin_look(now);
        shares.end_look(None);
        look(&mut shares, now, 10);
        assert_eq!((shares.leave(unlucky, now), shares.leave(lucky, now)), (None, Some(5)));
    }

    #[test]
    fn a_figure_that_is_not_there_in_time_is_none() {
        let (mut shares, now) = shares();
        let ids = [shares.join(), shares.join()];
        look(&mut shares, now, 0);
        look(&mut shares, now, 10);
        shares.begin_look(now + STALE);
        let [in_time, late] = ids;
        assert_eq!(shares.leave(in_time, now + STALE), Some(5));
        assert_eq!(shares.leave(late, now + 2 * STALE), None);
    }

    #[test]
    fn who_was_gone_before_anybody_looked_has_no_figure_rather_than_none_used() {
        let (mut shares, now) = shares();
        look(&mut shares, now, 10);
        let quick = shares.join();
        assert_eq!(shares.leave(quick, now), None);
        let quick = shares.join();
        look(&mut shares, now, 10);
        assert_eq!(shares.leave(quick, now), None);
    }
}
