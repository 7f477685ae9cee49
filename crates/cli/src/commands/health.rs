//! `hob health`: checks the running server, for a container runtime or a cron job.

use std::process::ExitCode;

use anyhow::{Result, bail};
use hob_config::ServerConfig;

use crate::args::HealthArgs;
use crate::commands::block_on;
use crate::output;
use crate::running_server::{ServerProbe, locate, probe, reachable};
use crate::settings;

pub fn run(args: HealthArgs) -> Result<ExitCode> {
    let mut server = settings::load()?.server;
    server.host = args.host.unwrap_or(server.host);
    server.port = args.port.unwrap_or(server.port);
    let place = format!("{}:{}", reachable(&server.host), server.port);
    match block_on(async { Ok(probe(&server.host, server.port).await) })? {
        ServerProbe::Hob { health: 200, .. } => {
            output::line("ok")?;
            Ok(ExitCode::SUCCESS)
        }
        ServerProbe::Hob { .. } => {
            bail!("Hob is running on {place}, but its engine does not answer. Run 'hob doctor'.")
        }
        ServerProbe::OtherProgram => {
            bail!("another program listens on {place}, or Hob does not answer in time.")
        }
        ServerProbe::NoListener => bail!("nothing listens on {place}. {}", where_it_may_be(&server)?),
    }
}

/// A hint about a server on another port. It does not make the check succeed, because a monitor means one address.
fn where_it_may_be(server: &ServerConfig) -> Result<String> {
    let home = settings::home()?;
    let found = block_on(async { Ok(locate(server, &home).await) })?;
    Ok(match found.probe {
        ServerProbe::Hob { .. } => {
            let host = reachable(&found.host);
            format!("Hob is running on {host}:{0}: use 'hob health --host {host} --port {0}'.", found.port)
        }
        ServerProbe::NoListener | ServerProbe::OtherProgram => {
            "Start the server with 'hob serve'.".to_owned()
        }
    })
}
