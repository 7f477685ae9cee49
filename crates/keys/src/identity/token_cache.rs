//! Tokens that were checked, so that the next request with the same token needs no check of a signature. Has hashes, not tokens.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::identity::token::LEEWAY;
use crate::ring::ActiveKey;

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
pub(crate) struct TokenCache {
    tokens: Mutex<HashMap<TokenHash, CachedToken>>,
}

impl TokenCache {
    pub(crate) fn get(&self, token: &TokenHash, now: Timestamp) -> Option<Arc<ActiveKey>> {
        let tokens = self.tokens.lock();
        tokens.get(token).filter(|cached| cached.is_valid(now)).map(|cached| Arc::clone(&cached.account))
    }

    pub(crate) fn insert(&self, token: TokenHash, account: Arc<ActiveKey>, expires_at: Timestamp) {
        let mut tokens = self.tokens.lock();
        if tokens.len() >= MOST_TOKENS {
            // Simple, and costs each token one more check.
            tokens.clear();
        }
        tokens.insert(token, CachedToken { account, expires_at });
    }

    pub(crate) fn forget_expired(&self, now: Timestamp) {
        self.tokens.lock().retain(|_, cached| cached.is_valid(now));
    }

    /// After a change of keys or rules, every token is checked again.
    pub(crate) fn clear(&self) {
        self.tokens.lock().clear();
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.tokens.lock().len()
    }
}
