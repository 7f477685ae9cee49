//! What callers use: creates, changes and finds keys, and keeps the snapshot that requests read.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use hob_core::{Clock, KeyGrant, KeyRing, LimitKind};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::audit::{AuditActor, AuditEvent};
use crate::audit_service::AuditService;
use crate::identity::accounts::IdentityAccounts;
use crate::key::{ApiKey, KeyError, KeyName, KeyPatch, KeyRules, KeyStatus, NewKey, check_engines};
use crate::key_snapshot::{ActiveKey, KeyCheck, KeySnapshot};
use crate::metered::MeterParts;
use crate::options::KeyOptions;
use crate::refresh_signal::RefreshSignal;
use crate::secret::{KeySecret, new_id};
use crate::store::StoredKey;

/// How long the end may take.
const CLOSING: Duration = Duration::from_secs(10);

/// How long both secrets are valid after a rotation, if nothing else is said.
pub const ROTATION_OVERLAP: Duration = Duration::from_secs(24 * 60 * 60);

/// A new key, or a rotated one, with its secret.
#[derive(Debug)]
pub struct CreatedKey {
    pub key: ApiKey,
    pub secret: KeySecret,
}

/// The keys of a home.
pub struct KeyService {
    pub(crate) parts: Arc<MeterParts>,
    pub(crate) snapshot: ArcSwap<KeySnapshot>,
    /// Held while the keys are read, so that an older read never replaces a newer one.
    pub(crate) loading: Mutex<()>,
    pub(crate) identities: IdentityAccounts,
    /// The engines that a key can name.
    engines: Vec<&'static str>,
    pub(crate) refresh: RefreshSignal,
    pub(crate) stopping: CancellationToken,
    tasks: TaskTracker,
}

impl KeyService {
    /// Knows no key until it is loaded.
    pub fn new(options: KeyOptions) -> Self {
        let KeyOptions { store, price, on_failure, clock, engines } = options;
        let parts = Arc::new(MeterParts { store, price, on_failure, clock });
        KeyService {
            identities: IdentityAccounts::new(Arc::clone(&parts)),
            parts,
            engines,
            snapshot: ArcSwap::default(),
            loading: Mutex::default(),
            refresh: RefreshSignal::default(),
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// Reads the keys, and follows their changes until `close`. A database that is away now is not an error: until the keys can be read,
    /// callers from other machines need a key, and no named key is valid.
    pub async fn start(self: &Arc<Self>) -> Result<(), KeyError> {
        match self.reload().await {
            Err(KeyError::Database(error)) if error.is_temporary() => {
                tracing::warn!(
                    %error,
                    "the keys cannot be read yet; requests with a named key are refused until they can. 'hob \
                     doctor' checks the database"
                );
                self.snapshot.store(Arc::new(KeySnapshot::unread()));
            }
            read => read?,
        }
        let this = Arc::clone(self);
        self.refresh.set_followed(true);
        self.tasks.spawn(async move {
            this.follow().await;
            this.refresh.set_followed(false);
        });
        self.tasks.close();
        Ok(())
    }

    /// Stops following changes, and gives back what is leased and not spent.
    pub async fn close(&self) {
        self.stopping.cancel();
        self.tasks.close();
        let closing = async {
            self.tasks.wait().await;
            let accounts = self.accounts();
            let give_back = move || accounts.iter().try_for_each(|account| account.metered.give_back());
            if let Ok(Err(error)) = hob_db::spawn_blocking(give_back).await {
                tracing::warn!(
                    %error,
                    "shares of budgets that this server took and did not spend count as spent. 'hob doctor' \
                     checks the database"
                );
            }
        };
        if tokio::time::timeout(CLOSING, closing).await.is_err() {
            tracing::warn!(
                "the database does not answer; shares of budgets that this server took and did not spend \
                 count as spent. 'hob doctor' checks the database"
            );
        }
    }

    /// Of keys and of identities.
    pub(crate) fn accounts(&self) -> Vec<Arc<ActiveKey>> {
        let mut accounts = self.identities.all();
        accounts.extend(self.snapshot.load().all().cloned());
        accounts
    }

    /// The keys as they are now.
    pub fn snapshot(&self) -> arc_swap::Guard<Arc<KeySnapshot>> {
        self.snapshot.load()
    }

    /// Checks the text that a client sent as its key.
    pub fn check(&self, sent: &str) -> KeyCheck {
        self.snapshot.load().check(sent, || self.parts.clock.now())
    }

    /// The key of this name, if it is valid now.
    pub fn valid(&self, name: &str) -> Option<Arc<ActiveKey>> {
        self.snapshot.load().valid(name, || self.parts.clock.now()).cloned()
    }

    /// How often the limits of each named key refused since the start: the name of the key, the limit, and the number.
    pub fn refusals(&self) -> Vec<(Arc<str>, LimitKind, u64)> {
        self.snapshot.load().refusals()
    }

    /// The accounts of identities from outside.
    pub(crate) fn identities(&self) -> &IdentityAccounts {
        &self.identities
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.parts.clock)
    }

    /// The log of changes.
    pub fn audit(&self) -> AuditService {
        AuditService::new(Arc::clone(&self.parts.store))
    }

    pub async fn list(self: &Arc<Self>) -> Result<Vec<ApiKey>, KeyError> {
        let this = Arc::clone(self);
        let stored = blocking(move || Ok(this.parts.store.list()?)).await?;
        let now = self.now();
        Ok(stored.into_iter().map(|stored| stored.key.shown_at(now)).collect())
    }

    /// Creates a key. Its secret is not stored, so show it now.
    pub async fn create(self: &Arc<Self>, new: NewKey, actor: AuditActor) -> Result<CreatedKey, KeyError> {
        check_engines(new.rules.engines.iter().flatten().next(), &self.engines)?;
        let this = Arc::clone(self);
        blocking(move || {
            let now = this.now();
            let NewKey { name, role, rules: patch } = new;
            let (mut rules, mut expires_at) = (KeyRules::of(role), None);
            patch.apply(&mut rules, &mut expires_at, now)?;
            let id = new_id();
            let secret = KeySecret::new(&id);
            let key = ApiKey {
                id: id.into(),
                name,
                role,
                status: KeyStatus::Active,
                rules,
                created_at: now,
                expires_at,
                previous_until: None,
            };
            let event = AuditEvent::new(now, actor, "key.create", key.name.as_str(), &json!(key));
            let stored = StoredKey { key, hash: secret.hash(), previous_hash: None };
            if !this.parts.store.insert(&stored, &event)? {
                return Err(KeyError::NameTaken { name: stored.key.name.to_string() });
            }
            this.load_after_change();
            Ok(CreatedKey { key: stored.key, secret })
        })
        .await
    }

    /// Changes what a key may use.
    pub async fn patch(
        self: &Arc<Self>,
        name: &KeyName,
        patch: KeyPatch,
        actor: AuditActor,
    ) -> Result<ApiKey, KeyError> {
        check_engines(patch.engines.iter().flatten().next(), &self.engines)?;
        let detail = json!({ "changed": patch });
        let now = self.now();
        self.change(name, actor, "key.change", detail, move |stored| {
            let key = &mut stored.key;
            patch.clone().apply(&mut key.rules, &mut key.expires_at, now)
        })
        .await
    }

    /// Makes a key invalid until it is enabled.
    pub async fn disable(self: &Arc<Self>, name: &KeyName, actor: AuditActor) -> Result<ApiKey, KeyError> {
        self.set_status(name, KeyStatus::Disabled, actor, "key.disable").await
    }

    pub async fn enable(self: &Arc<Self>, name: &KeyName, actor: AuditActor) -> Result<ApiKey, KeyError> {
        self.set_status(name, KeyStatus::Active, actor, "key.enable").await
    }

    /// Makes a key invalid for good. It stays in the list, so that records and the audit log stay clear.
    pub async fn revoke(self: &Arc<Self>, name: &KeyName, actor: AuditActor) -> Result<ApiKey, KeyError> {
        self.set_status(name, KeyStatus::Revoked, actor, "key.revoke").await
    }

    async fn set_status(
        self: &Arc<Self>,
        name: &KeyName,
        status: KeyStatus,
        actor: AuditActor,
        action: &'static str,
    ) -> Result<ApiKey, KeyError> {
        self.change(name, actor, action, json!({}), move |stored| {
            stored.key.status = status;
            Ok(())
        })
        .await
    }

    /// Gives a key a new secret. The old one stays valid for `overlap`.
    pub async fn rotate(
        self: &Arc<Self>,
        name: &KeyName,
        overlap: Duration,
        actor: AuditActor,
    ) -> Result<CreatedKey, KeyError> {
        let (found, now) = (self.show(name).await?.0, self.now());
        let secret = KeySecret::new(&found.id);
        let hash = secret.hash();
        let until = SignedDuration::try_from(overlap).ok().and_then(|overlap| now.checked_add(overlap).ok());
        let until = until.unwrap_or(Timestamp::MAX);
        let detail = json!({ "previous_secret_until": until.to_string() });
        let key = self
            .change(name, actor, "key.rotate", detail, move |stored| {
                stored.previous_hash = Some(std::mem::replace(&mut stored.hash, hash));
                stored.key.previous_until = Some(until);
                Ok(())
            })
            .await?;
        Ok(CreatedKey { key, secret })
    }

    async fn change(
        self: &Arc<Self>,
        name: &KeyName,
        actor: AuditActor,
        action: &'static str,
        detail: Value,
        mut change: impl FnMut(&mut StoredKey) -> Result<(), KeyError> + Send + 'static,
    ) -> Result<ApiKey, KeyError> {
        let (this, name) = (Arc::clone(self), name.clone());
        blocking(move || {
            let event = AuditEvent::new(this.now(), actor, action, name.as_str(), &detail);
            let mut checked = |stored: &mut StoredKey| match stored.key.status {
                KeyStatus::Revoked => Err(KeyError::Revoked { name: stored.key.name.to_string() }),
                KeyStatus::Active | KeyStatus::Disabled => change(stored),
            };
            let stored = this.parts.store.change(&name, &mut checked, &event)?;
            this.load_after_change();
            Ok(stored.key.shown_at(this.now()))
        })
        .await
    }

    /// To the precision that is stored.
    pub(crate) fn now(&self) -> Timestamp {
        let now = self.parts.clock.now();
        Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
    }
}

#[async_trait]
impl KeyRing for KeyService {
    fn grant(&self, name: &str, rule: Option<&str>) -> Option<Arc<KeyGrant>> {
        match rule {
            Some(rule) => self.identities.grant(name, rule),
            None => {
                let snapshot = self.snapshot.load();
                snapshot.valid(name, || self.parts.clock.now()).map(|key| Arc::clone(&key.grant))
            }
        }
    }

    async fn stored_grant(&self, name: &str, rule: Option<&str>) -> Option<Arc<KeyGrant>> {
        let granted = self.grant(name, rule);
        if granted.is_some() || rule.is_some() {
            return granted;
        }
        self.refresh.refresh_now().await;
        while self.snapshot.load().is_unread() && !self.stopping.is_cancelled() {
            self.refresh.next().await;
        }
        self.grant(name, rule)
    }

    fn is_current(&self, key: &Arc<KeyGrant>) -> bool {
        match &key.rule {
            Some(rule) => self.identities.is_current(key, rule),
            None => self.snapshot.load().is_current(key, || self.parts.clock.now()),
        }
    }
}

pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, KeyError> + Send + 'static,
) -> Result<T, KeyError> {
    hob_db::spawn_blocking(work).await.unwrap_or(Err(KeyError::Panicked))
}

#[cfg(test)]
#[path = "service_postgres_tests.rs"]
mod postgres_tests;
#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
