//! `hob mcp`: Hob's tools for other programs. stdout belongs to the protocol: nothing here writes to it.

use std::process::ExitCode;

use anyhow::Result;
use hob_app::serve_mcp;

use crate::args::McpArgs;
use crate::commands::{block_on, memory};
use crate::settings;
use crate::signals::Signals;

pub fn run(McpArgs {}: &McpArgs) -> Result<ExitCode> {
    let config = settings::load()?;
    let parts = memory::registry_parts(&config, settings::databases(&config)?)?;
    block_on(async {
        let mut signals = Signals::listen()?;
        // Dropping the service stops running tools.
        tokio::select! {
            served = serve_mcp(&config, parts, env!("CARGO_PKG_VERSION")) => Ok(served.map(|()| ExitCode::SUCCESS)?),
            stop = signals.next() => Ok(stop.exit_code()),
        }
    })
}
