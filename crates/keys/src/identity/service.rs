//! What callers use: turns the token of a request into an account with rights.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::identity::error::{IdentityError, IdentityRefusal};
use crate::identity::key_source::{KeyOrigin, KeySource};
use crate::identity::rules::{EMAIL, IdentityRules, claim, is_unverified};
use crate::identity::signing_key::TokenAlgorithm;
use crate::identity::token::{CheckedToken, Claims, TokenError, TokenPolicy, check, shortened};
use crate::identity::token_cache::{TokenCache, TokenHash};
use crate::key::{KeyName, LONGEST_IDENTITY};
use crate::key_snapshot::ActiveKey;
use crate::service::KeyService;

/// How often stale keys and expired tokens are looked for.
const POLL: Duration = Duration::from_secs(5);

/// Settings of identities from outside.
#[derive(Debug, Clone)]
pub struct IdentityOptions {
    pub issuer: String,
    pub audience: Vec<String>,
    pub origin: KeyOrigin,
    /// Empty for the usual ones.
    pub algorithms: Vec<TokenAlgorithm>,
    /// The header with the token; `None` for the one of keys.
    pub header: Option<String>,
    /// The claim with the name of an account.
    pub name_claim: String,
    pub max_lifetime: Duration,
    pub rules: IdentityRules,
}

/// Where the keys of the provider come from, of which exactly one is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyPlaces {
    pub jwks_url: Option<String>,
    pub jwks_file: Option<PathBuf>,
    pub secret_file: Option<PathBuf>,
}

impl KeyPlaces {
    pub fn only_one(self) -> Result<KeyOrigin, IdentityError> {
        match (self.jwks_url, self.jwks_file, self.secret_file) {
            (Some(url), None, None) => Ok(KeyOrigin::Url(url)),
            (None, Some(path), None) => Ok(KeyOrigin::File(path)),
            (None, None, Some(path)) => Ok(KeyOrigin::Secret(path)),
            _ => Err(IdentityError::KeySource),
        }
    }
}

/// The algorithms of these names, as the settings have them.
pub fn token_algorithms(names: &[String]) -> Result<Vec<TokenAlgorithm>, IdentityError> {
    let known = || TokenAlgorithm::ALL.map(TokenAlgorithm::as_str).join(", ");
    let parse = |name: &String| {
        let unknown = || IdentityError::UnknownAlgorithm { name: shortened(name), known: known() };
        TokenAlgorithm::parse(name).ok_or_else(unknown)
    };
    names.iter().map(parse).collect()
}

/// Accepts tokens of one identity provider.
pub struct IdentityService {
    policy: TokenPolicy,
    header: Option<String>,
    name_claim: String,
    source: KeySource,
    tokens: TokenCache,
    keys: Arc<KeyService>,
    stopping: CancellationToken,
    tasks: TaskTracker,
}

impl IdentityService {
    /// The accounts are those of `keys`.
    pub fn open(options: IdentityOptions, keys: Arc<KeyService>) -> Result<Self, IdentityError> {
        let IdentityOptions { issuer, audience, origin, algorithms, header, name_claim, max_lifetime, rules } =
            options;
        let is_secret = matches!(origin, KeyOrigin::Secret(_));
        let algorithms = match (algorithms.is_empty(), is_secret) {
            (true, true) => vec![TokenAlgorithm::Hs256],
            (true, false) => TokenAlgorithm::USUAL.to_vec(),
            (false, _) => algorithms,
        };
        // A published key must never be taken for a secret.
        if let Some(wrong) = algorithms.iter().find(|algorithm| algorithm.is_symmetric() != is_secret) {
            return Err(IdentityError::Algorithm { algorithm: wrong.as_str() });
        }
        if audience.is_empty() {
            let advice = "Name the audience (aud) of the tokens for this server, so that tokens for other services are refused";
            return Err(IdentityError::Missing { setting: "audience", advice });
        }
        let source = KeySource::open(&origin, keys.clock())?;
        keys.identities().set_rules(rules);
        Ok(IdentityService {
            policy: TokenPolicy { issuer, audience, algorithms, max_lifetime },
            header,
            name_claim,
            source,
            tokens: TokenCache::default(),
            keys,
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
        })
    }

    /// Reads the keys now, and again when they are no longer fresh, until `close`.
    pub fn start(self: &Arc<Self>) {
        let this = Arc::clone(self);
        self.tasks.spawn(async move {
            loop {
                if this.source.refresh_if_stale().await {
                    this.tokens.clear();
                }
                this.tokens.forget_expired(this.keys.clock().now());
                tokio::select! {
                    () = this.stopping.cancelled() => return,
                    () = tokio::time::sleep(POLL) => {}
                }
            }
        });
    }

    pub async fn close(&self) {
        self.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// The header with the token; `None` for the one of keys.
    pub fn header(&self) -> Option<&str> {
        self.header.as_deref()
    }

    pub fn issuer(&self) -> &str {
        &self.policy.issuer
    }

    /// Replaces the rules. Every token is looked at again.
    pub fn set_rules(&self, rules: IdentityRules) {
        self.keys.identities().set_rules(rules);
        self.tokens.clear();
    }

    /// The account of a token. Reads nothing: if the refusal needs other keys, `refresh`, and check again.
    pub fn check(&self, token: &str) -> Result<Arc<ActiveKey>, IdentityRefusal> {
        let (hash, now) = (TokenHash::of(token), self.keys.clock().now());
        let miss = match self.tokens.get(&hash, now) {
            Ok(account) => return Ok(account),
            Err(miss) => miss,
        };
        let keys = self.source.keys();
        let CheckedToken { claims, expires_at } = match check(token, &keys, &self.policy, now) {
            Err(TokenError::UnknownKey) if keys.is_empty() => return Err(IdentityRefusal::NoKeys),
            checked => checked?,
        };
        let account = self.account(&claims)?;
        self.tokens.insert(hash, miss, Arc::clone(&account), expires_at);
        Ok(account)
    }

    /// Reads the keys of the provider again, unless they were just read.
    pub async fn refresh(self: &Arc<Self>) {
        if self.source.is_just_read() {
            return;
        }
        let this = Arc::clone(self);
        // A task of its own: a client that leaves must not stop the read for the others.
        let read = self.tasks.spawn(async move {
            if this.source.refresh().await {
                this.tokens.clear();
            }
        });
        // A read that panicked has read nothing.
        let _ = read.await;
    }

    fn account(&self, claims: &Claims) -> Result<Arc<ActiveKey>, IdentityRefusal> {
        let no_name = || IdentityRefusal::NoName { claim: self.name_claim.clone(), most: LONGEST_IDENTITY };
        let mut name =
            claim(claims, &self.name_claim).and_then(Value::as_str).ok_or_else(no_name)?.to_owned();
        if self.name_claim == EMAIL {
            // Providers write the same address in different ways.
            name.make_ascii_lowercase();
            if is_unverified(claims) {
                return Err(IdentityRefusal::NotVerified { email: shortened(&name) });
            }
        }
        let key_name = KeyName::identity(&name).ok_or_else(no_name)?;
        let accounts = self.keys.identities();
        let rules = accounts.rules();
        if rules.is_blocked(&name) {
            return Err(IdentityRefusal::Blocked { name });
        }
        let Some(rule) = rules.of(claims) else { return Err(IdentityRefusal::NoRule { name }) };
        accounts.account(key_name, rule).ok_or(IdentityRefusal::TooMany)
    }

    /// The number of tokens that need no further check.
    #[cfg(test)]
    pub(crate) fn cached_tokens(&self) -> usize {
        self.tokens.len()
    }
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
