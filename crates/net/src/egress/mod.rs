//! The egress guard: requests that a model or a page asks for reach public addresses only.
//!
//! It sees where a connection goes. The crates that fetch check the scheme and every redirect, each in its `fetch.rs`.

mod address;
mod resolver;

pub use address::{AddressPolicy, is_public};
pub use resolver::{AddressLookup, CheckedResolver, ForbiddenAddress, LookupFuture, system_lookup};
