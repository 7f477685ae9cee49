//! The egress guard: requests that a model or a page asks for reach public addresses only.
//!
//! It sees where a connection goes. The scheme and every redirect are checked by whoever fetches, in a `fetch.rs` of its own.

mod address;
mod resolver;

pub use address::{AddressPolicy, is_public};
pub use resolver::{AddressLookup, CheckedResolver, ForbiddenAddress, LookupFuture, system_lookup};
