//! How energy is shared among the questions a machine works on: what is used between two looks at the meters is split equally
//! among those that were under way when the first of them began. Pure.
//!
//! A look takes time, and questions come and go meanwhile. One that comes is measured from the next look on, because nobody knows
//! whether the meters were read before or after it came. One that goes has what it was given until then; its part of what is
//! still to be split is nobody's, so that nobody pays for another's work.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long ago the last look may have begun when a question ends. Looks are a fraction of this apart; where the last one is
/// older, the driver holds them up, and what the question has used is not known.
const STALE: Duration = Duration::from_millis(200);

/// Who is under way, and what each was given.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    under_way: HashMap<Place, Account>,
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

/// Where somebody stands in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place(u64);

#[derive(Debug, Clone, Copy)]
enum Account {
    /// No look has begun since it joined.
    Waiting,
    /// The look under way is its first.
    Entering,
    /// What it was given, in microjoules; `None` until there was an amount to split.
    Measured(Option<u64>),
    /// A part of it is not known.
    Spoilt,
}

impl Ledger {
    pub(super) fn is_anybody_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    pub(super) fn join(&mut self) -> Place {
        let place = Place(self.next);
        self.next += 1;
        self.under_way.insert(place, Account::Waiting);
        place
    }

    /// Somebody begins to read the meters. Who is under way now is measured from here on.
    pub(super) fn begin_look(&mut self, now: Instant) {
        self.looking = Some(now);
        for account in self.under_way.values_mut() {
            if let Account::Waiting = account {
                *account = Account::Entering;
            }
        }
    }

    /// The meters are read. What was used since the last time is split, and goes to nobody when nobody was there all the time.
    /// `None` is an amount that is not known.
    pub(super) fn end_look(&mut self, used: Option<u64>) {
        let all = used.map(|used| used.saturating_add(self.rest));
        let part = all.map(|all| all.checked_div(self.sharers).unwrap_or(0));
        self.rest = all.and_then(|all| all.checked_rem(self.sharers)).unwrap_or(0);
        self.sharers = 0;
        for account in self.under_way.values_mut() {
            *account = match (*account, part) {
                (Account::Waiting, _) => continue,
                (Account::Entering, _) => Account::Measured(None),
                (Account::Measured(given), Some(part)) => {
                    Account::Measured(Some(given.unwrap_or(0).saturating_add(part)))
                }
                (Account::Measured(_) | Account::Spoilt, _) => Account::Spoilt,
            };
            self.sharers += 1;
        }
        self.looked = self.looking.take();
    }

    /// What somebody was given in all; `None` when it was gone before there was anything to split, or a part is not known.
    pub(super) fn leave(&mut self, place: Place, now: Instant) -> Option<u64> {
        let account = self.under_way.remove(&place)?;
        let is_stale = self.looked.is_none_or(|looked| now.saturating_duration_since(looked) > STALE);
        match account {
            Account::Measured(given) if !is_stale => given,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ledger, and a clock that stands still.
    fn ledger() -> (Ledger, Instant) {
        (Ledger::default(), Instant::now())
    }

    fn look(ledger: &mut Ledger, now: Instant, used: u64) {
        ledger.begin_look(now);
        ledger.end_look(Some(used));
    }

    #[test]
    fn who_is_alone_is_given_all_of_it() {
        let (mut ledger, now) = ledger();
        let only = ledger.join();
        for used in [1_000, 7, 5] {
            look(&mut ledger, now, used);
        }
        assert_eq!(ledger.leave(only, now), Some(12), "the first was used before it came");
    }

    #[test]
    fn those_at_the_same_time_share_equally_and_nobody_pays_for_another_time() {
        let (mut ledger, now) = ledger();
        let long = ledger.join();
        look(&mut ledger, now, 1_000);
        let short = ledger.join();
        look(&mut ledger, now, 100);
        look(&mut ledger, now, 60);
        assert_eq!(ledger.leave(short, now), Some(30));
        look(&mut ledger, now, 10);
        look(&mut ledger, now, 10);
        assert_eq!(ledger.leave(long, now), Some(100 + 30 + 5 + 10));
        look(&mut ledger, now, 1_000);
        let later = ledger.join();
        look(&mut ledger, now, 1_000);
        look(&mut ledger, now, 3);
        assert_eq!(ledger.leave(later, now), Some(3));
        assert!(!ledger.is_anybody_under_way());
    }

    #[test]
    fn who_comes_while_the_meters_are_read_is_measured_from_the_next_time_on() {
        let (mut ledger, now) = ledger();
        let first = ledger.join();
        look(&mut ledger, now, 0);
        ledger.begin_look(now);
        let second = ledger.join();
        ledger.end_look(Some(100));
        look(&mut ledger, now, 50);
        look(&mut ledger, now, 8);
        assert_eq!(ledger.leave(first, now), Some(100 + 50 + 4));
        assert_eq!(ledger.leave(second, now), Some(4));
    }

    #[test]
    fn who_goes_while_the_meters_are_read_makes_nobody_elses_part_larger() {
        let (mut ledger, now) = ledger();
        let [stays, goes] = [ledger.join(), ledger.join()];
        look(&mut ledger, now, 0);
        ledger.begin_look(now);
        assert_eq!(ledger.leave(goes, now), None, "nothing was split yet");
        ledger.end_look(Some(100));
        look(&mut ledger, now, 7);
        assert_eq!(ledger.leave(stays, now), Some(50 + 7));
    }

    #[test]
    fn nothing_is_lost_by_splitting() {
        let (mut ledger, now) = ledger();
        let three = [ledger.join(), ledger.join(), ledger.join()];
        look(&mut ledger, now, 0);
        for _ in 0..10 {
            look(&mut ledger, now, 1);
        }
        assert_eq!(three.map(|place| ledger.leave(place, now)), [Some(3); 3]);
    }

    #[test]
    fn what_is_not_known_spoils_the_figures_of_those_under_way_only() {
        let (mut ledger, now) = ledger();
        let unlucky = ledger.join();
        look(&mut ledger, now, 0);
        let lucky = ledger.join();
        ledger.begin_look(now);
        ledger.end_look(None);
        look(&mut ledger, now, 10);
        assert_eq!((ledger.leave(unlucky, now), ledger.leave(lucky, now)), (None, Some(5)));
    }

    #[test]
    fn a_figure_that_is_not_there_in_time_is_none() {
        let (mut ledger, now) = ledger();
        let places = [ledger.join(), ledger.join()];
        look(&mut ledger, now, 0);
        look(&mut ledger, now, 10);
        ledger.begin_look(now + STALE);
        let [in_time, late] = places;
        assert_eq!(ledger.leave(in_time, now + STALE), Some(5));
        assert_eq!(ledger.leave(late, now + 2 * STALE), None);
    }

    #[test]
    fn who_was_gone_before_anybody_looked_has_no_figure_rather_than_none_used() {
        let (mut ledger, now) = ledger();
        look(&mut ledger, now, 10);
        let quick = ledger.join();
        assert_eq!(ledger.leave(quick, now), None);
        let quick = ledger.join();
        look(&mut ledger, now, 10);
        assert_eq!(ledger.leave(quick, now), None);
    }
}
