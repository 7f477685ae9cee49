//! Where Hob's own server listens, for commands that look at the engines and do not listen themselves. An engine at that address would be
//! Hob itself; vLLM has the same default port.

use std::path::Path;

use hob_config::{Config, EngineConfig, EngineName};
use hob_net::{BindAddress, is_own_address};

use crate::running_server::{ServerProbe, locate, probe};

/// The settings to look at all engines with. Hob's address is where a server of this home runs, if one does.
pub async fn as_served(config: &Config, home: &Path) -> Config {
    let found = locate(&config.server, home).await;
    match found.probe {
        ServerProbe::Hob { .. } => {
            let mut config = config.clone();
            config.server.host = found.host;
            config.server.port = found.port;
            config
        }
        ServerProbe::NoListener | ServerProbe::OtherProgram => with_engine_at_own_address(config, None).await,
    }
}

/// The settings to open the app with. If a chosen engine is configured at the address of `hob serve`, and another program listens there,
/// that program is the engine.
pub async fn with_engine_at_own_address(config: &Config, only: Option<EngineName>) -> Config {
    let bind = BindAddress { host: config.server.host.clone(), port: config.server.port };
    let EngineConfig { default, pool, .. } = &config.engine;
    let chosen: Vec<EngineName> = match only {
        Some(engine) => vec![engine],
        None if config.engine.is_chosen() => default.iter().chain(pool).copied().collect(),
        None => Vec::new(),
    };
    let is_there = |engine: EngineName| {
        config.engine.addresses(engine).iter().any(|address| is_own_address(address, &bind))
    };
    let is_other =
        chosen.into_iter().any(is_there) && probe(&bind.host, bind.port).await == ServerProbe::OtherProgram;
    if is_other { without_own_address(config) } else { config.clone() }
}

/// The settings with which no engine is taken for Hob: none has this port.
pub fn without_own_address(config: &Config) -> Config {
    let mut config = config.clone();
    config.server.port = 0;
    config
}
