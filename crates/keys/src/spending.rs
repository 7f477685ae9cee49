//! Admits the requests and calls of one key, and counts them until they end.

use std::future::ready;
use std::sync::Arc;

use futures::future::Either;
use hob_core::{CallReservation, LimitAnswer, LimitReached, PlannedCall, RunningRequest, Spending, Usage};

use crate::account::{Amounts, Reservation};
use crate::metered::{Estimate, Metered};

const ONE_REQUEST: Amounts = Amounts { requests: 1, tokens: 0, nano_dollars: 0 };

/// The account of a key, as requests use it.
pub(crate) struct KeySpending(pub(crate) Arc<Metered>);

impl Spending for KeySpending {
    fn begin_request(&self) -> LimitAnswer<'_, RunningRequest> {
        if let Some(running) = self.begin_now() {
            return Either::Left(ready(Ok(running)));
        }
        let begun = async move { self.begin().await.inspect_err(|reached| self.0.count_refusal(reached)) };
        Either::Right(Box::pin(begun))
    }

    fn reserve<'a>(&'a self, call: PlannedCall<'a>) -> LimitAnswer<'a, Box<dyn CallReservation>> {
        if let Some(reserved) = self.reserve_now(call) {
            return Either::Left(ready(Ok(reserved)));
        }
        let reserved = async move {
            self.reserve_estimate(call).await.inspect_err(|reached| self.0.count_refusal(reached))
        };
        Either::Right(Box::pin(reserved))
    }
}

impl KeySpending {
    /// `None` if the request needs a new share, or is refused.
    fn begin_now(&self) -> Option<RunningRequest> {
        let running = Running::begin(&self.0)?;
        self.0.take_now(ONE_REQUEST).ok()?;
        Some(RunningRequest(Box::new(running)))
    }

    async fn begin(&self) -> Result<RunningRequest, LimitReached> {
        let running = Running::begin(&self.0).ok_or_else(|| self.0.too_many_running())?;
        self.0.take(ONE_REQUEST).await?;
        Ok(RunningRequest(Box::new(running)))
    }

    /// `None` if the call needs a new share or a lower limit, or is refused.
    fn reserve_now(&self, call: PlannedCall<'_>) -> Option<Box<dyn CallReservation>> {
        let estimate = self.0.estimate(&call).ok()?;
        let reservation = self.0.take_now(estimate.amounts).ok()?;
        Some(Box::new(self.reserved(call, estimate, reservation)))
    }

    async fn reserve_estimate(
        &self,
        call: PlannedCall<'_>,
    ) -> Result<Box<dyn CallReservation>, LimitReached> {
        let (mut call, mut lowered) = (call, None);
        let (estimate, reservation) = loop {
            let estimate = self.0.estimate(&call)?;
            match self.0.take(estimate.amounts).await {
                Ok(reservation) => break (estimate, reservation),
                // Only a refusal says how much is left: until then, the store has not been asked. Each round lowers the limit.
                Err(reached) => lowered = Some(self.0.lowered_completion(&call).ok_or(reached)?),
            }
            call.completion_tokens = lowered;
        };
        let mut reserved = self.reserved(call, estimate, reservation);
        reserved.lowered = lowered;
        Ok(Box::new(reserved))
    }

    fn reserved(&self, call: PlannedCall<'_>, estimate: Estimate, reservation: Reservation) -> Reserved {
        let Estimate { amounts, is_priced } = estimate;
        Reserved {
            metered: Arc::clone(&self.0),
            reservation,
            estimate: amounts,
            lowered: None,
            priced: is_priced
                .then(|| PricedCall { engine: call.engine.to_owned(), model: call.model.to_owned() }),
            is_settled: false,
        }
    }
}

/// A request that is running.
struct Running(Arc<Metered>);

impl Running {
    /// `None` if too many are running.
    fn begin(metered: &Arc<Metered>) -> Option<Self> {
        metered.begin_running().then(|| Running(Arc::clone(metered)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.end_running();
    }
}

/// What decides the price of a call.
struct PricedCall {
    engine: String,
    model: String,
}

/// What is reserved for one call.
struct Reserved {
    metered: Arc<Metered>,
    reservation: Reservation,
    /// What counts if the end does not say what was used, or what it costs.
    estimate: Amounts,
    /// The limit of the answer, if it had to be lowered.
    lowered: Option<u64>,
    /// `None` if the call is free, or without a budget in dollars.
    priced: Option<PricedCall>,
    is_settled: bool,
}

impl Reserved {
    fn settle_with(&mut self, used: Amounts) {
        if !std::mem::replace(&mut self.is_settled, true) {
            self.metered.settle(self.reservation, used);
        }
    }
}

impl CallReservation for Reserved {
    fn lowered_completion(&self) -> Option<u64> {
        self.lowered
    }

    fn settle(mut self: Box<Self>, usage: Usage) {
        let Usage { prompt_tokens, completion_tokens, .. } = usage;
        let cost = |PricedCall { engine, model }: &PricedCall| {
            self.metered.cost(engine, model, prompt_tokens, completion_tokens).ok()
        };
        let nano_dollars = self.priced.as_ref().and_then(cost);
        self.settle_with(Amounts {
            requests: 0,
            tokens: prompt_tokens.saturating_add(completion_tokens),
            nano_dollars: nano_dollars.unwrap_or(self.estimate.nano_dollars),
        });
    }

    fn keep(mut self: Box<Self>) {
        let estimate = self.estimate;
        self.settle_with(estimate);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.settle_with(Amounts::default());
    }
}
