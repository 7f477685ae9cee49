//! Optional features, if enabled: the sandbox, MCP servers, sources, telemetry.

use hob_app::check_sandbox;
use hob_config::{Config, McpTransportConfig};

use super::executable::is_program;
use super::report::{CheckStatus, DoctorCheck};
use crate::output::number::counted;

/// Whether code can run, if the sandbox is enabled.
pub async fn sandbox(config: &Config) -> Option<DoctorCheck> {
    const NAME: &str = "sandbox";
    let found = check_sandbox(config).await?;
    Some(match found {
        Ok(runner) => DoctorCheck::new(NAME, CheckStatus::Good, format!("code runs in {runner}")),
        Err(error) => DoctorCheck::new(NAME, CheckStatus::Warning, error.to_string())
            .advise("Install bubblewrap (apt-get install bubblewrap), or set [sandbox] enabled = false"),
    })
}

/// Servers whose program does not exist. Other failures show only when a server starts.
pub fn mcp(config: &Config) -> impl Iterator<Item = DoctorCheck> {
    config.mcp.servers.iter().filter_map(|(name, server)| match &server.transport {
        McpTransportConfig::Command { command, .. } if !is_program(command) => {
            let message = format!("{name}: the program '{}' does not exist", command.display());
            let advice = format!("Install it, or correct [mcp.servers.{name}] command");
            Some(DoctorCheck::new("mcp", CheckStatus::Warning, message).advise(advice))
        }
        McpTransportConfig::Command { .. } | McpTransportConfig::Url { .. } => None,
    })
}

/// The number of sources, if there are any. They are not read, because that takes as long as the slowest server.
pub fn sources(config: &Config) -> Option<DoctorCheck> {
    let sources = &config.sources;
    let weather = &sources.weather;
    let places = usize::from(weather.latitude.is_some() && weather.longitude.is_some());
    let count = sources.calendar.len() + sources.feeds.len() + sources.pages.len() + places;
    if weather.latitude.is_some() != weather.longitude.is_some() {
        let message = "the weather needs a latitude and a longitude";
        return Some(
            DoctorCheck::new("sources", CheckStatus::Warning, message)
                .advise("Set both under [sources.weather], or neither"),
        );
    }
    let message = || format!("{} configured; 'hob sources check' reads them", counted(count, "source"));
    (count > 0).then(|| DoctorCheck::new("sources", CheckStatus::Good, message()))
}

/// Reported only if telemetry is off, because then there are no statistics.
pub fn telemetry(config: &Config) -> Option<DoctorCheck> {
    let off = DoctorCheck::new(
        "telemetry",
        CheckStatus::Off,
        "calls are not recorded ([telemetry] enabled = false)",
    );
    (!config.telemetry.enabled).then_some(off)
}
