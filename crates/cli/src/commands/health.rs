//! `hob health`: whether the server that runs here is well, for those who watch over it: a container runtime, a cron job.

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
        ServerProbe::Hob { health: 200 } => {
            output::line("ok")?;
            Ok(ExitCode::SUCCESS)
        }
        ServerProbe::Hob { .. } => {
            bail!("Hob runs on {place}, but its engine does not answer. 'hob doctor' says what to do.")
        }
        ServerProbe::OtherProgram => {
            bail!("something else than Hob listens on {place}, or it does not answer in time.")
        }
        ServerProbe::NoListener => bail!("nothing listens on {place}. {}", where_it_may_be(&server)?),
    }
}

/// Whoever watches over a server means that one, so another is no substitute. It may be the one that was meant, though.
fn where_it_may_be(server: &ServerConfig) -> Result<String> {
    let home = settings::home()?;
    let found = block_on(async { Ok(locate(server, &home).await) })?;
    Ok(match found.probe {
        ServerProbe::Hob { .. } => {
            let host = reachable(&found.host);
            format!("Hob runs on {host}:{0}: ask with 'hob health --host {host} --port {0}'.", found.port)
        }
        ServerProbe::NoListener | ServerProbe::OtherProgram => {
            "Start the server with 'hob serve'.".to_owned()
        }
    })
}
