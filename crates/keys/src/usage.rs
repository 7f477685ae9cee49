//! Keys with what they have used of their limits, for those who look at them. `metered` decides what they may still use.

use std::sync::Arc;

use hob_db::DbResult;

use crate::key::{ApiKey, KeyError, KeyName};
use crate::key_snapshot::ActiveKey;
use crate::limits::QuotaUsage;
use crate::service::{KeyService, blocking};
use crate::store::{QuotaWindow, StoredKey};

impl KeyService {
    /// All keys, by name, with what they have used of their limits.
    pub async fn list_with_usage(self: &Arc<Self>) -> Result<Vec<(ApiKey, Vec<QuotaUsage>)>, KeyError> {
        let this = Arc::clone(self);
        blocking(move || {
            let with_usage = |StoredKey { key, .. }: StoredKey| {
                let usage = this.usage(&key, this.snapshot().get(key.name.as_str()))?;
                Ok((key.shown_at(this.now()), usage))
            };
            this.parts.store.list()?.into_iter().map(with_usage).collect()
        })
        .await
    }

    /// A key, with what it has used of its limits.
    pub async fn show(self: &Arc<Self>, name: &KeyName) -> Result<(ApiKey, Vec<QuotaUsage>), KeyError> {
        let (this, name) = (Arc::clone(self), name.clone());
        blocking(move || {
            let stored = this.parts.store.get(&name)?;
            let Some(StoredKey { key, .. }) = stored else {
                return Err(KeyError::NoSuchKey { name: name.to_string() });
            };
            let usage = this.usage(&key, this.snapshot().get(key.name.as_str()))?;
            Ok((key.shown_at(this.now()), usage))
        })
        .await
    }

    /// A key or an identity that is in use, with what it has used of its limits.
    pub async fn show_active(
        self: &Arc<Self>,
        active: &Arc<ActiveKey>,
    ) -> Result<(ApiKey, Vec<QuotaUsage>), KeyError> {
        let (this, active) = (Arc::clone(self), Arc::clone(active));
        blocking(move || {
            let usage = this.usage(&active.key, Some(&active))?;
            Ok((active.key.clone().shown_at(this.now()), usage))
        })
        .await
    }

    /// Blocks.
    fn usage(&self, key: &ApiKey, active: Option<&Arc<ActiveKey>>) -> DbResult<Vec<QuotaUsage>> {
        let now = self.parts.clock.now();
        let mut usage = Vec::new();
        for quota in key.rules.quotas() {
            let window = quota.period.window(now);
            let taken = self.parts.store.taken(&QuotaWindow {
                key: Arc::clone(&key.id),
                quota: quota.id(),
                window,
            })?;
            let used = active.map_or(taken, |active| active.metered.used(quota, taken, now));
            usage.push(QuotaUsage { quota, used, resets_at: quota.period.end(window) });
        }
        Ok(usage)
    }
}
