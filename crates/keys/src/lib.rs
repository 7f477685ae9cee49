//! Named API keys, and identities from outside: what they may use, how much, and what they have used; and the log of changes. Knows
//! nothing of HTTP, of `config.toml`, of engines or of prices: `app` passes in what a call costs.
//!
//! | file | what |
//! |---|---|
//! | `key` | a key, and what may be asked of a new one |
//! | `limits` | limits and budgets, as they are written and read |
//! | `secret` | secrets and their hashes |
//! | `account` | counts what a key uses, in memory |
//! | `metered` | the account of a key, with shares that the store leases |
//! | `spending` | admits requests and calls, and counts them until they end |
//! | `refusal` | the messages for a key that has not enough left |
//! | `options` | what the keys need from the rest of the program |
//! | `key_snapshot` | the keys in memory |
//! | `key_refresh` | follows changes of the keys by other processes |
//! | `refresh_signal` | asks for a refresh of the keys in memory, and waits for it |
//! | `identity` | identities from outside: tokens that an identity provider has signed |
//! | `service` | what callers use |
//! | `usage` | keys with what they have used, for callers |
//! | `audit` | the log of changes, and its chain of hashes |
//! | `audit_service` | writes, reads and checks the log |
//! | `audited_tool` | tools of agents whose changes are in the log |
//! | `store` | where keys, shares and the log are saved |

mod account;
mod audit;
mod audit_service;
mod audited_tool;
#[cfg(fuzzing)]
pub mod fuzzing;
mod identity;
mod key;
mod key_refresh;
mod key_snapshot;
pub mod limits;
mod metered;
mod options;
mod refresh_signal;
mod refusal;
mod secret;
mod service;
mod spending;
pub mod store;
mod usage;

pub use audit::{AuditActor, AuditChain, AuditEntry, AuditEvent, AuditFault};
pub use audit_service::AuditService;
pub use audited_tool::AuditedTool;
pub use identity::{
    IdentityError, IdentityOptions, IdentityRefusal, IdentityRule, IdentityRules, IdentityService, KeyOrigin,
    KeyPlaces, KeySetError, TokenAlgorithm, TokenError, looks_like_token, token_algorithms,
};
pub use key::{ApiKey, KeyError, KeyField, KeyName, KeyPatch, KeyRole, KeyRules, KeyStatus, NewKey};
pub use key_snapshot::{ActiveKey, KeyCheck, KeySnapshot};
pub use limits::{Budget, Period, Quota, QuotaUsage, Unit};
pub use metered::RateHeaders;
pub use options::{CallCost, KeyOptions, PriceFn, StoreFailure};
pub use secret::{KeySecret, SECRET_PREFIX};
pub use service::{CreatedKey, KeyService, ROTATION_OVERLAP};
pub use store::{
    COPY_TABLES, KeyStore, MIGRATIONS, POSTGRES_MIGRATIONS, PostgresKeyStore, SqliteKeyStore, has_keys,
    has_valid_keys, key_store,
};
