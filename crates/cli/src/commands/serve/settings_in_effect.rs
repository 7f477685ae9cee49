//! The settings that a server runs with: flags over the file, and a warning if nothing protects it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use hob_config::{Config, ServerConfig};
use hob_core::model::DEFAULT_MODEL;
use serde_json::Value;

use crate::args::{AgentChoice, ServeArgs};
use crate::output;

/// What `--lan` listens on.
const ALL_ADDRESSES: &str = "0.0.0.0";

/// Flags override the file, the file overrides the defaults.
pub(super) fn apply(args: ServeArgs, config: &mut Config) {
    let ServeArgs { host, port, lan, engine: _, model, agent, offline: _ } = args;
    if let Some(model) = model {
        config.use_model(&model);
    }
    let server = &mut config.server;
    if let Some(host) = host {
        server.host = host;
    }
    if lan {
        server.host = ALL_ADDRESSES.to_owned();
    }
    if let Some(port) = port {
        server.port = port;
    }
    match agent {
        Some(AgentChoice::Agent(agent)) => server.agent = Some(agent),
        Some(AgentChoice::None) => server.agent = None,
        None => {}
    }
}

/// The settings that flags override, with their values as the settings page shows them.
pub(super) fn overridden(args: &ServeArgs) -> BTreeMap<&'static str, Value> {
    let host = if args.lan { Some(ALL_ADDRESSES) } else { args.host.as_deref() };
    let model = args.model.as_deref().filter(|model| *model != DEFAULT_MODEL);
    let agent = args.agent.map(|agent| match agent {
        AgentChoice::Agent(agent) => agent.as_str(),
        AgentChoice::None => "",
    });
    let values = [
        ("engine.default", args.engine.map(|engine| Value::from(engine.as_str()))),
        ("server.host", host.map(Value::from)),
        ("server.port", args.port.map(Value::from)),
        ("server.model", model.map(Value::from)),
        ("server.agent", agent.map(Value::from)),
    ];
    values.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

/// Warns if others can use the server without a key.
pub(super) fn warn_if_open(address: SocketAddr, config: &ServerConfig) {
    if config.api_key.is_some() || config.identity.is_on() {
        return;
    }
    if !address.ip().is_loopback() {
        output::warning(
            "Anyone on your network can use this server: no API key is set. Set HOB_API_KEY, or use --host 127.0.0.1.",
        );
    } else if !config.allowed_hosts.is_empty() {
        output::warning(format_args!(
            "Anyone who reaches this server as {} can use it: no API key is set. Set HOB_API_KEY.",
            config.allowed_hosts.join(", ")
        ));
    }
}

#[cfg(test)]
mod tests {
    use hob_config::{AgentName, EngineName};

    use super::*;

    #[test]
    fn flags_override_the_file() {
        let mut config = Config::default();
        config.server.model = Some("from-file".into());
        let args = ServeArgs {
            host: Some("::1".into()),
            port: Some(9000),
            lan: false,
            engine: Some(EngineName::Vllm),
            model: None,
            agent: Some(AgentChoice::None),
            offline: false,
        };
        let shown = [
            ("engine.default", Value::from("vllm")),
            ("server.agent", Value::from("")),
            ("server.host", Value::from("::1")),
            ("server.port", Value::from(9000)),
        ];
        assert_eq!(overridden(&args), BTreeMap::from(shown));
        apply(args, &mut config);
        let server = config.server;
        assert_eq!(
            (server.host.as_str(), server.port, server.model.as_deref(), server.agent),
            ("::1", 9000, Some("from-file"), None::<AgentName>)
        );
    }

    #[test]
    fn for_the_network_it_listens_on_all_addresses() {
        let mut config = Config::default();
        config.server.host = "127.0.0.1".into();
        let args = ServeArgs {
            host: None,
            port: None,
            lan: true,
            engine: None,
            model: None,
            agent: None,
            offline: false,
        };
        apply(args.clone(), &mut config);
        assert_eq!(config.server.host, "0.0.0.0");
        assert_eq!(overridden(&args), BTreeMap::from([("server.host", Value::from("0.0.0.0"))]));
    }
}
