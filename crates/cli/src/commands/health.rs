//! `hob health`: whether the server that runs here is well, for those who watch over it: a container runtime, a cron job.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::args::HealthArgs;
use crate::commands::block_on;
use crate::neighbour::{Neighbour, look, reachable};
use crate::output;
use crate::settings;

pub fn run(args: HealthArgs) -> Result<ExitCode> {
    let server = settings::load()?.server;
    let host = args.host.unwrap_or(server.host);
    let port = args.port.unwrap_or(server.port);
    let place = format!("{}:{port}", reachable(&host));
    match block_on(async { Ok(look(&host, port).await) })? {
        Neighbour::Hob { health: 200 } => {
            output::line("ok")?;
            Ok(ExitCode::SUCCESS)
        }
        Neighbour::Hob { .. } => {
            bail!("Hob runs on {place}, but its engine does not answer. 'hob doctor' says what to do.")
        }
        Neighbour::Stranger => {
            bail!("something else than Hob listens on {place}, or it does not answer in time.")
        }
        Neighbour::Nobody => bail!("nothing listens on {place}. Start the server with 'hob serve'."),
    }
}
