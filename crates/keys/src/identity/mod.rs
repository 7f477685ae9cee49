//! Identities from outside: a token that a company's identity provider has signed, instead of a key that Hob stores.
//!
//! | file | what |
//! |---|---|
//! | `signing_key` | the keys of a provider, and the check of a signature |
//! | `token` | a token: its form, its signature, its claims |
//! | `rules` | which rights claims give |
//! | `key_source` | reads the keys of the provider, and keeps them |
//! | `token_cache` | tokens that were checked |
//! | `accounts` | what identities use, by name |
//! | `service` | what callers use |

pub(crate) mod accounts;
mod error;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod key_source;
mod rules;
mod service;
mod signing_key;
mod token;
mod token_cache;

pub use error::{IdentityError, IdentityRefusal};
pub use key_source::KeyOrigin;
pub use rules::{IdentityRule, IdentityRules};
pub use service::{IdentityOptions, IdentityService, KeyPlaces, token_algorithms};
pub use signing_key::{KeySetError, TokenAlgorithm};
pub use token::{TokenError, looks_like_token};
