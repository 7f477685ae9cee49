//! The account of one key: how many of its requests are running, and what it may still use. The usual case is decided in memory; only a
//! share that is used up asks the store.

use std::sync::Arc;
use std::time::Duration;

use hob_core::{Clock, LimitKind, LimitReached, PlannedCall};
use hob_db::DbResult;
use hob_sync::Mutex;
use hob_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use jiff::Timestamp;

use crate::account::{Account, Amounts, LimitState, Overdraft, Reservation, ShareSource, Shortage};
use crate::key::KeyRules;
use crate::limits::{Period, Quota, Unit};
use crate::options::{CallCost, PriceFn, StoreFailure};
use crate::refusal::limit_reached;
use crate::store::{KeyStore, Lease, QuotaWindow};

/// The completion tokens that are reserved for a call without a limit of its own.
const ASSUMED_COMPLETION: u64 = 1_024;

/// How long a failure of the store counts. A store that does not answer must not hold every request for as long as it takes to fail.
const FAILURE_COUNTS: Duration = Duration::from_secs(1);

/// When a request may try again that was refused because the store failed.
const RETRY_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// No limit of requests at once.
const UNLIMITED: u32 = u32::MAX;

/// What the accounts of all keys share.
pub(crate) struct MeterParts {
    pub(crate) store: Arc<dyn KeyStore>,
    pub(crate) price: PriceFn,
    pub(crate) on_failure: StoreFailure,
    pub(crate) clock: Arc<dyn Clock>,
}

/// The limits per minute of a key, for the headers of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateHeaders {
    pub limit: u64,
    pub remaining: u64,
    pub resets_in: Duration,
}

impl From<LimitState> for RateHeaders {
    fn from(state: LimitState) -> Self {
        RateHeaders { limit: state.limit, remaining: state.left, resets_in: state.resets_in }
    }
}

/// The account of one key. It outlives changes of the key.
pub(crate) struct Metered {
    id: Arc<str>,
    name: Arc<str>,
    parts: Arc<MeterParts>,
    account: Mutex<Account>,
    running: AtomicU32,
    most_running: AtomicU32,
    has_dollars: AtomicBool,
    /// Refusals since the start, by [`LimitKind`].
    refused: [AtomicU64; LimitKind::ALL.len()],
    /// Held while the store is asked, so that many requests at once ask once.
    leasing: tokio::sync::Mutex<()>,
    /// When the store last failed.
    failed_at: Mutex<Option<Timestamp>>,
}

impl Metered {
    pub(crate) fn new(id: Arc<str>, name: Arc<str>, parts: Arc<MeterParts>) -> Self {
        Metered {
            id,
            name,
            parts,
            account: Mutex::default(),
            running: AtomicU32::new(0),
            most_running: AtomicU32::new(UNLIMITED),
            has_dollars: AtomicBool::new(false),
            refused: Default::default(),
            leasing: tokio::sync::Mutex::default(),
            failed_at: Mutex::default(),
        }
    }

    pub(crate) fn set_rules(&self, rules: &KeyRules) {
        let is_shared = self.parts.store.is_shared();
        let source = |quota: Quota| match quota.period {
            Period::Minute if !is_shared => ShareSource::Own,
            _ => ShareSource::Leased,
        };
        let quotas: Vec<_> = rules.quotas().into_iter().map(|quota| (quota, source(quota))).collect();
        let has_dollars = quotas.iter().any(|(quota, _)| quota.unit == Unit::NanoDollars);
        self.has_dollars.store(has_dollars, Ordering::Relaxed);
        self.most_running.store(rules.parallel.unwrap_or(UNLIMITED), Ordering::Relaxed);
        self.account.lock().set_limits(&quotas);
    }

    /// How often each limit refused a request or a call since the start.
    pub(crate) fn refused(&self) -> impl Iterator<Item = (LimitKind, u64)> {
        let counts = self.refused.iter().map(|count| count.load(Ordering::Relaxed));
        LimitKind::ALL.into_iter().zip(counts)
    }

    pub(crate) fn count_refusal(&self, reached: &LimitReached) {
        let position = LimitKind::ALL.iter().position(|kind| *kind == reached.kind);
        if let Some(count) = position.and_then(|position| self.refused.get(position)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a request as running until [`Metered::end_running`]; false if as many as allowed are running.
    pub(crate) fn begin_running(&self) -> bool {
        let most = self.most_running.load(Ordering::Relaxed);
        let add = |running: u32| (running < most).then_some(running + 1);
        self.running.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    pub(crate) fn end_running(&self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    /// The refusal of a request, because others are running.
    pub(crate) fn too_many_running(&self) -> LimitReached {
        let most = self.most_running.load(Ordering::Relaxed);
        LimitReached {
            kind: LimitKind::Parallel,
            message: format!(
                "the key '{}' may have {most} requests at once, and they are running. Try again when one of them has ended",
                self.name
            ),
            retry_after: Some(Duration::from_secs(1)),
        }
    }

    /// The limits per minute: requests, then tokens.
    pub(crate) fn rates(&self) -> [Option<RateHeaders>; 2] {
        let now = self.parts.clock.now();
        let mut account = self.account.lock();
        [Unit::Requests, Unit::Tokens].map(|unit| account.per_minute(unit, now).map(RateHeaders::from))
    }

    /// What was used of a limit, from what the store knows.
    pub(crate) fn used(&self, quota: Quota, taken: u64, now: Timestamp) -> u64 {
        let mut account = self.account.lock();
        if let Some(used) = account.own_usage(quota, now) {
            return used;
        }
        let (share, over) = account.unsettled(quota, quota.period.window(now));
        taken.saturating_add(over).saturating_sub(share)
    }

    /// Writes what is not written, and gives shares back. Blocks.
    pub(crate) fn give_back(&self) -> DbResult<()> {
        self.write_overdrafts()?;
        let shares = self.account.lock().take_shares();
        self.return_shares(shares)
    }

    /// Gives back what is leased and not needed. Blocks.
    pub(crate) fn give_back_excess(&self) -> DbResult<()> {
        let excess = self.account.lock().take_excess(self.parts.clock.now());
        self.return_shares(excess)
    }

    /// What cannot be returned counts as spent: after a failure, the store may have it back or not.
    fn return_shares(&self, shares: Vec<Overdraft>) -> DbResult<()> {
        for share in shares {
            self.parts.store.give_back(&self.window(share.quota, share.window), share.amount)?;
        }
        Ok(())
    }

    /// Blocks.
    pub(crate) fn write_overdrafts(&self) -> DbResult<()> {
        let mut overdrafts = self.account.lock().take_overdrafts();
        while let Some(over) = overdrafts.pop() {
            if let Err(error) = self.parts.store.charge(&self.window(over.quota, over.window), over.amount) {
                overdrafts.push(over);
                self.account.lock().put_back(overdrafts);
                return Err(error);
            }
        }
        Ok(())
    }

    fn window(&self, quota: Quota, window: i64) -> QuotaWindow {
        QuotaWindow { key: Arc::clone(&self.id), quota: quota.id(), window }
    }

    /// Takes the amounts from the shares that are here. A shortage comes with the time at which it was found.
    pub(crate) fn take_now(&self, amounts: Amounts) -> Result<Reservation, (Shortage, Timestamp)> {
        let at = self.parts.clock.now();
        self.account.lock().reserve(amounts, at).map_err(|shortage| (shortage, at))
    }

    /// Takes the amounts, with new shares where they are needed.
    pub(crate) async fn take(self: &Arc<Self>, amounts: Amounts) -> Result<Reservation, LimitReached> {
        let (shortage, at) = match self.take_now(amounts) {
            Ok(reservation) => return Ok(reservation),
            Err(shortage) => shortage,
        };
        match shortage.wanted {
            Some(_) => self.take_with_leases(amounts).await,
            None => Err(limit_reached(&self.name, &shortage, at)),
        }
    }

    /// Replaces what was reserved by what was used.
    pub(crate) fn settle(&self, reservation: Reservation, used: Amounts) {
        self.account.lock().settle(reservation, used);
    }

    async fn take_with_leases(self: &Arc<Self>, amounts: Amounts) -> Result<Reservation, LimitReached> {
        let _leasing = self.leasing.lock().await;
        loop {
            // Another request may have leased a share in the meantime.
            let (shortage, at) = match self.take_now(amounts) {
                Ok(reservation) => return Ok(reservation),
                Err(shortage) => shortage,
            };
            let Some(wanted) = shortage.wanted else { return Err(limit_reached(&self.name, &shortage, at)) };
            if self.has_just_failed(at) {
                return self.take_without_store(at);
            }
            if let Err(error) = self.lease(&shortage, wanted).await {
                let then = match self.parts.on_failure {
                    StoreFailure::Allow => "answered without limits",
                    StoreFailure::Refuse => "refused",
                };
                tracing::warn!(
                    key = %self.name,
                    %error,
                    "the limits of a key cannot be read; its requests are {then}. 'hob doctor' checks the \
                     database"
                );
                *self.failed_at.lock() = Some(self.parts.clock.now());
                return self.take_without_store(at);
            }
        }
    }

    fn has_just_failed(&self, now: Timestamp) -> bool {
        self.failed_at.lock().is_some_and(|at| now.duration_since(at).unsigned_abs() < FAILURE_COUNTS)
    }

    fn take_without_store(&self, at: Timestamp) -> Result<Reservation, LimitReached> {
        match self.parts.on_failure {
            StoreFailure::Allow => Ok(self.account.lock().reserve_nothing(at)),
            StoreFailure::Refuse => Err(LimitReached {
                kind: LimitKind::Unknown,
                message: format!(
                    "the limits of the key '{}' cannot be read now, so its requests are refused. Try again in a moment",
                    self.name
                ),
                retry_after: Some(RETRY_AFTER_FAILURE),
            }),
        }
    }

    /// Asks the store for a share, and notes the answer.
    async fn lease(self: &Arc<Self>, shortage: &Shortage, wanted: u64) -> DbResult<()> {
        let Shortage { quota, window, .. } = *shortage;
        let this = Arc::clone(self);
        // Notes the answer itself: if the client leaves now, no one waits for it, and the share would be lost.
        let leased = hob_db::spawn_blocking(move || this.lease_share(quota, window, wanted));
        match leased.await {
            Ok(leased) => leased,
            // A panic in the store is a bug; nothing was leased.
            Err(_) => {
                self.note_lease(quota, window, wanted, Lease { granted: 0, taken: quota.limit });
                Ok(())
            }
        }
    }

    /// Blocks.
    fn lease_share(&self, quota: Quota, window: i64, wanted: u64) -> DbResult<()> {
        self.write_overdrafts()?;
        let lease = self.parts.store.lease(&self.window(quota, window), wanted, quota.limit)?;
        self.note_lease(quota, window, wanted, lease);
        Ok(())
    }

    fn note_lease(&self, quota: Quota, window: i64, wanted: u64, lease: Lease) {
        let Lease { granted, taken } = lease;
        // Not the time of the question: after a slow answer, a refusal would be too old to count, and the store would be asked again.
        let now = self.parts.clock.now();
        let mut account = self.account.lock();
        match granted {
            0 => account.note_refusal(quota, window, wanted, taken, now),
            _ => account.add_share(quota, window, granted, taken),
        }
    }

    pub(crate) fn estimate(&self, call: &PlannedCall<'_>) -> Result<Estimate, LimitReached> {
        let completion = planned_completion(call);
        let tokens = call.prompt_tokens.saturating_add(completion);
        if tokens == 0 {
            self.check_uncounted(call)?;
        }
        let price = self.price(call.engine, call.model, call.prompt_tokens, completion)?;
        let amounts = Amounts { requests: 0, tokens, nano_dollars: price.unwrap_or_default() };
        Ok(Estimate { amounts, is_priced: price.is_some() })
    }

    /// The limit of the answer with which the call fits into what is left; `None` if it cannot be lowered. A limit that the caller did not
    /// set must not be the reason to refuse a call.
    pub(crate) fn lowered_completion(&self, call: &PlannedCall<'_>) -> Option<u64> {
        let (planned, lowest) = (planned_completion(call), call.lowest_completion?);
        let now = self.parts.clock.now();
        let left = |unit| self.account.lock().left(unit, now).unwrap_or(u64::MAX);
        let by_tokens = left(Unit::Tokens).saturating_sub(call.prompt_tokens);
        let cost = |completion| self.cost(call.engine, call.model, call.prompt_tokens, completion).ok();
        let (prompt_cost, whole_cost) = (cost(0)?, cost(planned)?);
        let for_answer = left(Unit::NanoDollars).saturating_sub(prompt_cost);
        let by_dollars = match whole_cost.saturating_sub(prompt_cost) {
            answer_cost if answer_cost <= for_answer => planned,
            answer_cost => {
                let share = u128::from(planned) * u128::from(for_answer) / u128::from(answer_cost);
                u64::try_from(share).unwrap_or(planned)
            }
        };
        let lowered = by_tokens.min(by_dollars).max(lowest);
        (lowered < planned).then_some(lowered)
    }

    /// Sound and pictures have no tokens, so the price of tokens does not say what they cost.
    fn check_uncounted(&self, call: &PlannedCall<'_>) -> Result<(), LimitReached> {
        match self.cost(call.engine, call.model, 1, 1)? {
            0 => Ok(()),
            _ => Err(LimitReached {
                kind: LimitKind::Budget,
                message: format!(
                    "the key '{}' has a budget in dollars, and what sound and pictures of the model '{}' cost is not known. Use a local model, or a \
                     key without a budget in dollars",
                    self.name, call.model
                ),
                retry_after: None,
            }),
        }
    }

    pub(crate) fn cost(
        &self,
        engine: &str,
        model: &str,
        prompt: u64,
        completion: u64,
    ) -> Result<u64, LimitReached> {
        self.price(engine, model, prompt, completion).map(Option::unwrap_or_default)
    }

    /// What a call costs; `None` if it is free, or if the key has no budget in dollars.
    fn price(
        &self,
        engine: &str,
        model: &str,
        prompt: u64,
        completion: u64,
    ) -> Result<Option<u64>, LimitReached> {
        if !self.has_dollars.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match (self.parts.price)(engine, model, prompt, completion) {
            CallCost::Free => Ok(None),
            CallCost::NanoDollars(nano) => Ok(Some(nano)),
            CallCost::Unknown => Err(LimitReached {
                kind: LimitKind::Budget,
                message: format!(
                    "the key '{}' has a budget in dollars, and the price of the model '{model}' is not known. Set it in [savings.prices]",
                    self.name
                ),
                retry_after: None,
            }),
        }
    }
}

/// What a call is expected to use.
pub(crate) struct Estimate {
    pub(crate) amounts: Amounts,
    /// Whether it costs money.
    pub(crate) is_priced: bool,
}

fn planned_completion(call: &PlannedCall<'_>) -> u64 {
    call.completion_tokens.unwrap_or(ASSUMED_COMPLETION)
}

#[cfg(all(test, shuttle))]
#[path = "metered_interleaving_tests.rs"]
mod interleavings;
