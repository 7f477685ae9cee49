//! Shared by all network clients and the server: the HTTP client and its options, bodies with a limit, `Retry-After`, TLS, local and public addresses,
//! the names of this machine, the announcement of its server, the trace context, which of several hosts got a request, whether an address is
//! free, the sockets of Hob's own HTTP client and of its server.
//! Knows nothing of engines, pages or channels, and sends no HTTP request.

mod announce;
pub mod chosen_host;
mod client_tls;
pub mod egress;
mod error;
mod http_client;
mod interfaces;
mod local_address;
mod machine_name;
mod port_check;
mod response_body;
mod retry_after;
mod server_tls;
#[cfg(simulation)]
mod simulated_stream;
pub mod tcp;
mod tls;
pub mod trace_context;

pub use announce::{AnnounceError, Announcement, Announcer};
pub use client_tls::{TlsClient, TlsClientSocket, connect_tcp, read_authorities};
pub use error::{is_bad_certificate, root_cause};
pub use http_client::{
    CertificateCheck, DEFAULT_CONNECT_TIMEOUT, FixedAddress, HttpClientOptions, ProxyUse, RedirectPolicy,
    USER_AGENT, http_client,
};
pub use interfaces::network_addresses;
pub use local_address::{
    BindAddress, is_loopback, is_on_this_machine, is_own_address, stays_on_this_machine,
};
pub use machine_name::{local_name, machine_name, machine_names};
pub use port_check::{check_address, check_port};
pub use response_body::response_body;
pub use retry_after::{retry_after, whole_seconds};
pub use server_tls::{CertificateChange, CertificateError, CertificateFiles, ServerCertificate, TlsSocket};
pub use tls::install_crypto;
