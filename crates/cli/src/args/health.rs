//! Arguments of `hob health`.

use clap::Parser;

use super::serve::bind_host;
use super::values::port;

/// Check whether the server is healthy
///
/// The exit code is 0 if the server is running and its engine answers, and 1 if not. The check needs no API key, and no
/// configuration file if the server has none.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob health"
    "hob health --port 8001"
})]
pub struct HealthArgs {
    /// Address of the server [default: as configured, or this machine]
    #[arg(long, value_parser = bind_host)]
    pub host: Option<String>,

    /// Port of the server [default: as configured, or 8000]
    #[arg(short, long, value_parser = port)]
    pub port: Option<u16>,
}
