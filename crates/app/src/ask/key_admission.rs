//! Admits a request of a named key: the rights of the key apply from here on, and the request counts until it ends. Every way to ask
//! passes here, so tasks and agents use the rights and the budget of the key that made them.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;
use futures::stream::BoxStream;
use hob_core::{AskError, Caller, KeyGrant, KeyRing, LimitReached, Permit, RunningRequest};

use super::AskService;

/// A request that was admitted.
pub(super) struct Admitted<'a> {
    /// With the rights of its key.
    pub(super) caller: Cow<'a, Caller>,
    /// Keep it until the answer is complete; `None` if nothing is counted.
    pub(super) running: Option<RunningRequest>,
}

impl AskService {
    /// Applies the rights and limits of the key that the caller's permit names.
    pub(super) async fn admitted<'a>(&self, caller: Cow<'a, Caller>) -> Result<Admitted<'a>, AskError> {
        if caller.permit.key.is_none() {
            return Ok(Admitted { caller, running: None });
        }
        // The server has applied the rights already. Usually the key has not changed since, and then nothing is copied.
        if let Some(key) = caller.key.as_ref().filter(|key| self.keys.is_current(key)) {
            let running = begin(key).await?;
            return Ok(Admitted { caller, running });
        }
        let key = present_grant(self.keys.as_ref(), &caller.permit).await?;
        let Some(key) = key else { return Ok(Admitted { caller, running: None }) };
        let running = begin(&key).await?;
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
async fn begin(key: &KeyGrant) -> Result<Option<RunningRequest>, LimitReached> {
    match &key.spending {
        Some(spending) => spending.begin_request().await.map(Some),
        None => Ok(None),
    }
}

/// A stream whose request counts as running until it ends or is dropped.
pub(super) struct CountedStream<T> {
    items: BoxStream<'static, T>,
    running: Option<RunningRequest>,
}

impl<T: 'static> CountedStream<T> {
    pub(super) fn wrap(
        items: BoxStream<'static, T>,
        running: Option<RunningRequest>,
    ) -> BoxStream<'static, T> {
        match running {
            None => items,
            running => Box::pin(CountedStream { items, running }),
        }
    }
}

impl<T> Stream for CountedStream<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let this = self.get_mut();
        let next = std::task::ready!(this.items.as_mut().poll_next(context));
        if next.is_none() {
            this.running = None;
        }
        Poll::Ready(next)
    }
}

#[cfg(test)]
#[path = "key_admission_tests.rs"]
mod tests;
