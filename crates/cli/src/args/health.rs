//! `hob health` as it is typed.

use clap::Parser;

use super::serve::bind_host;
use super::values::port;

/// Ask the server that runs here whether it is well
///
/// Ends with 0 when it runs and its engine answers, and with 1 when not. Needs no key, and no configuration where the server
/// has none.
#[derive(Debug, Parser)]
pub struct HealthArgs {
    /// Address the server listens on [default: as configured, or this machine]
    #[arg(long, value_parser = bind_host)]
    pub host: Option<String>,

    /// Port it listens on [default: as configured, or 8000]
    #[arg(short, long, value_parser = port)]
    pub port: Option<u16>,
}
