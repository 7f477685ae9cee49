//! A JSON Web Token (RFC 7519) in its compact form: reads it, and checks its signature and its claims. Knows nothing of HTTP and of
//! rights. Times are passed in.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::identity::signing_key::{KeySet, TokenAlgorithm};

/// Tokens have 1 to 4 KiB. Providers put hundreds of groups into larger ones.
pub(crate) const LONGEST_TOKEN: usize = 16 * 1024;

/// How much the clocks of Hob and of the provider may differ.
pub(crate) const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

/// Letters of a claim that a message repeats.
const MOST_SHOWN: usize = 100;

/// What a token says.
pub(crate) type Claims = Map<String, Value>;

/// Why a token is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TokenError {
    #[error(
        "the token has more than {LONGEST_TOKEN} bytes. Let the identity provider put fewer claims into it"
    )]
    TooLong,
    #[error(
        "the token is not a signed JSON Web Token (three parts with dots between them). Send the token as the identity provider made it"
    )]
    Malformed,
    #[error("the token is not signed (alg: none). Send a token that the identity provider has signed")]
    NotSigned,
    #[error(
        "the token is signed with {algorithm}, which this server does not accept. If your identity provider uses it, add it to \
         [server.identity] algorithms"
    )]
    Algorithm { algorithm: String },
    #[error(
        "the token has 'crit' in its header, which asks for something that this server does not know. Use another kind of token"
    )]
    Critical,
    #[error("the token is signed with a key that the identity provider does not publish. Sign in again")]
    UnknownKey,
    #[error("the signature of the token is wrong. Sign in again")]
    Signature,
    #[error(
        "the token is from '{issuer}', and [server.identity] issuer is another one. Sign in at the issuer of this server"
    )]
    Issuer { issuer: String },
    #[error(
        "the token is for {audience}, and not for this server. Ask for a token whose audience (aud) is one of [server.identity] audience"
    )]
    Audience { audience: String },
    #[error("the token has no time at which it expires (exp). Use tokens that expire")]
    NoExpiry,
    #[error("the token has expired. Sign in again")]
    Expired,
    #[error("the token is not valid yet. Compare the clocks of this server and of the identity provider")]
    NotYetValid,
    #[error(
        "the token is valid for more than {most} s from now, and it cannot be taken back. Use tokens with a shorter life, or set \
         [server.identity] max_lifetime"
    )]
    LivesTooLong { most: u64 },
}

/// Which tokens are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenPolicy {
    pub(crate) issuer: String,
    pub(crate) audience: Vec<String>,
    pub(crate) algorithms: Vec<TokenAlgorithm>,
    /// The longest time from now until a token expires.
    pub(crate) max_lifetime: Duration,
}

/// A token whose signature and claims are right.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CheckedToken {
    pub(crate) claims: Claims,
    pub(crate) expires_at: Timestamp,
}

#[derive(Deserialize)]
struct TokenHeader {
    alg: String,
    kid: Option<String>,
    crit: Option<Value>,
}

/// Checks a token. The claims are looked at only after the signature.
pub(crate) fn check(
    token: &str,
    keys: &KeySet,
    policy: &TokenPolicy,
    now: Timestamp,
) -> Result<CheckedToken, TokenError> {
    if token.len() > LONGEST_TOKEN {
        return Err(TokenError::TooLong);
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
    let (header, claims) = signed.split_once('.').ok_or(TokenError::Malformed)?;
    let TokenHeader { alg, kid, crit } = read(header)?;
    if alg.eq_ignore_ascii_case("none") {
        return Err(TokenError::NotSigned);
    }
    let allowed = |algorithm: &TokenAlgorithm| policy.algorithms.contains(algorithm);
    let algorithm = TokenAlgorithm::parse(&alg).filter(allowed);
    let algorithm = algorithm.ok_or_else(|| TokenError::Algorithm { algorithm: shortened(&alg) })?;
    if crit.is_some() {
        return Err(TokenError::Critical);
    }
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| TokenError::Malformed)?;
    let key = keys.find(kid.as_deref(), algorithm).ok_or(TokenError::UnknownKey)?;
    if !key.has_signed(algorithm, signed.as_bytes(), &signature) {
        return Err(TokenError::Signature);
    }
    let claims: Claims = read(claims)?;
    let expires_at = check_claims(&claims, policy, now)?;
    Ok(CheckedToken { claims, expires_at })
}

/// Returns when the token expires.
fn check_claims(claims: &Claims, policy: &TokenPolicy, now: Timestamp) -> Result<Timestamp, TokenError> {
    let issuer = claims.get("iss").and_then(Value::as_str).unwrap_or_default();
    if issuer != policy.issuer {
        return Err(TokenError::Issuer { issuer: shortened(issuer) });
    }
    let audience: Vec<&str> = match claims.get("aud") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !audience.iter().any(|one| policy.audience.iter().any(|known| known == one)) {
        let shown = match audience.is_empty() {
            true => "nothing (no aud)".to_owned(),
            false => format!("'{}'", shortened(&audience.join(", "))),
        };
        return Err(TokenError::Audience { audience: shown });
    }
    let expires_at = moment(claims, "exp")?.ok_or(TokenError::NoExpiry)?;
    if now.duration_since(expires_at) >= LEEWAY {
        return Err(TokenError::Expired);
    }
    for begins in ["nbf", "iat"] {
        if moment(claims, begins)?.is_some_and(|at| at.duration_since(now) > LEEWAY) {
            return Err(TokenError::NotYetValid);
        }
    }
    let most = SignedDuration::try_from(policy.max_lifetime).unwrap_or(SignedDuration::MAX);
    if expires_at.duration_since(now) > most.saturating_add(LEEWAY) {
        return Err(TokenError::LivesTooLong { most: policy.max_lifetime.as_secs() });
    }
    Ok(expires_at)
}

/// A time in seconds since 1970, with or without a fraction.
fn moment(claims: &Claims, name: &str) -> Result<Option<Timestamp>, TokenError> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    // A number that no clock shows is far away, on its side of now.
    let seconds = value.as_f64().ok_or(TokenError::Malformed)?;
    let (first, last) = (Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
    let seconds = (seconds.floor() as i64).clamp(first, last);
    Timestamp::from_second(seconds).map(Some).map_err(|_| TokenError::Malformed)
}

fn read<T: serde::de::DeserializeOwned>(part: &str) -> Result<T, TokenError> {
    let text = URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Malformed)?;
    serde_json::from_slice(&text).map_err(|_| TokenError::Malformed)
}

pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(MOST_SHOWN).collect()
}

/// Whether a text could be a token: three parts, of which the first is a JSON object.
pub fn looks_like_token(text: &str) -> bool {
    text.starts_with("eyJ") && text.bytes().filter(|byte| *byte == b'.').count() == 2
}
