//! Why identities cannot be set up, and why a caller is refused.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::identity::signing_key::{KeySetError, SHORTEST_SECRET};
use crate::identity::token::TokenError;

/// What is wrong in the settings.
#[derive(Debug, Error)]
pub enum IdentityError {
    #[error("[server.identity] {setting} is missing. {advice}")]
    Missing { setting: &'static str, advice: &'static str },
    #[error("[server.identity] needs exactly one of jwks_url, jwks_file and secret_file")]
    KeySource,
    #[error(
        "[server.identity] jwks_url '{url}' must begin with https://, because who can change the keys can be anyone. Only addresses of this \
         machine may begin with http://"
    )]
    NotEncrypted { url: String },
    #[error("[server.identity] jwks_url '{url}' is not an address: {reason}")]
    NoAddress { url: String, reason: String },
    #[error("[server.identity] algorithms: '{name}' is not one of {known}")]
    UnknownAlgorithm { name: String, known: String },
    #[error(
        "[server.identity] algorithms: {algorithm} does not fit. HS256 is for secret_file only, and all others are for jwks_url and jwks_file"
    )]
    Algorithm { algorithm: &'static str },
    #[error("[[server.identity.rules]] {rule}: {reason}")]
    Rule { rule: String, reason: String },
    #[error(
        "[server.identity] needs 1 to {most} rules. Add [[server.identity.rules]] with claim, value and the rights that it gives"
    )]
    NumberOfRules { most: usize },
    #[error("cannot read [server.identity] secret_file {}: {source}", path.display())]
    SecretFile { path: PathBuf, source: io::Error },
    #[error("[server.identity] secret_file {} has less than {SHORTEST_SECRET} bytes. 'openssl rand -hex 32' makes a secret", path.display())]
    ShortSecret { path: PathBuf },
    #[error("cannot create the HTTP client for [server.identity] jwks_url: {0}")]
    Client(String),
}

/// Why the keys of the provider cannot be read.
#[derive(Debug, Error)]
pub(crate) enum FetchError {
    #[error("{0}")]
    Http(String),
    #[error("it answered with status {0}")]
    Status(u16),
    #[error("it has more than {0} bytes")]
    TooLarge(usize),
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    KeySet(#[from] KeySetError),
}

/// Why the sender of a token is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IdentityRefusal {
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The keys were never read.
    #[error(
        "the keys of the identity provider cannot be read now, so no token can be checked. Try again in a moment"
    )]
    NoKeys,
    #[error(
        "the token has no usable name in the claim '{claim}': 1 to {most} letters, without spaces, quotes and brackets. Change [server.identity] \
         name_claim"
    )]
    NoName { claim: String, most: usize },
    #[error(
        "the address '{email}' is not verified by the identity provider (email_verified). Verify it there, then sign in again"
    )]
    NotVerified { email: String },
    #[error(
        "'{name}' is signed in, and no rule of this server gives rights to it. Ask the owner of this server for a rule"
    )]
    NoRule { name: String },
    #[error("'{name}' is blocked on this server. Ask its owner")]
    Blocked { name: String },
    #[error("too many people use this server now. Try again in a few minutes")]
    TooMany,
}

impl IdentityRefusal {
    /// Whether newer keys of the provider could change the answer.
    pub fn needs_keys(&self) -> bool {
        matches!(self, IdentityRefusal::NoKeys | IdentityRefusal::Token(TokenError::UnknownKey))
    }
}
