//! Arguments of `hob serve`.

use clap::Parser;
use hob_config::EngineName;

use super::values::{AgentChoice, agents, engines, port};

/// Start the HTTP server
#[derive(Debug, Clone, Parser)]
#[command(after_help = examples! {
    "hob serve                             use the settings of the configuration file"
    "hob serve --host 127.0.0.1            accept local connections only"
    "hob serve -e ollama -m qwen3:8b       use this engine and this default model"
    "hob serve --lan                       let phones and other machines of your network in, with a key"
    ""
    "curl http://localhost:8000/v1/chat/completions -H 'content-type: application/json' \\"
    "  -d '{\"model\": \"default\", \"agent\": \"none\", \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}'"
})]
pub struct ServeArgs {
    /// Address to listen on [default: as configured, or 0.0.0.0]
    #[arg(long, value_parser = bind_host)]
    pub host: Option<String>,

    /// Port to listen on [default: as configured, or 8000]
    #[arg(short, long, value_parser = port)]
    pub port: Option<u16>,

    /// Listen on all addresses, and print them with a QR code and a new key named 'lan'
    #[arg(long, conflicts_with = "host")]
    pub lan: bool,

    /// Engine to use, with no fallback [default: as configured, or one that is running]
    #[arg(short, long, value_parser = engines())]
    pub engine: Option<EngineName>,

    /// Model for the name 'default' [default: as configured, or the engine's first]
    #[arg(short, long)]
    pub model: Option<String>,

    /// Agent for non-streaming requests: simple, orchestrator, react, codeact or none
    #[arg(short, long, value_parser = agents(), hide_possible_values = true)]
    pub agent: Option<AgentChoice>,

    /// Do not download a model, even if no engine is running
    #[arg(long)]
    pub offline: bool,
}

/// Brackets around an IPv6 address belong to URLs.
pub(super) fn bind_host(text: &str) -> Result<String, String> {
    let host = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Some((host, port)) = split_port(text) {
        return Err(format!("the port has its own option: --host {host} --port {port}"));
    }
    if host.is_empty() || host.contains(['/', ' ']) || host.contains("://") {
        return Err("expected an IP address or a host name, such as 127.0.0.1".to_owned());
    }
    Ok(host.to_owned())
}

/// A host and a port in one text, such as `localhost:8000`. An IPv6 address without brackets has no port.
fn split_port(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let is_one_host = !host.contains(':') || (host.starts_with('[') && host.ends_with(']'));
    let port = port.parse().ok().filter(|_| is_one_host && !host.is_empty())?;
    Some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_no_url() {
        assert_eq!(bind_host("[::1]").as_deref(), Ok("::1"));
        assert_eq!(bind_host("box.lan").as_deref(), Ok("box.lan"));
        assert!(bind_host("http://box").is_err());
        assert!(bind_host("").is_err());
        assert_eq!(bind_host("fd00::1").as_deref(), Ok("fd00::1"));
        for (text, host) in [("localhost:18450", "localhost"), ("[::1]:18450", "[::1]")] {
            let expected = format!("the port has its own option: --host {host} --port 18450");
            assert_eq!(bind_host(text), Err(expected));
        }
    }
}
