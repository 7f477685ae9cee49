//! What every network client has in common: the HTTP client and its options, TLS, own and public addresses, the trace that a
//! request belongs to. Knows nothing of engines, pages or channels, and sends no request itself.

pub mod egress;
mod error;
mod http_client;
mod local_address;
mod tls;
pub mod trace_context;

pub use error::root_cause;
pub use http_client::{
    DEFAULT_CONNECT_TIMEOUT, HttpClientOptions, ProxyUse, RedirectPolicy, USER_AGENT, http_client,
};
pub use local_address::{BindAddress, is_loopback, is_on_this_machine, is_own_address};
pub use tls::install_crypto;
