//! What one key uses, in memory. Each limit has a window of time and a share of it that this process may spend. Knows no store: it says
//! what it needs, and gets it. Times are passed in.

use std::time::Duration;

use jiff::Timestamp;

use crate::limits::{Period, Quota, Unit, share_of};

/// How long a refusal of the store counts, so that a key that has nothing left does not ask for every request.
const REFUSAL_COUNTS: Duration = Duration::from_secs(1);

/// Amounts of what is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Amounts {
    pub(crate) requests: u64,
    pub(crate) tokens: u64,
    pub(crate) nano_dollars: u64,
}

impl Amounts {
    fn of(&self, unit: Unit) -> u64 {
        match unit {
            Unit::Requests => self.requests,
            Unit::Tokens => self.tokens,
            Unit::NanoDollars => self.nano_dollars,
        }
    }
}

/// Where the share of a limit comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShareSource {
    /// The whole limit is this process's own, and counts in memory only.
    Own,
    /// The store leases shares of it.
    Leased,
}

/// What a request or a call has taken from the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reservation {
    at: Timestamp,
    amounts: Amounts,
    /// The number of limits that were made until then. Later ones have nothing to do with it.
    limits_made: u64,
}

/// One limit.
#[derive(Debug)]
struct Meter {
    /// Limits are numbered in the order in which they are made, from 0.
    number: u64,
    quota: Quota,
    source: ShareSource,
    /// Its window, in seconds since 1970, and its end.
    window: i64,
    end: i64,
    /// What this process may spend now.
    share: u64,
    /// What all servers have taken in this window, as far as is known.
    taken: u64,
    /// What the store did not grant, and when.
    refused: Option<(u64, Timestamp)>,
}

impl Meter {
    fn new(number: u64, quota: Quota, source: ShareSource) -> Self {
        Meter { number, quota, source, window: i64::MIN, end: i64::MIN, share: 0, taken: 0, refused: None }
    }

    /// Begins another window when that of before is over. A clock that was put back a little stays in the window; one that was far ahead
    /// by mistake, by more than a period, does not.
    fn roll(&mut self, now: Timestamp) {
        let earliest = self.window.saturating_sub(self.end.saturating_sub(self.window));
        if (earliest..self.end).contains(&now.as_second()) {
            return;
        }
        self.window = self.quota.period.window(now);
        self.end = self.quota.period.end(self.window).as_second();
        self.taken = 0;
        self.refused = None;
        self.share = match self.source {
            ShareSource::Own => self.quota.limit,
            ShareSource::Leased => 0,
        };
    }

    /// When the window of `at` begins. Usually it is the current one, and the calendar is not asked, which takes long for months.
    fn window_of(&self, at: Timestamp) -> i64 {
        match (self.window..self.end).contains(&at.as_second()) {
            true => self.window,
            false => self.quota.period.window(at),
        }
    }

    fn left(&self) -> u64 {
        match self.source {
            ShareSource::Own => self.share,
            ShareSource::Leased => self.quota.limit.saturating_add(self.share).saturating_sub(self.taken),
        }
    }

    /// What may be spent of the share. What was spent beyond the limit is paid from it first.
    fn spendable(&self) -> u64 {
        self.share.min(self.left())
    }
}

/// A limit that has not enough left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shortage {
    pub(crate) quota: Quota,
    pub(crate) window: i64,
    /// What the request needs.
    pub(crate) amount: u64,
    /// What it has.
    pub(crate) left: u64,
    /// What the store should lease at least; `None` if it cannot help.
    pub(crate) wanted: Option<u64>,
    pub(crate) resets_in: Duration,
}

/// An amount that was spent beyond what was leased, to be written to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overdraft {
    pub(crate) quota: Quota,
    pub(crate) window: i64,
    pub(crate) amount: u64,
}

/// What is left of a limit per minute, for a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LimitState {
    pub(crate) limit: u64,
    pub(crate) left: u64,
    pub(crate) resets_in: Duration,
}

/// The limits of one key.
#[derive(Debug, Default)]
pub(crate) struct Account {
    meters: Vec<Meter>,
    limits_made: u64,
    overdrafts: Vec<Overdraft>,
}

impl Account {
    /// Replaces the limits. What was used in the current window still counts.
    pub(crate) fn set_limits(&mut self, quotas: &[(Quota, ShareSource)]) {
        let mut old = std::mem::take(&mut self.meters);
        let mut made = self.limits_made;
        let meter = |(quota, source): &(Quota, ShareSource)| {
            let known =
                old.iter().position(|meter| meter.quota.id() == quota.id() && meter.source == *source);
            let Some(mut meter) = known.map(|index| old.swap_remove(index)) else {
                made += 1;
                return Meter::new(made - 1, *quota, *source);
            };
            if meter.source == ShareSource::Own {
                let used = meter.quota.limit.saturating_sub(meter.share);
                meter.share = quota.limit.saturating_sub(used);
            }
            meter.quota = *quota;
            meter.refused = None;
            meter
        };
        self.meters = quotas.iter().map(meter).collect();
        self.limits_made = made;
    }

    /// Takes the amounts from all limits, or from none.
    pub(crate) fn reserve(&mut self, amounts: Amounts, now: Timestamp) -> Result<Reservation, Shortage> {
        // A limit of which nothing is taken is not touched, so it stays in the caches of other processors.
        let is_needed = |meter: &&mut Meter| amounts.of(meter.quota.unit) > 0;
        for meter in self.meters.iter_mut().filter(is_needed) {
            meter.roll(now);
            let amount = amounts.of(meter.quota.unit);
            let spendable = meter.spendable();
            if amount <= spendable {
                continue;
            }
            let wanted = amount - spendable;
            let is_refused = meter.refused.is_some_and(|(refused, at)| {
                wanted >= refused && now.duration_since(at).unsigned_abs() < REFUSAL_COUNTS
            });
            let may_ask = meter.source == ShareSource::Leased && !is_refused && amount <= meter.quota.limit;
            return Err(Shortage {
                quota: meter.quota,
                window: meter.window,
                amount,
                left: meter.left(),
                wanted: may_ask.then_some(wanted),
                resets_in: seconds_between(now, meter.end),
            });
        }
        for meter in self.meters.iter_mut().filter(is_needed) {
            meter.share -= amounts.of(meter.quota.unit);
        }
        Ok(Reservation { at: now, amounts, limits_made: self.limits_made })
    }

    /// Takes nothing: what is used is charged at the end.
    pub(crate) fn reserve_nothing(&self, now: Timestamp) -> Reservation {
        Reservation { at: now, amounts: Amounts::default(), limits_made: self.limits_made }
    }

    /// Replaces what was reserved by what was used. A limit that was added in the meantime does not change: nothing was taken from it, so
    /// nothing goes back. The time of the reservation says which window this belongs to, so the clock is not read again.
    pub(crate) fn settle(&mut self, reservation: Reservation, used: Amounts) {
        let Reservation { at, amounts, limits_made } = reservation;
        for meter in self.meters.iter_mut().filter(|meter| meter.number < limits_made) {
            let (reserved, used) = (amounts.of(meter.quota.unit), used.of(meter.quota.unit));
            if used == reserved {
                continue;
            }
            // A limit of which nothing was reserved may still be in an older window.
            if reserved == 0 && at.as_second() >= meter.end {
                meter.roll(at);
            }
            let window = meter.window_of(at);
            let is_current = window == meter.window;
            if used < reserved {
                // What is left of a window that is over is of no use.
                if is_current {
                    meter.share = meter.share.saturating_add(reserved - used);
                }
                continue;
            }
            let more = used - reserved;
            let from_share = if is_current { more.min(meter.share) } else { 0 };
            meter.share -= from_share;
            let amount = more - from_share;
            if amount > 0 && meter.source == ShareSource::Leased {
                if is_current {
                    meter.taken = meter.taken.saturating_add(amount);
                }
                add_overdraft(&mut self.overdrafts, Overdraft { quota: meter.quota, window, amount });
            }
        }
    }

    /// The store has leased this. `taken` is what all servers have, this lease included.
    pub(crate) fn add_share(&mut self, quota: Quota, window: i64, granted: u64, taken: u64) {
        if let Some(meter) = self.meter(quota, window) {
            meter.share = meter.share.saturating_add(granted);
            meter.taken = taken;
        }
    }

    /// The store has not leased `wanted`.
    pub(crate) fn note_refusal(
        &mut self,
        quota: Quota,
        window: i64,
        wanted: u64,
        taken: u64,
        now: Timestamp,
    ) {
        if let Some(meter) = self.meter(quota, window) {
            meter.taken = taken;
            meter.refused = Some((wanted, now));
        }
    }

    fn meter(&mut self, quota: Quota, window: i64) -> Option<&mut Meter> {
        self.meters.iter_mut().find(|meter| meter.quota.id() == quota.id() && meter.window == window)
    }

    /// The overdrafts that are not written yet.
    pub(crate) fn take_overdrafts(&mut self) -> Vec<Overdraft> {
        std::mem::take(&mut self.overdrafts)
    }

    /// Overdrafts that could not be written.
    pub(crate) fn put_back(&mut self, overdrafts: Vec<Overdraft>) {
        for over in overdrafts {
            add_overdraft(&mut self.overdrafts, over);
        }
    }

    /// The leased shares that are not spent, to be given back. Later reservations need new ones.
    pub(crate) fn take_shares(&mut self) -> Vec<Overdraft> {
        let leased =
            self.meters.iter_mut().filter(|meter| meter.source == ShareSource::Leased && meter.share > 0);
        leased
            .map(|meter| {
                let amount = std::mem::take(&mut meter.share);
                Overdraft { quota: meter.quota, window: meter.window, amount }
            })
            .collect()
    }

    /// What is leased and not needed, to be given back: of calls at once that use less than they reserve, it adds up. A usual share stays
    /// here, so that the next calls need not ask the store.
    pub(crate) fn take_excess(&mut self, now: Timestamp) -> Vec<Overdraft> {
        let excess = |meter: &mut Meter| {
            meter.roll(now);
            let usual = share_of(meter.left());
            if meter.source == ShareSource::Own || meter.share <= usual.saturating_mul(2) {
                return None;
            }
            let amount = meter.share - usual;
            meter.share = usual;
            meter.taken = meter.taken.saturating_sub(amount);
            Some(Overdraft { quota: meter.quota, window: meter.window, amount })
        };
        self.meters.iter_mut().filter_map(excess).collect()
    }

    /// What this process has not spent of its shares, and what it has spent beyond them but not written.
    pub(crate) fn unsettled(&self, quota: Quota, window: i64) -> (u64, u64) {
        let is_it = |other: Quota, at: i64| other.id() == quota.id() && at == window;
        let share =
            self.meters.iter().find(|meter| is_it(meter.quota, meter.window)).map_or(0, |meter| meter.share);
        let over = self
            .overdrafts
            .iter()
            .filter(|over| is_it(over.quota, over.window))
            .map(|over| over.amount)
            .fold(0, u64::saturating_add);
        (share, over)
    }

    /// What was used of the limits that only this process counts.
    pub(crate) fn own_usage(&mut self, quota: Quota, now: Timestamp) -> Option<u64> {
        let meter = self.meters.iter_mut().find(|meter| meter.quota.id() == quota.id())?;
        meter.roll(now);
        (meter.source == ShareSource::Own).then(|| meter.quota.limit.saturating_sub(meter.share))
    }

    /// What is left of the limit of this unit that has the least left, as far as is known; `None` without a limit.
    pub(crate) fn left(&mut self, unit: Unit, now: Timestamp) -> Option<u64> {
        let of_unit = self.meters.iter_mut().filter(|meter| meter.quota.unit == unit);
        of_unit
            .map(|meter| {
                meter.roll(now);
                meter.left()
            })
            .min()
    }

    /// What is left of the limit per minute of this unit, if there is one.
    pub(crate) fn per_minute(&mut self, unit: Unit, now: Timestamp) -> Option<LimitState> {
        let is_it = |meter: &&mut Meter| meter.quota.unit == unit && meter.quota.period == Period::Minute;
        let meter = self.meters.iter_mut().find(is_it)?;
        meter.roll(now);
        Some(LimitState {
            limit: meter.quota.limit,
            left: meter.left(),
            resets_in: seconds_between(now, meter.end),
        })
    }
}

/// One for each limit and window, so that there are few, however long the store is away.
fn add_overdraft(overdrafts: &mut Vec<Overdraft>, over: Overdraft) {
    let is_same = |known: &&mut Overdraft| known.quota.id() == over.quota.id() && known.window == over.window;
    match overdrafts.iter_mut().find(is_same) {
        Some(known) => known.amount = known.amount.saturating_add(over.amount),
        None => overdrafts.push(over),
    }
}

fn seconds_between(now: Timestamp, end: i64) -> Duration {
    let left = i128::from(end) * 1_000_000_000 - now.as_nanosecond();
    Duration::from_nanos(u64::try_from(left.max(0)).unwrap_or(u64::MAX))
}

#[cfg(test)]
#[path = "account_tests.rs"]
mod tests;
