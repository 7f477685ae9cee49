//! The keys in memory. A request reads a snapshot: no database, no lock.

use std::collections::HashMap;
use std::sync::Arc;

use hob_core::{CallerRole, CollectionName, CollectionSet, KeyGrant, LimitKind, ModelPatterns, Spending};
use jiff::Timestamp;

use crate::key::{ApiKey, KeyRole, KeyStatus};
use crate::metered::{MeterParts, Metered, RateHeaders};
use crate::secret::{SecretHash, id_of};
use crate::spending::KeySpending;
use crate::store::StoredKey;

/// A key in memory.
pub struct ActiveKey {
    pub key: ApiKey,
    pub grant: Arc<KeyGrant>,
    /// `None` for an identity from outside, which has no secret.
    hash: Option<SecretHash>,
    previous_hash: Option<SecretHash>,
    pub(crate) metered: Arc<Metered>,
}

impl ActiveKey {
    /// The account of an identity from outside, with the rights of a rule.
    pub(crate) fn of_identity(key: ApiKey, metered: Arc<Metered>, rule: Arc<str>) -> Self {
        let grant = Arc::new(KeyGrant { rule: Some(rule), ..grant(&key, &metered) });
        ActiveKey { key, grant, hash: None, previous_hash: None, metered }
    }

    /// Whether nothing but its owner refers to it: no token, no request and no call.
    pub(crate) fn is_unused(self: &Arc<Self>) -> bool {
        // The account is referred to by this, and by the rights if they have limits.
        let own = 1 + usize::from(self.grant.spending.is_some());
        Arc::strong_count(self) == 1
            && Arc::strong_count(&self.grant) == 1
            && Arc::strong_count(&self.metered) == own
    }

    /// The limits per minute: requests, then tokens.
    pub fn rates(&self) -> [Option<RateHeaders>; 2] {
        match self.grant.spending {
            Some(_) => self.metered.rates(),
            None => [None, None],
        }
    }

    fn is_valid(&self, now: impl FnOnce() -> Timestamp) -> bool {
        self.key.status == KeyStatus::Active && !self.is_expired(now)
    }

    /// Most keys have no end, and then the clock is not read.
    fn is_expired(&self, now: impl FnOnce() -> Timestamp) -> bool {
        self.key.expires_at.is_some() && self.key.is_expired(now())
    }

    fn fits(&self, sent: &str, now: impl FnOnce() -> Timestamp) -> bool {
        let sent = SecretHash::of(sent);
        let is_current = self.hash.is_some_and(|hash| hash.is(&sent));
        let is_previous = self.previous_hash.is_some_and(|hash| hash.is(&sent));
        is_current || (is_previous && self.key.previous_until.is_some_and(|until| now() < until))
    }
}

/// What the text that a client sent as its key is.
pub enum KeyCheck {
    Valid(Arc<ActiveKey>),
    /// The secret is right, and the key is not valid; why completes "the key 'ana' is …".
    Invalid {
        name: Arc<str>,
        why: &'static str,
    },
    /// No secret of a key.
    Unknown,
    /// It may be one: the keys could not be read yet.
    Unread,
}

/// All keys at one time.
#[derive(Default)]
pub struct KeySnapshot {
    by_id: HashMap<Arc<str>, Arc<ActiveKey>>,
    by_name: HashMap<Arc<str>, Arc<ActiveKey>>,
    /// The number of changes of the store when this was read.
    pub(crate) changes: i64,
    has_keys: bool,
    is_unread: bool,
}

/// Keys whose refusals are counted by name.
const NAMED_REFUSALS: usize = 50;

/// The name for the refusals of all other keys. No key can have it.
const OTHER_KEYS: &str = "(other)";

/// Unlike any number of changes, so that the keys are read as soon as that is possible.
const NO_CHANGES_KNOWN: i64 = -1;

impl KeySnapshot {
    /// Before the keys could be read. There may be some, so callers from other machines need one.
    pub(crate) fn unread() -> Self {
        KeySnapshot { changes: NO_CHANGES_KNOWN, has_keys: true, is_unread: true, ..KeySnapshot::default() }
    }

    /// The keys of the store. The accounts of `old` continue.
    pub(crate) fn new(
        stored: Vec<StoredKey>,
        changes: i64,
        old: &KeySnapshot,
        parts: &Arc<MeterParts>,
    ) -> Self {
        let mut snapshot = KeySnapshot { changes, ..KeySnapshot::default() };
        for StoredKey { key, hash, previous_hash } in stored {
            let (id, name) = (Arc::clone(&key.id), key.name.shared());
            let metered = match old.by_id.get(&id) {
                Some(known) => Arc::clone(&known.metered),
                None => Arc::new(Metered::new(Arc::clone(&id), Arc::clone(&name), Arc::clone(parts))),
            };
            metered.set_rules(&key.rules);
            snapshot.has_keys = true;
            let grant = Arc::new(grant(&key, &metered));
            let active = Arc::new(ActiveKey { key, grant, hash: Some(hash), previous_hash, metered });
            snapshot.by_id.insert(id, Arc::clone(&active));
            snapshot.by_name.insert(name, active);
        }
        snapshot
    }

    /// Whether a key was ever created, as far as is known. Disabling or revoking the last one must not open the server to everyone.
    pub fn has_keys(&self) -> bool {
        self.has_keys
    }

    /// Whether the keys could not be read yet.
    pub(crate) fn is_unread(&self) -> bool {
        self.is_unread
    }

    /// Checks the text that a client sent.
    pub fn check(&self, sent: &str, now: impl Fn() -> Timestamp) -> KeyCheck {
        let Some(id) = id_of(sent) else { return KeyCheck::Unknown };
        let Some(key) = self.by_id.get(id) else {
            return if self.is_unread { KeyCheck::Unread } else { KeyCheck::Unknown };
        };
        if !key.fits(sent, &now) {
            return KeyCheck::Unknown;
        }
        let why = match key.key.status {
            KeyStatus::Active if key.is_expired(&now) => "expired",
            KeyStatus::Active => return KeyCheck::Valid(Arc::clone(key)),
            KeyStatus::Disabled => "disabled",
            KeyStatus::Revoked => "revoked",
        };
        KeyCheck::Invalid { name: key.key.name.shared(), why }
    }

    /// A key that is valid now.
    pub fn valid(&self, name: &str, now: impl FnOnce() -> Timestamp) -> Option<&Arc<ActiveKey>> {
        self.by_name.get(name).filter(|key| key.is_valid(now))
    }

    /// Whether these are the rights of a key that is valid now.
    pub(crate) fn is_current(&self, grant: &Arc<KeyGrant>, now: impl FnOnce() -> Timestamp) -> bool {
        self.valid(&grant.name, now).is_some_and(|key| Arc::ptr_eq(&key.grant, grant))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<ActiveKey>> {
        self.by_name.get(name)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<ActiveKey>> {
        self.by_id.values()
    }

    /// How often the limits of each named key refused since the start: the name of the key, the limit, and the number. Without those that
    /// never did. The oldest keys are named, and the others are counted together, so that the list has an end. Identities from outside are
    /// not counted: their accounts, and so their counts, end when they are not in use.
    pub(crate) fn refusals(&self) -> Vec<(Arc<str>, LimitKind, u64)> {
        let mut keys: Vec<_> =
            self.all().filter(|key| key.metered.refused().any(|(_, count)| count > 0)).collect();
        keys.sort_by(|one, other| {
            (one.key.created_at, &one.key.id).cmp(&(other.key.created_at, &other.key.id))
        });
        let mut counts: Vec<(Arc<str>, LimitKind, u64)> = Vec::new();
        for (place, key) in keys.into_iter().enumerate() {
            let name = if place < NAMED_REFUSALS { key.key.name.shared() } else { Arc::from(OTHER_KEYS) };
            for (kind, count) in key.metered.refused().filter(|(_, count)| *count > 0) {
                match counts.iter_mut().find(|(known, of, _)| *known == name && *of == kind) {
                    Some((_, _, sum)) => *sum += count,
                    None => counts.push((Arc::clone(&name), kind, count)),
                }
            }
        }
        counts
    }
}

/// A member without named collections reads none.
fn collections(key: &ApiKey) -> CollectionSet {
    match (&key.rules.memory, key.role) {
        // A stored name that is not valid any more allows nothing.
        (Some(names), _) => {
            CollectionSet::Only(names.iter().filter_map(|name| CollectionName::parse(name).ok()).collect())
        }
        (None, KeyRole::Owner) => CollectionSet::All,
        (None, KeyRole::Member) => CollectionSet::none(),
    }
}

fn grant(key: &ApiKey, metered: &Arc<Metered>) -> KeyGrant {
    let rules = &key.rules;
    let has_limits = rules.parallel.is_some() || !rules.quotas().is_empty();
    KeyGrant {
        name: key.name.shared(),
        rule: None,
        role: match key.role {
            KeyRole::Owner => CallerRole::Owner,
            KeyRole::Member => CallerRole::Member,
        },
        models: rules.models.clone().map(ModelPatterns::new),
        engines: rules.engines.clone(),
        cloud: rules.cloud,
        reach: rules.reach,
        tools: rules.tools.clone(),
        memory: collections(key),
        spending: has_limits.then(|| Arc::new(KeySpending(Arc::clone(metered))) as Arc<dyn Spending>),
    }
}
