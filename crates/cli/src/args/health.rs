//! Arguments of `hob health`.

use clap::Parser;

use super::serve::bind_host;
use super::values::port;

/// Check whether the server is healthy
///
/// The exit code is 0 if the server is running and its engine answers, and 1 if not. The check needs no API key, and no
/// configuration file if the server has none. Without --host and --port, the check finds the running server of this home, also on
/// another port than the configured one.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob health"
    "hob health --port 8001"
})]
pub struct HealthArgs {
    /// Address of the server [default: the running server's]
    #[arg(long, value_parser = bind_host)]
    pub host: Option<String>,

    /// Port of the server [default: the running server's]
    #[arg(short, long, value_parser = port)]
    pub port: Option<u16>,
}
