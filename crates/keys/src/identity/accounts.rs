//! The identities that use this server, each as an account like that of a key: limits count by name, over all tokens of a person.
//! Nothing of it is stored except what was taken of the limits.
//!
//! A person can have tokens, or tasks, under several rules at once. Each rule has an account of its own, so that none replaces the
//! limits of another. What is stored counts for all of them.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use hob_core::KeyGrant;
use hob_db::DbResult;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use crate::identity::rules::{IdentityRule, IdentityRules};
use crate::key::{ApiKey, KeyName, KeyStatus};
use crate::key_snapshot::ActiveKey;
use crate::metered::{MeterParts, Metered};

/// Accounts in memory. Those that are not in use are removed.
const MOST_ACCOUNTS: usize = 50_000;

/// How long an account is kept after its last use, so that its limits per minute hold.
const KEPT_IDLE: SignedDuration = SignedDuration::from_secs(120);

struct IdentityAccount {
    key: Arc<ActiveKey>,
    /// Since when no token, request or call uses it.
    idle_since: Option<Timestamp>,
}

/// The name of an account, with the prefix, and the id of its rule.
type AccountId = (Arc<str>, Arc<str>);

/// The accounts of identities.
pub(crate) struct IdentityAccounts {
    parts: Arc<MeterParts>,
    rules: ArcSwap<IdentityRules>,
    accounts: Mutex<HashMap<AccountId, IdentityAccount>>,
}

impl IdentityAccounts {
    /// No identity has rights until there are rules.
    pub(crate) fn new(parts: Arc<MeterParts>) -> Self {
        IdentityAccounts { parts, rules: ArcSwap::default(), accounts: Mutex::default() }
    }

    pub(crate) fn set_rules(&self, rules: IdentityRules) {
        self.rules.store(Arc::new(rules));
    }

    pub(crate) fn rules(&self) -> arc_swap::Guard<Arc<IdentityRules>> {
        self.rules.load()
    }

    /// The account of a name with the rights of a rule; `None` if there are too many accounts.
    pub(crate) fn account(&self, name: KeyName, rule: &IdentityRule) -> Option<Arc<ActiveKey>> {
        let id = name.shared();
        let place = (Arc::clone(&id), Arc::clone(&rule.id));
        let mut accounts = self.accounts.lock();
        let known = accounts.get(&place).map(|known| &known.key);
        if let Some(known) = known
            && known.key.role == rule.role
            && known.key.rules == rule.rules
        {
            return Some(Arc::clone(known));
        }
        if known.is_none() && accounts.len() >= MOST_ACCOUNTS {
            return None;
        }
        let metered = known.map(|known| Arc::clone(&known.metered)).unwrap_or_else(|| {
            Arc::new(Metered::new(Arc::clone(&id), Arc::clone(&id), Arc::clone(&self.parts)))
        });
        metered.set_rules(&rule.rules);
        let key = ApiKey {
            id,
            name,
            role: rule.role,
            status: KeyStatus::Active,
            rules: rule.rules.clone(),
            created_at: known.map_or_else(|| self.now(), |known| known.key.created_at),
            expires_at: None,
            previous_until: None,
        };
        let active = Arc::new(ActiveKey::of_identity(key, metered, Arc::clone(&rule.id)));
        accounts.insert(place, IdentityAccount { key: Arc::clone(&active), idle_since: None });
        Some(active)
    }

    /// The rights of a name without a token, for a task: those that its rule gives now.
    pub(crate) fn grant(&self, name: &str, rule: &str) -> Option<Arc<KeyGrant>> {
        let rules = self.rules.load();
        let (rule, name) = (rules.get(rule)?, KeyName::read_identity(name)?);
        if rules.is_blocked(name.without_prefix()) {
            return None;
        }
        Some(Arc::clone(&self.account(name, rule)?.grant))
    }

    /// Whether these are the rights that a rule gives now.
    pub(crate) fn is_current(&self, grant: &Arc<KeyGrant>, rule: &str) -> bool {
        self.grant(&grant.name, rule).is_some_and(|granted| Arc::ptr_eq(&granted, grant))
    }

    pub(crate) fn all(&self) -> Vec<Arc<ActiveKey>> {
        self.accounts.lock().values().map(|account| Arc::clone(&account.key)).collect()
    }

    /// Removes accounts that are not in use for a while, and gives back what they have leased. Blocks.
    pub(crate) fn retire_idle(&self) -> DbResult<()> {
        let now = self.now();
        let is_over = |_: &(Arc<str>, Arc<str>), account: &mut IdentityAccount| {
            if !account.key.is_unused() {
                account.idle_since = None;
                return false;
            }
            let since = *account.idle_since.get_or_insert(now);
            now.duration_since(since) >= KEPT_IDLE
        };
        let over: Vec<_> = self.accounts.lock().extract_if(is_over).collect();
        over.iter().try_for_each(|(_, account)| account.key.metered.give_back())
    }

    fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }
}
