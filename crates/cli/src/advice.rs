//! What to do about an engine that does not answer.

use hob_config::{Config, EngineConfig};
use hob_net::{BindAddress, is_own_address};
use hob_system::{RejectedEngine, RejectionReason};
use url::{Host, Url};

/// An engine with its address, if it has one.
pub fn place(key: &str, address: &str) -> String {
    match address {
        "" => key.to_owned(),
        address => format!("{key} at {address}"),
    }
}

/// How to get an engine to answer, as a sentence without its full stop.
pub fn how_to_start(key: &str, address: &str) -> String {
    let place = EngineAddress::of(address);
    let port = place.port;
    if let (Some(usual), Some(host), None) = (usual_port(key), &place.host, place.written_port) {
        return format!(
            "It is asked on port {}. Set [engine.{key}] host = \"http://{host}:{usual}\" if it listens on \
             its usual one",
            port.unwrap_or_default()
        );
    }
    // Some of them listen to their own machine only, unless they are told otherwise.
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
        "embedded" => return "Get a model with 'hob model pull smollm2-135m-instruct'".to_owned(),
        _ => return format!("Start {key}"),
    };
    match place.elsewhere {
        Some(host) => format!("Start it on {host} with '{command}'"),
        None => format!("Start it with '{command}'"),
    }
}

/// The same for one whose usual address is ours too.
pub fn how_to_start_beside_us(key: &str) -> String {
    const BESIDE: &str = "http://localhost:8001";
    format!("{}, and set [engine.{key}] host = \"{BESIDE}\"", how_to_start(key, BESIDE))
}

/// How to get an engine a model to answer with, as a sentence without its full stop.
pub fn how_to_get_a_model(key: &str) -> &'static str {
    match key {
        "ollama" => "Get one, such as with 'hob model pull qwen3:0.6b'",
        "embedded" => "Get one with 'hob model pull smollm2-135m-instruct'",
        "cloud" => "Name one with -m, or in [intelligence] default_model",
        _ => "Start it with one, or choose another engine with -e",
    }
}

/// What to do about an engine whose address is our own.
pub fn how_to_part(key: &str) -> String {
    format!(
        "Give one of them another port: 'hob serve --port 8001', or [engine.{key}] host in the configuration"
    )
}

/// Why an engine was not chosen, and what to do: whole sentences.
pub fn explain(tried: &RejectedEngine) -> String {
    let RejectedEngine { key, address, why_not } = tried;
    match why_not {
        RejectionReason::Unhealthy if address.is_empty() => {
            format!("{key} cannot be used. {}, or run 'hob doctor'.", how_to_start(key, address))
        }
        RejectionReason::Unhealthy => format!(
            "no engine answered on {address} ({key}). {}, or run 'hob doctor'.",
            how_to_start(key, address)
        ),
        RejectionReason::OwnAddress => {
            format!("{key} is configured at {address}, where Hob itself listens. {}.", how_to_part(key))
        }
        RejectionReason::CloudNotAllowed => {
            "the cloud is not used in place of a local engine. Ask for it with '-e cloud', or set [intelligence] \
             allow_cloud_fallback."
                .to_owned()
        }
    }
}

/// Why the default engine was passed over, in a few words.
pub fn passed_over(key: &str, config: &Config) -> String {
    let bind = BindAddress { host: config.server.host.clone(), port: config.server.port };
    let server = key.parse().ok().and_then(|key| config.engine.server(key));
    match server {
        Some(server) if is_own_address(&server.host, &bind) => format!("the address of {key} is our own"),
        _ => format!("{key} does not answer"),
    }
}

/// Where an engine listens when nobody says otherwise.
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
    /// The same where the address names it, rather than leave it to the protocol.
    written_port: Option<u16>,
    host: Option<String>,
    /// The machine's name, when it is not this one.
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
            // An encrypted one is most often behind a proxy, which is meant to be where such are.
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
                "It is asked on port 80. Set [engine.ollama] host = \"http://gpu.lan:11434\" if it listens \
                 on its usual one",
            ),
            ("cloud", "", "Set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY to use it"),
            ("embedded", "", "Get a model with 'hob model pull smollm2-135m-instruct'"),
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
    fn the_reason_for_another_engine_is_the_true_one() {
        let config = Config::default();
        assert_eq!(passed_over("ollama", &config), "ollama does not answer");
        assert_eq!(passed_over("vllm", &config), "the address of vllm is our own");
    }
}
