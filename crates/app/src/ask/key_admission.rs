//! Admits a request of a named key: the rights of the key apply from here on, and the request counts until it ends. Every way to ask
//! passes here, so tasks and agents use the rights and the budget of the key that made them.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;
use futures::stream::BoxStream;
use hob_core::tool::{MEMORY_SEARCH_TOOLS, OWNER_TOOLS};
use hob_core::{AskError, Caller, CallerRole, FirstCalls, KeyGrant, KeyRing, Permit, RunningRequest};

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
        let key = present_grant(self.keys.as_ref(), &caller.permit).await?;
        let Some(key) = key else { return Ok(Admitted { caller, running: None }) };
        let running = match &key.spending {
            Some(spending) => Some(spending.begin_request().await?),
            None => None,
        };
        Ok(Admitted { caller: Cow::Owned(with_key(&caller, key)), running })
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

/// The caller with the rights of its key, and no others.
pub(super) fn with_key(caller: &Caller, key: Arc<KeyGrant>) -> Caller {
    let is_owners = key.role == CallerRole::Owner;
    let narrowed = |permit: &Permit| {
        let mut permit = key.narrow(permit);
        if !is_owners {
            permit.except.extend(OWNER_TOOLS.map(Cow::Borrowed));
        }
        if key.memory.is_empty() {
            permit.except.extend(MEMORY_SEARCH_TOOLS.map(Cow::Borrowed));
        }
        permit
    };
    let permit = narrowed(&caller.permit);
    let first_calls = caller.first_calls.as_ref().map(|first| FirstCalls {
        calls: first.calls.clone(),
        permit: narrowed(&first.permit),
        results: first.results.clone(),
    });
    let role = match caller.role {
        role if is_owners => role,
        // The key pays, but a message of a sender is no request of a member.
        CallerRole::ChannelSender => CallerRole::ChannelSender,
        CallerRole::Owner | CallerRole::Member | CallerRole::Stranger => CallerRole::Member,
    };
    // Field by field, because a clone would also count the references of the key that all threads share.
    Caller {
        run: Arc::clone(&caller.run),
        source: caller.source,
        role,
        permit,
        key: Some(key),
        end_user: caller.end_user.clone(),
        tally: caller.tally.clone(),
        agent: caller.agent.clone(),
        memory: caller.memory.clone(),
        first_calls,
        trace_parent: caller.trace_parent,
        request_id: caller.request_id.clone(),
        route: caller.route,
        queued: caller.queued,
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
