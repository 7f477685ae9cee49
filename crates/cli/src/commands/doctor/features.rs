//! What agents work with, as far as it is switched on: the sandbox, MCP servers, the record of calls.

use hob_config::{Config, McpTransportConfig};
use hob_system::check_sandbox;

use super::executable::is_program;
use super::report::{CheckStatus, DoctorCheck};

/// Whether code can be run, where that is wanted.
pub async fn sandbox(config: &Config) -> Option<DoctorCheck> {
    const NAME: &str = "sandbox";
    let found = check_sandbox(config).await?;
    Some(match found {
        Ok(runner) => DoctorCheck::new(NAME, CheckStatus::Good, format!("code runs in {runner}")),
        Err(error) => DoctorCheck::new(NAME, CheckStatus::Warning, error.to_string())
            .advise("Install bubblewrap (apt-get install bubblewrap), or set [sandbox] enabled = false"),
    })
}

/// Servers whose program is not there. Whether the others work shows when they are started.
pub fn mcp(config: &Config) -> impl Iterator<Item = DoctorCheck> {
    config.mcp.servers.iter().filter_map(|(name, server)| match &server.transport {
        McpTransportConfig::Command { command, .. } if !is_program(command) => {
            let message = format!("{name}: there is no program '{}'", command.display());
            let advice = format!("Install it, or correct [mcp.servers.{name}] command");
            Some(DoctorCheck::new("mcp", CheckStatus::Warning, message).advise(advice))
        }
        McpTransportConfig::Command { .. } | McpTransportConfig::Url { .. } => None,
    })
}

/// Worth a line only when it is off: then there are no figures, and nobody should look for them.
pub fn telemetry(config: &Config) -> Option<DoctorCheck> {
    let off = DoctorCheck::new(
        "telemetry",
        CheckStatus::Off,
        "calls are not recorded ([telemetry] enabled = false)",
    );
    (!config.telemetry.enabled).then_some(off)
}
