//! Hints for engines that do not answer.

use hob_config::{Config, EngineConfig};
use hob_core::HostDiscovery;
use hob_engines::selection::{RejectedEngine, RejectionReason};
use hob_net::{BindAddress, is_own_address};
use url::{Host, Url};

/// An engine with its address, if it has one.
pub fn place(key: &str, address: &str) -> String {
    match address {
        "" => key.to_owned(),
        address => format!("{key} at {address}"),
    }
}

/// How to start an engine, as a sentence without a full stop.
pub fn how_to_start(key: &str, address: &str) -> String {
    if let Ok(HostDiscovery { name, .. }) = address.parse() {
        return format!("Check that its hosts are running, and that DNS lists them under {name}");
    }
    let place = EngineAddress::of(address);
    let port = place.port;
    if let (Some(usual), Some(host), None) = (usual_port(key), &place.host, place.written_port) {
        return format!(
            "Hob connects to port {}. If it listens on its default port, set [engine.{key}] host = \"http://{host}:{usual}\"",
            port.unwrap_or_default()
        );
    }
    // Some engines listen on the loopback address only by default.
    let (ollama, outside) = match place.elsewhere {
        Some(_) => ("OLLAMA_HOST=0.0.0.0:", " --host 0.0.0.0"),
        None => ("OLLAMA_HOST=127.0.0.1:", ""),
    };
    let command = match key {
        "ollama" if port == Some(11434) && place.elsewhere.is_none() => "ollama serve".to_owned(),
        "ollama" => with_port(ollama, port, " ollama serve"),
        "vllm" => with_port("vllm serve MODEL --port ", port, ""),
        "sglang" => with_port("python3 -m sglang.launch_server --model-path MODEL --port ", port, outside),
        "llamacpp" => with_port("llama-server -m MODEL.gguf --port ", port, outside),
        "litellm" => with_port("litellm --model MODEL --port ", port, ""),
        "cloud" if address.is_empty() => {
            return "Set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY to use it".to_owned();
        }
        "cloud" => return "Check the key and the network".to_owned(),
        "embedded" => return "Download a model with 'hob model pull smollm2-135m-instruct'".to_owned(),
        _ => return format!("Start {key}"),
    };
    match place.elsewhere {
        Some(host) => format!("Start it on {host} with '{command}'"),
        None => format!("Start it with '{command}'"),
    }
}

/// The same for an engine whose default port is Hob's own.
pub fn how_to_start_beside_us(key: &str) -> String {
    const BESIDE: &str = "http://localhost:8001";
    format!("{}, and set [engine.{key}] host = \"{BESIDE}\"", how_to_start(key, BESIDE))
}

/// How to get a model for an engine, as a sentence without a full stop.
pub fn how_to_get_a_model(key: &str) -> &'static str {
    match key {
        "ollama" => "Download one, e.g. with 'hob model pull qwen3:0.6b'",
        "embedded" => "Download one with 'hob model pull smollm2-135m-instruct'",
        "cloud" => "Choose one with -m or [intelligence] default_model",
        _ => "Start it with a model, or choose another engine with -e",
    }
}

/// The hint for an engine whose address is Hob's own.
pub fn how_to_part(key: &str) -> String {
    format!(
        "Change one of the two ports: 'hob serve --port 8001', or [engine.{key}] host in the configuration"
    )
}

/// Why an engine was not chosen, and what to do: whole sentences.
pub fn explain(tried: &RejectedEngine) -> String {
    let RejectedEngine { key, address, why_not } = tried;
    match why_not {
        RejectionReason::Unhealthy if address.is_empty() => {
            format!("{key} is not ready. {}, or run 'hob doctor'.", how_to_start(key, address))
        }
        RejectionReason::Unhealthy => format!(
            "no engine answered on {address} ({key}). {}, or run 'hob doctor'.",
            how_to_start(key, address)
        ),
        RejectionReason::OwnAddress => {
            format!("{key} is configured at {address}, which is Hob's own address. {}.", how_to_part(key))
        }
        RejectionReason::CloudNotAllowed => {
            "the cloud does not replace a local engine by default. Use '-e cloud', or set [intelligence] \
             allow_cloud_fallback."
                .to_owned()
        }
    }
}

/// Why the default engine was skipped, in a few words.
pub fn passed_over(key: &str, config: &Config) -> String {
    let bind = BindAddress { host: config.server.host.clone(), port: config.server.port };
    let server = key.parse().ok().and_then(|key| config.engine.server(key));
    match server {
        Some(server) if is_own_address(&server.host, &bind) => format!("{key} is set to Hob's own address"),
        _ => format!("{key} does not answer"),
    }
}

/// The default port of an engine.
fn usual_port(key: &str) -> Option<u16> {
    let usual = EngineConfig::default();
    let server = usual.server(key.parse().ok()?)?;
    EngineAddress::of(&server.host).port
}

fn with_port(before: &str, port: Option<u16>, after: &str) -> String {
    let port = port.map_or_else(|| "PORT".to_owned(), |port| port.to_string());
    format!("{before}{port}{after}")
}

struct EngineAddress {
    port: Option<u16>,
    /// The port, if the address contains it.
    written_port: Option<u16>,
    host: Option<String>,
    /// The name of the machine, if it is another one.
    elsewhere: Option<String>,
}

impl EngineAddress {
    fn of(address: &str) -> Self {
        let Ok(url) = Url::parse(address) else {
            return EngineAddress { port: None, written_port: None, host: None, elsewhere: None };
        };
        let is_here = match url.host() {
            None => true,
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(ip)) => ip.is_loopback() || ip.is_unspecified(),
            Some(Host::Ipv6(ip)) => ip.is_loopback() || ip.is_unspecified(),
        };
        EngineAddress {
            port: url.port_or_known_default(),
            // HTTPS usually means a proxy on the default port.
            written_port: if url.scheme() == "http" { url.port() } else { url.port_or_known_default() },
            host: url.host_str().map(str::to_owned),
            elsewhere: url.host_str().filter(|_| !is_here).map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_fits_the_address() {
        for (key, address, expected) in [
            ("ollama", "http://localhost:11434", "Start it with 'ollama serve'"),
            ("ollama", "http://localhost:9999", "Start it with 'OLLAMA_HOST=127.0.0.1:9999 ollama serve'"),
            ("vllm", "http://127.0.0.1:8001", "Start it with 'vllm serve MODEL --port 8001'"),
            (
                "llamacpp",
                "http://gpu.lan:8080",
                "Start it on gpu.lan with 'llama-server -m MODEL.gguf --port 8080 --host 0.0.0.0'",
            ),
            (
                "ollama",
                "http://gpu.lan:11434",
                "Start it on gpu.lan with 'OLLAMA_HOST=0.0.0.0:11434 ollama serve'",
            ),
            (
                "ollama",
                "http://gpu.lan",
                "Hob connects to port 80. If it listens on its default port, set [engine.ollama] host = \"http://gpu.lan:11434\"",
            ),
            ("cloud", "", "Set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY to use it"),
            ("embedded", "", "Download a model with 'hob model pull smollm2-135m-instruct'"),
        ] {
            assert_eq!(how_to_start(key, address), expected);
        }
    }

    #[test]
    fn a_silent_engine_is_named_with_its_address_and_what_to_do() {
        let silent = RejectedEngine {
            key: "ollama".into(),
            address: "http://localhost:11434".into(),
            why_not: RejectionReason::Unhealthy,
        };
        assert_eq!(
            explain(&silent),
            "no engine answered on http://localhost:11434 (ollama). Start it with 'ollama serve', or run 'hob doctor'."
        );
    }

    #[test]
    fn the_reason_for_another_engine_is_correct() {
        let config = Config::default();
        assert_eq!(passed_over("ollama", &config), "ollama does not answer");
        assert_eq!(passed_over("vllm", &config), "vllm is set to Hob's own address");
    }
}
