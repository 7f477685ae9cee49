//! The rights of a key in tests.

use std::sync::Arc;

use hob_core::{CallerRole, CollectionSet, KeyGrant, Reach};

/// A member's key without limits: all models and engines of this machine, tools that reach nothing, no documents. A test sets what it
/// is about.
pub fn member_grant(name: impl Into<Arc<str>>) -> KeyGrant {
    KeyGrant {
        name: name.into(),
        rule: None,
        role: CallerRole::Member,
        models: None,
        engines: None,
        cloud: false,
        reach: Reach::Pure,
        tools: None,
        memory: CollectionSet::none(),
        spending: None,
    }
}
