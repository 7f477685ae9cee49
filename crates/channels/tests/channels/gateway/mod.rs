//! The bridge against a gateway on a real socket, well and badly behaved.

mod flood;
mod openclaw;
mod reconnect;
#[cfg(unix)]
mod replicas;
mod simple;
mod support;
