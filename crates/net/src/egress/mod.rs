//! The egress guard: requests that a model or a page asks for reach public addresses only.

mod address;
mod resolver;

pub use address::{AddressPolicy, is_public};
pub use resolver::{AddressLookup, CheckedResolver, ForbiddenAddress, LookupFuture, system_lookup};
