//! Tokens that were checked, so that the next request with the same token needs no check of a signature. Has hashes, not tokens.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::identity::token::LEEWAY;
use crate::key_snapshot::ActiveKey;

/// Some proxies make a token for each request, so a full cache is usual there.
const MOST_TOKENS: usize = 50_000;

/// The hash of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TokenHash([u8; 32]);

impl TokenHash {
    pub(crate) fn of(token: &str) -> Self {
        TokenHash(Sha256::digest(token.as_bytes()).into())
    }
}

struct CachedToken {
    account: Arc<ActiveKey>,
    expires_at: Timestamp,
}

impl CachedToken {
    fn is_valid(&self, now: Timestamp) -> bool {
        now.duration_since(self.expires_at) < LEEWAY
    }
}

#[derive(Default)]
struct CachedTokens {
    by_hash: HashMap<TokenHash, CachedToken>,
    /// How often everything was forgotten.
    generation: u64,
}

#[derive(Default)]
pub(crate) struct TokenCache {
    tokens: Mutex<CachedTokens>,
}

/// A token that is not in the cache, at a certain time.
pub(crate) struct CacheMiss(u64);

impl TokenCache {
    pub(crate) fn get(&self, token: &TokenHash, now: Timestamp) -> Result<Arc<ActiveKey>, CacheMiss> {
        let tokens = self.tokens.lock();
        let cached = tokens.by_hash.get(token).filter(|cached| cached.is_valid(now));
        cached.map(|cached| Arc::clone(&cached.account)).ok_or(CacheMiss(tokens.generation))
    }

    /// Adds a token that was checked after `miss`. If everything was forgotten since, the check used old keys or rules, and counts for one
    /// request only.
    pub(crate) fn insert(
        &self,
        token: TokenHash,
        miss: CacheMiss,
        account: Arc<ActiveKey>,
        expires_at: Timestamp,
    ) {
        let mut tokens = self.tokens.lock();
        if tokens.generation != miss.0 {
            return;
        }
        if tokens.by_hash.len() >= MOST_TOKENS {
            // Simple, and costs each token one more check.
            tokens.by_hash.clear();
        }
        tokens.by_hash.insert(token, CachedToken { account, expires_at });
    }

    pub(crate) fn forget_expired(&self, now: Timestamp) {
        self.tokens.lock().by_hash.retain(|_, cached| cached.is_valid(now));
    }

    /// After a change of keys or rules, every token is checked again.
    pub(crate) fn clear(&self) {
        let mut tokens = self.tokens.lock();
        tokens.by_hash.clear();
        tokens.generation += 1;
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.tokens.lock().by_hash.len()
    }
}

#[cfg(test)]
mod tests {
    use hob_db::Database;
    use serde_json::json;

    use super::*;
    use crate::identity::rules::IdentityRule;
    use crate::key::KeyName;
    use crate::options::KeyOptions;
    use crate::service::KeyService;
    use crate::store::{MIGRATIONS, SqliteKeyStore};

    fn account() -> Arc<ActiveKey> {
        let store = Arc::new(SqliteKeyStore::new(Database::in_memory(&[MIGRATIONS]).expect("opened")));
        let keys = KeyService::new(KeyOptions::new(store));
        let rule = json!({ "claim": "groups", "value": "ml" });
        let rule = IdentityRule::read(rule.as_object().expect("an object")).expect("a rule");
        let name = KeyName::identity("ana").expect("a name");
        keys.identities().account(name, &rule).expect("an account")
    }

    #[test]
    fn a_token_that_was_checked_before_a_change_is_not_remembered_after_it() {
        let (cache, now, token) = (TokenCache::default(), Timestamp::UNIX_EPOCH, TokenHash::of("token"));
        let check = |between: &dyn Fn()| {
            let Err(miss) = cache.get(&token, now) else { panic!("remembered") };
            between();
            cache.insert(token, miss, account(), now);
            cache.get(&token, now).is_ok()
        };
        assert!(!check(&|| cache.clear()));
        assert!(check(&|| {}));
    }
}
