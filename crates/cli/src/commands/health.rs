//! `hob health`: checks the running server, for a container runtime or a cron job.

use std::process::ExitCode;

use anyhow::{Result, bail};
use hob_config::ServerConfig;

use crate::args::HealthArgs;
use crate::commands::block_on;
use crate::output;
use crate::running_server::{LocatedServer, ServerProbe, locate, probe, reachable};
use crate::settings;

pub fn run(args: HealthArgs) -> Result<ExitCode> {
    let mut server = settings::load()?.server;
    // A monitor that names an address means no other one.
    let is_named = args.host.is_some() || args.port.is_some();
    server.host = args.host.unwrap_or(server.host);
    server.port = args.port.unwrap_or(server.port);
    let found = if is_named { at(&server)? } else { find(&server)? };
    let place = format!("{}:{}", reachable(&found.host), found.port);
    match found.probe {
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

/// What listens at the address of these settings.
fn at(server: &ServerConfig) -> Result<LocatedServer> {
    let ServerConfig { host, port, .. } = server;
    let probe = block_on(async { Ok(probe(host, *port).await) })?;
    Ok(LocatedServer { host: host.clone(), port: *port, probe })
}

/// The running server of this home, also at another address than the configured one.
fn find(server: &ServerConfig) -> Result<LocatedServer> {
    let home = settings::home()?;
    block_on(async { Ok(locate(server, &home).await) })
}

/// A hint about a server at another address than the named one.
fn where_it_may_be(server: &ServerConfig) -> Result<String> {
    let found = find(server)?;
    Ok(match found.probe {
        ServerProbe::Hob { .. } => {
            format!("Hob is running on {}:{}: use 'hob health' alone.", reachable(&found.host), found.port)
        }
        ServerProbe::NoListener | ServerProbe::OtherProgram => {
            "Start the server with 'hob serve'.".to_owned()
        }
    })
}
