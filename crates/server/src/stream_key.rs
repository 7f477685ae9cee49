//! The named key of a stream that stays open for long: the key may become invalid meanwhile.

use std::sync::Arc;

use axum::http::Extensions;
use hob_core::KeyGrant;
use hob_keys::KeyService;

use crate::request_context::RequestContext;

/// A key to check again while a stream is open.
pub(crate) struct CheckedKey {
    pub(crate) grant: Arc<KeyGrant>,
    pub(crate) keys: Arc<KeyService>,
}

impl CheckedKey {
    /// The key of a request; `None` without a named one. An identity from outside is in no list of keys: its provider decides.
    pub(crate) fn of(extensions: &Extensions, keys: Option<&Arc<KeyService>>) -> Option<Self> {
        let key = RequestContext::key(extensions).filter(|key| key.grant.rule.is_none())?;
        Some(CheckedKey { grant: Arc::clone(&key.grant), keys: Arc::clone(keys?) })
    }

    /// Whether the key still has the rights with which the stream began. If not, the client connects again, and gets what the key may have
    /// then.
    pub(crate) fn is_unchanged(&self) -> bool {
        let Some(now) = self.keys.valid(&self.grant.name) else { return false };
        now.grant.role == self.grant.role && now.grant.memory.names() == self.grant.memory.names()
    }
}
