//! Reserving, settling and the windows, without a store.

use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;

fn noon() -> Timestamp {
    "2026-11-16T12:00:00Z".parse().expect("a moment")
}

fn after(seconds: i64) -> Timestamp {
    noon() + SignedDuration::from_secs(seconds)
}

fn tokens(amount: u64) -> Amounts {
    Amounts { tokens: amount, ..Amounts::default() }
}

const PER_MINUTE: Quota = Quota { unit: Unit::Tokens, period: Period::Minute, limit: 100 };
const PER_DAY: Quota = Quota { unit: Unit::Tokens, period: Period::Day, limit: 1_000 };

fn account(quotas: &[(Quota, ShareSource)]) -> Account {
    let mut account = Account::default();
    account.set_limits(quotas);
    account
}

/// Whether the amount was reserved.
fn reserve(account: &mut Account, amount: u64, now: Timestamp) -> Result<(), Shortage> {
    account.reserve(tokens(amount), now).map(|_| ())
}

#[test]
fn a_limit_of_this_process_is_full_again_in_the_next_window() {
    let mut account = account(&[(PER_MINUTE, ShareSource::Own)]);
    assert_eq!(reserve(&mut account, 60, noon()), Ok(()));
    let shortage = account.reserve(tokens(60), after(10)).expect_err("too much");
    let expected = Shortage {
        quota: PER_MINUTE,
        window: noon().as_second(),
        amount: 60,
        left: 40,
        wanted: None,
        resets_in: Duration::from_secs(50),
    };
    assert_eq!(shortage, expected);
    assert_eq!(reserve(&mut account, 100, after(60)), Ok(()));
}

#[test]
fn a_clock_that_was_far_ahead_does_not_keep_a_limit_used_up() {
    let mut account = account(&[(PER_MINUTE, ShareSource::Own)]);
    let left = |account: &mut Account, seconds| {
        account.per_minute(Unit::Tokens, after(seconds)).map(|state| (state.left, state.resets_in))
    };
    account.reserve(tokens(100), after(86_400)).expect("reserved");
    // Put back by up to a minute, the window stays.
    assert_eq!(left(&mut account, 86_340), Some((0, Duration::from_secs(120))));
    assert_eq!(left(&mut account, 10), Some((100, Duration::from_secs(50))));
}

#[test]
fn what_was_reserved_and_not_used_is_free_again() {
    let mut account = account(&[(PER_MINUTE, ShareSource::Own)]);
    let reserved = account.reserve(tokens(100), noon()).expect("reserved");
    account.settle(reserved, tokens(30));
    assert_eq!(account.per_minute(Unit::Tokens, after(1)).map(|state| state.left), Some(70));
    // A reservation of a window that is over gives nothing to the next one.
    let reserved = account.reserve(tokens(70), after(2)).expect("reserved");
    account.settle(reserved, tokens(0));
    assert_eq!(account.per_minute(Unit::Tokens, after(61)).map(|state| state.left), Some(100));
}

#[test]
fn a_leased_limit_asks_for_what_it_lacks_and_waits_after_a_refusal() {
    let mut account = account(&[(PER_DAY, ShareSource::Leased)]);
    let day = PER_DAY.period.window(noon());
    let shortage = account.reserve(tokens(10), noon()).expect_err("nothing is leased");
    assert_eq!((shortage.wanted, shortage.window), (Some(10), day));
    account.add_share(PER_DAY, day, 30, 30);
    assert_eq!(reserve(&mut account, 10, noon()), Ok(()));
    let shortage = account.reserve(tokens(50), noon()).expect_err("too little is leased");
    assert_eq!(shortage.wanted, Some(30));
    account.note_refusal(PER_DAY, day, 30, 1_000, noon());
    assert_eq!(account.reserve(tokens(50), noon()).expect_err("refused").wanted, None);
    assert_eq!(account.reserve(tokens(50), after(1)).expect_err("asked again").wanted, Some(30));
    assert_eq!(account.reserve(tokens(50), after(2)).expect_err("asked again").wanted, Some(30));
    assert_eq!(reserve(&mut account, 20, after(2)), Ok(()));
    // More than the whole limit is never granted, so the store is not asked.
    assert_eq!(account.reserve(tokens(2_000), after(3)).expect_err("too much").wanted, None);
}

#[test]
fn what_a_call_uses_beyond_its_reservation_is_noted_for_the_store() {
    let mut account = account(&[(PER_DAY, ShareSource::Leased)]);
    let day = PER_DAY.period.window(noon());
    account.add_share(PER_DAY, day, 0, 0);
    account.reserve(tokens(1), noon()).expect_err("nothing is leased");
    account.add_share(PER_DAY, day, 30, 30);
    let reserved = account.reserve(tokens(10), noon()).expect("reserved");
    account.settle(reserved, tokens(45));
    let nothing = account.reserve_nothing(noon());
    account.settle(nothing, tokens(5));
    assert_eq!(account.take_overdrafts(), [Overdraft { quota: PER_DAY, window: day, amount: 20 }]);
    assert_eq!(account.unsettled(PER_DAY, day), (0, 0));
}

#[test]
fn a_call_for_which_nothing_was_reserved_counts_in_the_window_in_which_it_began() {
    let mut account = account(&[(PER_MINUTE, ShareSource::Own), (PER_DAY, ShareSource::Leased)]);
    let left = |account: &mut Account, seconds| {
        account.per_minute(Unit::Tokens, after(seconds)).map(|state| state.left)
    };
    assert_eq!(left(&mut account, 0), Some(100));
    // No one has asked for the limit in the next minute until the call ends.
    let nothing = account.reserve(tokens(0), after(70)).expect("nothing is needed");
    account.settle(nothing, tokens(30));
    assert_eq!((left(&mut account, 75), left(&mut account, 120)), (Some(70), Some(100)));
    // Another call has begun a later minute.
    let nothing = account.reserve_nothing(after(130));
    assert_eq!(left(&mut account, 190), Some(100));
    account.settle(nothing, tokens(5));
    assert_eq!(left(&mut account, 190), Some(100));
    let window = PER_DAY.period.window(noon());
    assert_eq!(account.take_overdrafts(), [Overdraft { quota: PER_DAY, window, amount: 35 }]);
}

#[test]
fn what_calls_have_reserved_and_not_used_is_given_back_except_a_usual_share() {
    let mut account = account(&[(PER_DAY, ShareSource::Leased), (PER_MINUTE, ShareSource::Own)]);
    let day = PER_DAY.period.window(noon());
    account.reserve(tokens(80), noon()).expect_err("nothing is leased");
    account.add_share(PER_DAY, day, 80, 200);
    let reserved = account.reserve(tokens(80), noon()).expect("reserved");
    assert_eq!(account.take_excess(noon()), [], "it is in use");
    account.settle(reserved, tokens(0));
    // 880 are left, of which 55 are a share: 80 are not much more than that.
    assert_eq!(account.take_excess(noon()), []);
    account.add_share(PER_DAY, day, 80, 280);
    assert_eq!(account.take_excess(noon()), [Overdraft { quota: PER_DAY, window: day, amount: 105 }]);
    assert_eq!((account.unsettled(PER_DAY, day), account.take_excess(noon())), ((55, 0), vec![]));
}

#[test]
fn a_changed_limit_counts_what_was_used() {
    let mut account = account(&[(PER_MINUTE, ShareSource::Own)]);
    account.reserve(tokens(80), noon()).expect("reserved");
    account.set_limits(&[(Quota { limit: 90, ..PER_MINUTE }, ShareSource::Own)]);
    assert_eq!(account.per_minute(Unit::Tokens, noon()).map(|state| state.left), Some(10));
    account.set_limits(&[(Quota { limit: 50, ..PER_MINUTE }, ShareSource::Own)]);
    assert_eq!(account.per_minute(Unit::Tokens, noon()).map(|state| state.left), Some(0));
    account.set_limits(&[]);
    assert_eq!(reserve(&mut account, 1_000_000, noon()), Ok(()));
}

#[test]
fn a_call_settles_only_the_limits_it_reserved_from() {
    let (minute, day) = ((PER_MINUTE, ShareSource::Own), (PER_DAY, ShareSource::Leased));
    let mut account = account(&[minute]);
    let reserved = account.reserve(tokens(60), noon()).expect("reserved");
    let another = account.reserve(tokens(40), noon()).expect("reserved");
    // One limit is added, and the other one is replaced: its number is new too.
    account.set_limits(&[day]);
    account.set_limits(&[minute, day]);
    let window = PER_DAY.period.window(noon());
    assert_eq!(account.left(Unit::Tokens, noon()), Some(100));
    // Used less, and used more, than was reserved.
    account.settle(reserved, tokens(10));
    account.settle(another, tokens(90));
    assert_eq!(account.per_minute(Unit::Tokens, after(1)).map(|state| state.left), Some(100));
    assert_eq!((account.unsettled(PER_DAY, window), account.take_overdrafts()), ((0, 0), vec![]));

    // A limit that is only changed is settled.
    let reserved = account.reserve(tokens(1), after(1)).expect_err("nothing is leased");
    account.add_share(PER_DAY, window, reserved.wanted.expect("within the limit"), 1);
    let reserved = account.reserve(tokens(1), after(1)).expect("reserved");
    account.set_limits(&[(Quota { limit: 200, ..PER_MINUTE }, ShareSource::Own), day]);
    account.settle(reserved, tokens(0));
    assert_eq!(account.per_minute(Unit::Tokens, after(2)).map(|state| state.left), Some(200));
    assert_eq!(account.unsettled(PER_DAY, window), (1, 0));
}

/// An account with this share of the tokens of today.
fn account_with_share(share: u64) -> (Account, i64) {
    let mut account = account(&[(PER_DAY, ShareSource::Leased)]);
    account.reserve(tokens(1), noon()).expect_err("nothing is leased");
    let day = PER_DAY.period.window(noon());
    account.add_share(PER_DAY, day, share, share);
    (account, day)
}

#[test]
fn the_share_of_a_limit_is_not_that_of_another_one() {
    let (mut account, day) = account_with_share(30);
    let dollars = Quota { unit: Unit::NanoDollars, ..PER_DAY };
    account.set_limits(&[(dollars, ShareSource::Leased)]);
    assert_eq!(account.unsettled(dollars, day), (0, 0));
}

#[test]
fn a_share_of_another_day_comes_too_late() {
    let (mut account, day) = account_with_share(0);
    account.add_share(PER_DAY, PER_DAY.period.window(after(-86_400)), 30, 30);
    assert_eq!(account.unsettled(PER_DAY, day), (0, 0));
}

#[test]
fn a_limit_of_which_nothing_is_taken_is_not_touched() {
    let (mut account, day) = account_with_share(30);
    account
        .reserve(Amounts { requests: 1, ..Amounts::default() }, after(86_400))
        .expect("no limit of requests");
    assert_eq!(account.take_shares(), [Overdraft { quota: PER_DAY, window: day, amount: 30 }]);
}

#[test]
fn a_limit_that_is_added_while_a_call_runs_does_not_count_it() {
    let mut account = account(&[(PER_MINUTE, ShareSource::Own)]);
    let reserved = account.reserve(tokens(60), noon()).expect("reserved");
    account.set_limits(&[(PER_MINUTE, ShareSource::Own), (PER_DAY, ShareSource::Leased)]);
    account.settle(reserved, tokens(90));
    assert_eq!(account.take_overdrafts(), []);
}

#[test]
fn a_call_that_ends_days_later_leaves_the_share_of_that_day() {
    let (mut account, day) = account_with_share(0);
    let nothing = account.reserve_nothing(noon());
    let later = after(3 * 86_400);
    let today = PER_DAY.period.window(later);
    account.reserve(tokens(1), later).expect_err("nothing is leased");
    account.add_share(PER_DAY, today, 30, 30);
    account.settle(nothing, tokens(5));
    assert_eq!(account.unsettled(PER_DAY, today), (30, 0));
    assert_eq!(account.take_overdrafts(), [Overdraft { quota: PER_DAY, window: day, amount: 5 }]);
}

#[test]
fn what_a_share_covers_is_not_written_to_the_store() {
    let (mut account, day) = account_with_share(30);
    let reserved = account.reserve(tokens(10), noon()).expect("reserved");
    account.settle(reserved, tokens(20));
    assert_eq!((account.take_overdrafts(), account.unsettled(PER_DAY, day)), (vec![], (10, 0)));
}

#[test]
fn each_day_has_its_own_overdraft_also_after_a_failure_to_write_it() {
    let (mut account, day) = account_with_share(0);
    let next_day = PER_DAY.period.window(after(86_400));
    for (seconds, amount) in [(0, 5), (86_400, 7), (1, 1)] {
        let nothing = account.reserve_nothing(after(seconds));
        account.settle(nothing, tokens(amount));
    }
    let of = |window, amount| Overdraft { quota: PER_DAY, window, amount };
    let overdrafts = account.take_overdrafts();
    assert_eq!(overdrafts, [of(day, 6), of(next_day, 7)]);
    account.put_back(overdrafts);
    assert_eq!((account.unsettled(PER_DAY, day), account.unsettled(PER_DAY, next_day)), ((0, 6), (0, 7)));
    assert_eq!(account.take_overdrafts(), [of(day, 6), of(next_day, 7)]);
}

#[test]
fn only_what_is_leased_and_not_spent_is_given_back() {
    let mut account = account(&[(PER_MINUTE, ShareSource::Own), (PER_DAY, ShareSource::Leased)]);
    let day = PER_DAY.period.window(noon());
    account.reserve(tokens(1), noon()).expect_err("nothing is leased");
    assert_eq!(account.take_shares(), []);
    account.add_share(PER_DAY, day, 30, 30);
    assert_eq!(account.take_shares(), [Overdraft { quota: PER_DAY, window: day, amount: 30 }]);
    assert_eq!(account.take_shares(), []);
}

#[test]
fn a_response_has_the_limits_per_minute_only() {
    let mut account = account(&[(PER_DAY, ShareSource::Leased), (PER_MINUTE, ShareSource::Own)]);
    assert_eq!(account.per_minute(Unit::Tokens, noon()).map(|state| state.limit), Some(100));
    assert_eq!(account.per_minute(Unit::Requests, noon()), None);
}

proptest! {
    /// Whatever is reserved and settled, in any order, the share and what was spent add up to what was leased. All calls together stay
    /// below the limit, since the store here grants everything.
    #[test]
    fn nothing_is_lost_or_invented(calls in prop::collection::vec((1..50_u64, 0..80_u64), 1..40)) {
        let quota = Quota { limit: 10_000, ..PER_DAY };
        let mut account = account(&[(quota, ShareSource::Leased)]);
        let day = quota.period.window(noon());
        let mut leased = 0;
        let mut spent = 0;
        for (estimate, actual) in calls {
            let reserved = account.reserve(tokens(estimate), noon()).or_else(|shortage| {
                let wanted = shortage.wanted.expect("within the limit");
                leased += wanted;
                account.add_share(quota, day, wanted, leased);
                account.reserve(tokens(estimate), noon())
            });
            account.settle(reserved.expect("leased"), tokens(actual));
            spent += actual;
        }
        let (share, over) = account.unsettled(quota, day);
        prop_assert_eq!(leased + over, spent + share);
    }
}

#[test]
fn an_engine_that_counts_nonsense_uses_a_limit_up_and_breaks_nothing() {
    let mut account = account(&[(PER_DAY, ShareSource::Leased), (PER_MINUTE, ShareSource::Own)]);
    let day = PER_DAY.period.window(noon());
    for _ in 0..2 {
        let reserved = account.reserve_nothing(noon());
        account.settle(reserved, tokens(u64::MAX));
    }
    assert_eq!(account.unsettled(PER_DAY, day), (0, u64::MAX));
    assert!(reserve(&mut account, 1, after(1)).is_err());
    assert_eq!(account.own_usage(PER_MINUTE, after(1)), Some(PER_MINUTE.limit));
}
