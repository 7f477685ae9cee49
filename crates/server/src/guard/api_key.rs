//! The check of the key or token of a request: the owner's key, a named key, or a token of an identity provider. Wrong keys slow the
//! caller down.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderName, Method, Request, header};
use hob_keys::{IdentityService, KeyCheck, KeyService, SECRET_PREFIX, looks_like_token};
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;

use crate::caller_role::{Proof, RequestOrigin, is_local};
use crate::error::{ApiError, ApiResult};
use crate::limits::key_backoff::KeyBackoff;

/// Anthropic's header for the key.
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Paths that need no key: load balancers have none, and the pages contain no data and ask for the key themselves.
const PATHS_WITHOUT_KEY: &[&str] = &[
    "/health",
    "/health/live",
    "/health/ready",
    "/",
    "/chat",
    "/chat/",
    "/documents",
    "/tasks",
    "/channels",
    "/models",
    "/dashboard",
    "/team",
    "/settings",
];

/// What knows callers besides the key of the configuration.
#[derive(Clone, Copy, Default)]
pub(crate) struct CallerSources<'a> {
    /// The named keys.
    pub(crate) keys: Option<&'a KeyService>,
    /// Tokens of an identity provider.
    pub(crate) identity: Option<&'a IdentityService>,
}

/// The owner's key, and who has sent wrong ones.
pub(super) struct ApiKeyCheck {
    api_key: Option<SecretString>,
    backoff: KeyBackoff,
}

impl ApiKeyCheck {
    pub(super) fn new(api_key: Option<SecretString>) -> Self {
        ApiKeyCheck { api_key, backoff: KeyBackoff::new() }
    }

    /// Whose key or token a request of `peer` has, or why it is refused.
    pub(super) fn check<B>(
        &self,
        request: &Request<B>,
        peer: IpAddr,
        origin: RequestOrigin,
        sources: CallerSources<'_>,
    ) -> ApiResult<Proof> {
        match needs_key(request) {
            true => self.check_key(request.headers(), peer, origin, sources),
            // No key was checked, so none is proven.
            false => Ok(Proof::None),
        }
    }

    /// The answer to a wrong key, after a delay if there were too many.
    pub(super) async fn delay_wrong_key(&self, error: ApiError, peer: IpAddr) -> ApiError {
        match self.backoff.hold_back(peer).await {
            true => error,
            false => ApiError::too_many_wrong_keys(Duration::from_secs(1)),
        }
    }

    fn check_key(
        &self,
        headers: &HeaderMap,
        peer: IpAddr,
        origin: RequestOrigin,
        sources: CallerSources<'_>,
    ) -> ApiResult<Proof> {
        let CallerSources { keys, identity } = sources;
        let has_named = keys.is_some_and(|keys| keys.snapshot().has_keys());
        if self.api_key.is_none() && !has_named && identity.is_none() {
            return Ok(Proof::None);
        }
        // Before the wait for wrong keys: behind a proxy, all callers have one address, and a signature cannot be guessed.
        if let Some(identity) = identity
            && let Some(token) = sent_token(headers, identity)?
        {
            return identity.check(token).map(Proof::NamedKey).map_err(ApiError::identity_refused);
        }
        if let Some(wait) = self.backoff.refused_for(peer, Instant::now) {
            return Err(ApiError::too_many_wrong_keys(wait));
        }
        let sent = sent_key(headers).trim();
        let is_owners = self
            .api_key
            .as_ref()
            .is_some_and(|expected| sent.as_bytes().ct_eq(expected.expose_secret().as_bytes()).into());
        if is_owners {
            self.backoff.was_right(peer);
            return Ok(Proof::OwnerKey);
        }
        match keys.map(|keys| keys.check(sent)) {
            Some(KeyCheck::Valid(key)) => {
                self.backoff.was_right(peer);
                return Ok(Proof::NamedKey(key));
            }
            Some(KeyCheck::Invalid { name, why }) => return Err(ApiError::invalid_key(&name, why)),
            Some(KeyCheck::Unread) => return Err(ApiError::keys_unread()),
            Some(KeyCheck::Unknown) | None => {}
        }
        // A proxy that adds tokens is often on this machine, and then what it forwards without one is not the owner's.
        let is_behind_proxy = identity.is_some_and(|identity| identity.header().is_some());
        // Clients on this machine often send a key that means nothing. A wrong named key is a mistake.
        if self.api_key.is_none()
            && is_local(peer, origin)
            && !is_behind_proxy
            && !sent.starts_with(SECRET_PREFIX)
        {
            return Ok(Proof::None);
        }
        // A request without a key is not a guess: programs learn that way that a key is needed.
        if headers.contains_key(header::AUTHORIZATION) || headers.contains_key(X_API_KEY) {
            self.backoff.was_wrong(peer, Instant::now());
        }
        Err(match identity {
            Some(identity) if sent.is_empty() => {
                ApiError::missing_token(identity.issuer(), identity.header())
            }
            None if sent.is_empty() => ApiError::missing_key(has_named),
            Some(_) | None => ApiError::wrong_key(has_named),
        })
    }
}

/// Whether a server with a key asks for it.
fn needs_key<B>(request: &Request<B>) -> bool {
    // A preflight request has no key.
    let is_preflight = request.method() == Method::OPTIONS && request.headers().contains_key(header::ORIGIN);
    !is_preflight && !PATHS_WITHOUT_KEY.contains(&request.uri().path())
}

/// The key of a request: the bearer token, or Anthropic's header.
fn sent_key(headers: &HeaderMap) -> &str {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text(header::AUTHORIZATION)
        .and_then(|value| value.strip_prefix("Bearer ").or_else(|| value.strip_prefix("bearer ")));
    bearer.or_else(|| text(X_API_KEY)).unwrap_or_default()
}

/// The token of a request: in the header of the proxy if there is one, else where keys are.
fn sent_token<'a>(headers: &'a HeaderMap, identity: &IdentityService) -> ApiResult<Option<&'a str>> {
    let Some(name) = identity.header() else {
        return Ok(Some(sent_key(headers).trim()).filter(|sent| looks_like_token(sent)));
    };
    let mut sent = headers.get_all(name).iter();
    match (sent.next(), sent.next()) {
        (None, _) => Ok(None),
        (Some(token), None) => {
            let token = token.to_str().unwrap_or_default().trim();
            Ok(Some(token.strip_prefix("Bearer ").unwrap_or(token)))
        }
        (Some(_), Some(_)) => Err(ApiError::several_tokens(name)),
    }
}
