//! What a build without the embedded engine says about models on this machine's own disk.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use hob_config::Config;
use hob_system::FirstRun;

use crate::args::NetworkAccess;

pub fn first_run(_network: NetworkAccess) -> FirstRun {
    FirstRun::Refuse
}

/// There is none.
pub async fn can_fetch_starter(_config: &Config, _home: &Path) -> bool {
    false
}

pub fn first_vectors(_network: NetworkAccess) -> FirstRun {
    FirstRun::Refuse
}

/// No name is one for this disk.
pub async fn pull(_config: &Config, _name: &str, _network: NetworkAccess) -> Result<Option<ExitCode>> {
    Ok(None)
}

/// There is no engine that would load any.
pub fn broken_models(_config: &Config, _home: &Path) -> Vec<(String, String)> {
    Vec::new()
}

pub fn remove(_config: &Config, _id: &str) -> Result<ExitCode> {
    bail!("{EXPLANATION}")
}

pub async fn tune(_config: &Config, _id: &str, _always: bool) -> Result<ExitCode> {
    bail!("{EXPLANATION}")
}

const EXPLANATION: &str = "this hob was built without the embedded engine. Install it with: \
                           cargo install --path crates/cli --features embedded";
