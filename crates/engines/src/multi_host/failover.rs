//! Asks one host after another until one answers, and leaves a host that hangs. What a failure means is decided in `failure_class`.

use std::sync::Arc;

use futures::future::BoxFuture;
use hob_core::{Engine, EngineError, ModelInfo};
use hob_net::chosen_host::note_host;
use tokio::time::Instant;

use super::MultiHost;
use super::circuit_breaker::Failure;
use super::failure_class::{FailureClass, RequestKind, RetryRule, classify};
use super::host_check::{check_host, more_informative};
use super::host_table::{HostRequest, HostSlot, TableHost};
use crate::wire::resend::Resend;

/// The number of failed health checks in a row after which a host counts as hung.
pub(super) const MAX_FAILED_CHECKS: u32 = 2;

/// A host answers neither the request nor health checks.
struct Hung;

impl MultiHost {
    /// Tries one host after another until one answers, as far as retries are allowed.
    pub(super) async fn ask<'a, T>(
        &'a self,
        need: HostRequest<'a>,
        asked: RequestKind,
        question: impl Fn(Arc<dyn Engine>) -> BoxFuture<'a, Result<T, EngineError>> + Send + 'a,
    ) -> Result<(T, HostSlot), EngineError> {
        let mut tried = Vec::new();
        let mut has_retried = false;
        let mut last_error = None;
        self.looked_up().await;
        while let Some(mut slot) = self.table.take(need, &tried, Instant::now()) {
            tried.push(Arc::clone(slot.table_host()));
            if !slot.is_trusted() {
                match check_host(&mut slot, need.model).await {
                    Ok(true) => {}
                    Ok(false) => continue,
                    Err(error) => {
                        last_error = Some(more_informative(last_error, error));
                        continue;
                    }
                }
            }
            note_host(slot.host().address());
            let may_retry = self.options.resend == Resend::Unanswered && !has_retried;
            let answer = question(Arc::clone(slot.host()));
            let answer = match may_retry {
                true => self.unless_hung(need, &tried, slot.table_host(), answer).await,
                false => Ok(answer.await),
            };
            let (error, FailureClass { failure, retry }) = match answer {
                Ok(Ok(answer)) => {
                    slot.responded();
                    return Ok((answer, slot));
                }
                Ok(Err(error)) => {
                    let class = classify(&error, asked);
                    (error, class)
                }
                Err(Hung) => (
                    self.hung_error(slot.host()),
                    FailureClass { failure: Failure::Hard, retry: RetryRule::Once },
                ),
            };
            slot.failed(failure, Instant::now());
            if matches!(error, EngineError::ModelNotFound { .. }) {
                slot.remove_model(need.model);
            }
            match retry {
                RetryRule::Always => {}
                RetryRule::Once if may_retry => has_retried = true,
                RetryRule::Once | RetryRule::Never => return Err(error),
            }
            tracing::info!(engine = %self.key, host = slot.host().address(), %error, "host failed; trying another");
            last_error = Some(more_informative(last_error, error));
        }
        Err(self.no_answer_error(need.model, last_error, &tried))
    }

    /// The details of a model from the first host that reports them. A host without them may have failed, or have none to
    /// report, so its breaker learns nothing. Hosts with open breakers are asked only if there are no others.
    pub(super) async fn described(&self, need: HostRequest<'_>, model: &ModelInfo) -> Option<ModelInfo> {
        let mut tried = Vec::new();
        self.looked_up().await;
        while let Some(mut slot) = self.table.take(need, &tried, Instant::now()) {
            tried.push(Arc::clone(slot.table_host()));
            if slot.is_trusted() || matches!(check_host(&mut slot, need.model).await, Ok(true)) {
                let asked = slot.host().describe(model);
                let described = self.unless_hung(need, &tried, slot.table_host(), asked).await;
                match described {
                    Ok(Some(described)) => {
                        slot.responded();
                        return Some(described);
                    }
                    Ok(None) => {}
                    Err(Hung) => slot.failed(Failure::Hard, Instant::now()),
                }
            }
            if !self.table.has_another(need, &tried, Instant::now()) {
                return None;
            }
        }
        None
    }

    /// The answer, unless the host hangs and another host could be tried.
    async fn unless_hung<T>(
        &self,
        need: HostRequest<'_>,
        tried: &[Arc<TableHost>],
        host: &TableHost,
        answer: BoxFuture<'_, T>,
    ) -> Result<T, Hung> {
        let pause = self.options.health_check_after;
        let hung = async {
            let mut failed_checks = 0;
            while failed_checks < MAX_FAILED_CHECKS || !self.table.has_another(need, tried, Instant::now()) {
                tokio::time::sleep(pause).await;
                failed_checks = if host.is_healthy(pause).await { 0 } else { failed_checks + 1 };
            }
        };
        tokio::select! {
            biased;
            answer = answer => Ok(answer),
            // Dropping the request closes its connection.
            () = hung => Err(Hung),
        }
    }

    fn hung_error(&self, host: &Arc<dyn Engine>) -> EngineError {
        EngineError::Interrupted {
            engine: self.key.clone(),
            reason: format!(
                "{} accepts requests but answers nothing, not even health checks",
                host.address()
            ),
        }
    }
}
