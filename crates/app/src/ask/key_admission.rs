//! Admits a request of a named key: the rights of the key apply from here on, and the request counts until it ends. Every way to ask
//! passes here, so tasks and agents use the rights and the budget of the key that made them.

use std::borrow::Cow;
use std::sync::Arc;
use std::task::Poll;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use hob_core::{AskError, Caller, KeyGrant, KeyRing, LimitReached, Permit, RunningRequest};
use hob_telemetry::trace::{Span, end_with, request_span, under};

use super::AskService;

/// A request that was admitted.
pub(super) struct Admitted<'a> {
    /// With the rights of its key.
    pub(super) caller: Cow<'a, Caller>,
    /// Keep it until the answer is complete; `None` if nothing is counted.
    pub(super) running: Option<RunningRequest>,
}

/// A request that was admitted, with its span.
pub(super) struct Begun<'a> {
    pub(super) caller: Cow<'a, Caller>,
    pub(super) running: Option<RunningRequest>,
    pub(super) span: Span,
}

impl AskService {
    /// Opens the span of a request and admits it.
    pub(super) async fn begin<'a>(&self, caller: &'a Caller, model: &str) -> Result<Begun<'a>, AskError> {
        let mut span = request_span(&self.recorder.tracer, caller, model);
        let admitted = self.admitted(under(caller, &span)).await;
        if admitted.is_err() {
            end_with(&mut span, &admitted);
        }
        admitted.map(|Admitted { caller, running }| Begun { caller, running, span })
    }

    /// Applies the rights and limits of the key that the caller's permit names.
    pub(super) async fn admitted<'a>(&self, caller: Cow<'a, Caller>) -> Result<Admitted<'a>, AskError> {
        if caller.permit.key.is_none() {
            return Ok(Admitted { caller, running: None });
        }
        // The server has applied the rights already. Usually the key has not changed since, and then nothing is copied.
        if let Some(key) = caller.key.as_ref().filter(|key| self.keys.is_current(key)) {
            let running = begin_request(key).await?;
            return Ok(Admitted { caller, running });
        }
        let key = present_grant(self.keys.as_ref(), &caller.permit).await?;
        let Some(key) = key else { return Ok(Admitted { caller, running: None }) };
        let running = begin_request(&key).await?;
        Ok(Admitted { caller: Cow::Owned(caller.into_owned().under_key(key)), running })
    }
}

/// The rights that the key of a permit has now; `None` if the permit names no key. Looked up for every request and every call of the
/// tool `llm`, so that the tasks and runs of a changed or revoked key do not use its old rights.
pub(crate) async fn present_grant(
    keys: &dyn KeyRing,
    permit: &Permit,
) -> Result<Option<Arc<KeyGrant>>, AskError> {
    let Some(name) = &permit.key else { return Ok(None) };
    let rule = permit.rule.as_deref();
    if let Some(key) = keys.grant(name, rule) {
        return Ok(Some(key));
    }
    let stored = keys.stored_grant(name, rule).await;
    stored.map(Some).ok_or_else(|| AskError::KeyNotValid { name: Arc::clone(name) })
}

/// Counts a request of a key with limits.
async fn begin_request(key: &KeyGrant) -> Result<Option<RunningRequest>, LimitReached> {
    match &key.spending {
        Some(spending) => spending.begin_request().await.map(Some),
        None => Ok(None),
    }
}

/// The same items. Their request counts as running until they end or are dropped.
pub(super) fn counted<T: 'static>(
    items: BoxStream<'static, T>,
    running: Option<RunningRequest>,
) -> BoxStream<'static, T> {
    let Some(running) = running else { return items };
    let mut running = Some(running);
    let end = stream::poll_fn(move |_| {
        drop(running.take());
        Poll::Ready(None)
    });
    items.chain(end).boxed()
}

#[cfg(test)]
#[path = "key_admission_tests.rs"]
mod tests;
