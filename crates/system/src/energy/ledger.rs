//! How energy is shared among the questions a machine works on: what is used between two looks at the meters is split equally
//! among those under way. Pure.

/// Who is under way, and what each was given.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    under_way: u64,
    /// What somebody who was there from the beginning was given, in microjoules: what anybody is given is a difference of two
    /// of these, however many others there were.
    given: u64,
    /// What was left over when the last amount was split.
    rest: u64,
    looks: u64,
    /// Looks that told nothing.
    gaps: u64,
}

/// The ledger when somebody joined.
#[derive(Debug, Clone, Copy)]
pub(super) struct Joined {
    given: u64,
    looks: u64,
    gaps: u64,
}

impl Ledger {
    pub(super) fn is_anybody_under_way(&self) -> bool {
        self.under_way > 0
    }

    pub(super) fn join(&mut self) -> Joined {
        self.under_way += 1;
        Joined { given: self.given, looks: self.looks, gaps: self.gaps }
    }

    /// What was used since the last time goes to those under way, and to nobody when there are none. `None` is an amount
    /// that is not known.
    pub(super) fn share(&mut self, used: Option<u64>) {
        self.looks += 1;
        let Some(used) = used else {
            self.gaps += 1;
            return;
        };
        let all = used.saturating_add(self.rest);
        self.given = self.given.saturating_add(all.checked_div(self.under_way).unwrap_or(0));
        self.rest = all.checked_rem(self.under_way).unwrap_or(0);
    }

    /// What somebody was given in all; `None` when a part of it is not known, or nobody looked meanwhile.
    pub(super) fn leave(&mut self, joined: Joined) -> Option<u64> {
        self.under_way = self.under_way.saturating_sub(1);
        let was_measured = self.looks > joined.looks && self.gaps == joined.gaps;
        was_measured.then(|| self.given - joined.given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_alone_is_given_all_of_it() {
        let mut ledger = Ledger::default();
        let only = ledger.join();
        ledger.share(Some(7));
        ledger.share(Some(5));
        assert_eq!(ledger.leave(only), Some(12));
    }

    #[test]
    fn those_at_the_same_time_share_equally_and_nobody_pays_for_another_time() {
        let mut ledger = Ledger::default();
        ledger.share(Some(1_000));
        let long = ledger.join();
        ledger.share(Some(100));
        let short = ledger.join();
        ledger.share(Some(60));
        assert_eq!(ledger.leave(short), Some(30));
        ledger.share(Some(10));
        assert_eq!(ledger.leave(long), Some(140));
        ledger.share(Some(1_000));
        let later = ledger.join();
        ledger.share(Some(3));
        assert_eq!(ledger.leave(later), Some(3));
    }

    #[test]
    fn nothing_is_lost_by_splitting() {
        let mut ledger = Ledger::default();
        let three = [ledger.join(), ledger.join(), ledger.join()];
        for _ in 0..10 {
            ledger.share(Some(1));
        }
        let given: Vec<Option<u64>> = three.into_iter().map(|joined| ledger.leave(joined)).collect();
        assert_eq!(given, [Some(3); 3]);
    }

    #[test]
    fn what_is_not_known_spoils_the_figures_of_those_under_way_only() {
        let mut ledger = Ledger::default();
        let unlucky = ledger.join();
        ledger.share(None);
        let lucky = ledger.join();
        ledger.share(Some(10));
        assert_eq!((ledger.leave(unlucky), ledger.leave(lucky)), (None, Some(5)));
    }

    #[test]
    fn who_was_gone_before_anybody_looked_has_no_figure_rather_than_none_used() {
        let mut ledger = Ledger::default();
        ledger.share(Some(10));
        let quick = ledger.join();
        assert_eq!(ledger.leave(quick), None);
        assert!(!ledger.is_anybody_under_way());
    }
}
