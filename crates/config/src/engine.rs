//! `[engine]`: which engine answers, and where each one is.

use std::path::PathBuf;
use std::time::Duration;

use hob_core::HostDiscovery;
use secrecy::SecretString;

use crate::engine_name::{ENGINE, ENGINES, EngineName};
use crate::kind::{
    COUNT, COUNT_OR_NONE, DISCOVERY, FLAG, HTTP_URL, HTTP_URLS, LAYERS, OPTIONAL_PATH, OPTIONAL_TEXT,
    SECONDS, SECRET, TEXTS, quote,
};
use crate::settings_schema::{Exposure, Keys, Kind, Section, keys_of};

/// How long an engine may take to answer by default.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Settings of all engines.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// The engine the user chose; `None` if the user chose none.
    pub default: Option<EngineName>,
    /// The engine that `hob init` found to suit the machine. See [`Self::is_chosen`].
    pub recommended: Option<EngineName>,
    /// Engines that answer for the models they have, in this order after the chosen one; empty uses only the chosen one.
    pub pool: Vec<EngineName>,
    pub ollama: EngineServer,
    pub vllm: EngineServer,
    pub sglang: EngineServer,
    pub llamacpp: LlamacppConfig,
    pub litellm: EngineServer,
    pub cloud: CloudConfig,
    pub embedded: EmbeddedConfig,
}

impl EngineConfig {
    /// Whether the owner chose an engine. A default that `hob init` wrote is only a recommendation until the owner changes it or
    /// configures its engine.
    pub fn is_chosen(&self) -> bool {
        let is_chosen = |key| self.recommended != Some(key) || self.is_set_up(key);
        !self.pool.is_empty() || self.default.is_some_and(is_chosen)
    }

    /// Whether an engine has an address of its own, or is started by Hob.
    fn is_set_up(&self, key: EngineName) -> bool {
        let usual = EngineConfig::default();
        let is_started = key == EngineName::Llamacpp && self.llamacpp.binary_path.is_some();
        let has_key = self.server(key).is_some_and(|server| server.api_key.is_some());
        is_started || has_key || self.addresses(key) != usual.addresses(key)
    }

    /// The settings of the engine's servers; `None` for those that have no server of their own, `cloud` and `embedded`.
    pub fn server(&self, key: EngineName) -> Option<&EngineServer> {
        match key {
            EngineName::Ollama => Some(&self.ollama),
            EngineName::Vllm => Some(&self.vllm),
            EngineName::Sglang => Some(&self.sglang),
            EngineName::Llamacpp => Some(&self.llamacpp.server),
            EngineName::Litellm => Some(&self.litellm),
            EngineName::Cloud | EngineName::Embedded => None,
        }
    }

    /// Where the engine's servers listen, without those that `discover` finds. A server that Hob starts is used in addition to those in
    /// `hosts` and in DNS.
    pub fn addresses(&self, key: EngineName) -> Vec<&str> {
        let Some(server) = self.server(key) else { return Vec::new() };
        let is_started = key == EngineName::Llamacpp && self.llamacpp.binary_path.is_some();
        let hosts = if server.discover.is_some() { &[] } else { server.hosts.as_slice() };
        let mut addresses: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let is_alone = addresses.is_empty() && server.discover.is_none();
        if is_alone || (is_started && !addresses.contains(&server.host.as_str())) {
            addresses.insert(0, &server.host);
        }
        addresses
    }
}

impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig {
            default: None,
            recommended: None,
            pool: Vec::new(),
            ollama: EngineServer::at("http://localhost:11434"),
            vllm: EngineServer::at("http://localhost:8000"),
            sglang: EngineServer::at("http://localhost:30000"),
            llamacpp: LlamacppConfig::default(),
            litellm: EngineServer::at("http://localhost:4000"),
            cloud: CloudConfig::default(),
            embedded: EmbeddedConfig::default(),
        }
    }
}

impl Section for EngineConfig {
    fn keys<K: Keys>(&mut self, keys: &mut K) {
        let EngineConfig {
            default,
            recommended,
            pool,
            ollama,
            vllm,
            sglang,
            llamacpp,
            litellm,
            cloud,
            embedded,
        } = self;
        keys.key("default", default, ENGINE, "Engine to try first; \"\" selects one for the hardware.");
        keys.key(
            "recommended",
            recommended,
            ENGINE,
            "Engine that 'hob init' recommends for this machine. If default is the same engine, Hob may use another one without a warning until this one has answered once.",
        );
        keys.key(
            "pool",
            pool,
            ENGINES,
            "Engines that answer for the models they have, such as [\"ollama\", \"vllm\"]; [] uses one engine for all requests.",
        );
        keys.legacy("ollama_host", &mut ollama.host, HTTP_URL);
        keys.legacy("vllm_host", &mut vllm.host, HTTP_URL);
        keys.legacy("sglang_host", &mut sglang.host, HTTP_URL);
        keys.legacy("llamacpp_host", &mut llamacpp.server.host, HTTP_URL);
        keys.legacy("llamacpp_path", &mut llamacpp.binary_path, OPTIONAL_PATH);
        keys.section("ollama", ollama, "Ollama.");
        keys.section("vllm", vllm, "vLLM. Its default port is the same as Hob's: change one of them.");
        keys.section("sglang", sglang, "SGLang.");
        keys.section(
            "llamacpp",
            llamacpp,
            "llama.cpp's server: one that is already running, or one that Hob starts.",
        );
        keys.section("litellm", litellm, "A LiteLLM proxy.");
        keys.section(
            "cloud",
            cloud,
            "Cloud providers. Set their keys in OPENAI_API_KEY, ANTHROPIC_API_KEY and GEMINI_API_KEY.",
        );
        keys.section(
            "embedded",
            embedded,
            "llama.cpp inside Hob, with the models that 'hob model pull' downloads.",
        );
    }
}

/// An engine that is reached over HTTP.
#[derive(Debug, Clone)]
pub struct EngineServer {
    /// Base address without a trailing slash, such as `http://localhost:11434`.
    pub host: String,
    /// Several interchangeable servers; replaces `host`. See [`EngineConfig::addresses`].
    pub hosts: Vec<String>,
    /// Where interchangeable servers are listed in DNS; replaces `host` and `hosts`.
    pub discover: Option<HostDiscovery>,
    /// How long it may take to answer.
    pub timeout: Duration,
    /// The bearer token to send, if the server requires one.
    pub api_key: Option<SecretString>,
}

impl EngineServer {
    /// Whether `hosts` or `discover` list the servers, so that they usually are other machines.
    pub fn lists_hosts(&self) -> bool {
        !self.hosts.is_empty() || self.discover.is_some()
    }

    fn at(host: &str) -> Self {
        EngineServer {
            host: host.to_owned(),
            hosts: Vec::new(),
            discover: None,
            timeout: TIMEOUT,
            api_key: None,
        }
    }
}

keys_of! {
    EngineServer {
        host: HTTP_URL, "Address of the server; http:// is optional.";
        hosts: HTTP_URLS, "Several servers that share the load; replaces host.";
        discover: DISCOVERY, "Name in DNS that lists the servers, such as \"dns://vllm.svc:8000\" or \"dns+srv://_http._tcp.vllm.svc\"; replaces host and hosts.";
        timeout: SECONDS, "Seconds the server may take to answer.";
        api_key: SECRET, "API key to send; \"\" for none.";
    }
}

/// llama.cpp's server, found running or started by Hob.
#[derive(Debug, Clone)]
pub struct LlamacppConfig {
    pub server: EngineServer,
    /// The `llama-server` to start ("managed mode"); `None` expects one that runs. A bare name is looked up in `PATH`.
    pub binary_path: Option<PathBuf>,
    /// The model file to start it with; `None` leaves that to the server and its arguments.
    pub model_path: Option<PathBuf>,
    /// Further arguments to start it with.
    pub args: Vec<String>,
    /// How long it may take until it is ready.
    pub start_timeout: Duration,
}

impl Default for LlamacppConfig {
    fn default() -> Self {
        LlamacppConfig {
            server: EngineServer::at("http://localhost:8080"),
            binary_path: None,
            model_path: None,
            args: Vec::new(),
            start_timeout: TIMEOUT,
        }
    }
}

impl Section for LlamacppConfig {
    fn keys<K: Keys>(&mut self, keys: &mut K) {
        let LlamacppConfig { server, binary_path, model_path, args, start_timeout } = self;
        server.keys(keys);
        keys.key(
            "binary_path",
            binary_path,
            OPTIONAL_PATH,
            "Path of the llama-server that Hob starts and restarts; \"\" uses one that is already running.",
        );
        keys.key(
            "model_path",
            model_path,
            OPTIONAL_PATH,
            "GGUF file for that llama-server; \"\" lets the server choose.",
        );
        keys.key(
            "args",
            args,
            TEXTS,
            "Additional arguments for that llama-server, such as [\"--ctx-size\", \"8192\"].",
        );
        keys.key(
            "start_timeout",
            start_timeout,
            SECONDS,
            "Seconds that llama-server may take until it is ready. Large models take long to load.",
        );
    }
}

/// llama.cpp inside this process.
#[derive(Debug, Clone)]
pub struct EmbeddedConfig {
    /// Compute threads; 0 uses one for each physical core.
    pub threads: usize,
    /// Context size of one conversation in tokens; 0 chooses what fits, up to the training context.
    pub context: usize,
    /// Conversations that one model processes at the same time; 0 chooses what fits.
    pub parallel: usize,
    /// Requests that may wait for one model.
    pub queue: usize,
    /// How long an unused model stays in memory.
    pub keep_alive: Duration,
    /// Memory limit for all loaded models together in MiB; 0 is 70 % of the machine's memory.
    pub memory_mb: usize,
    /// Guess the next tokens of answers that repeat earlier text.
    pub prompt_lookup: bool,
    /// The model that guesses the next tokens of larger ones.
    pub draft_model: Option<String>,
    /// Layers of a model on graphics cards; `None` for as many as fit.
    pub gpu_layers: Option<usize>,
    pub kv_cache: KvCacheSetting,
    pub flash_attention: FlashAttentionSetting,
    /// Limit for prompts that are saved between runs in MiB; 0 saves none.
    pub prefix_cache_mb: usize,
}

/// The numbers of the KV cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KvCacheSetting {
    #[default]
    F16,
    Q8,
}

const KV_CACHE: Kind<KvCacheSetting> = Kind {
    expected: "f16 or q8_0",
    read: |typed| match typed.text()?.trim() {
        "f16" => Some(KvCacheSetting::F16),
        "q8_0" => Some(KvCacheSetting::Q8),
        _ => None,
    },
    write: |setting| {
        quote(match setting {
            KvCacheSetting::F16 => "f16",
            KvCacheSetting::Q8 => "q8_0",
        })
    },
    exposure: Exposure::OneOf(&["f16", "q8_0"]),
};

/// Whether the attention is computed in one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlashAttentionSetting {
    /// If the device supports it.
    #[default]
    Auto,
    On,
    Off,
}

const FLASH_ATTENTION: Kind<FlashAttentionSetting> = Kind {
    expected: "auto, on or off",
    read: |typed| match typed.text()?.trim() {
        "auto" => Some(FlashAttentionSetting::Auto),
        "on" => Some(FlashAttentionSetting::On),
        "off" => Some(FlashAttentionSetting::Off),
        _ => None,
    },
    write: |setting| {
        quote(match setting {
            FlashAttentionSetting::Auto => "auto",
            FlashAttentionSetting::On => "on",
            FlashAttentionSetting::Off => "off",
        })
    },
    exposure: Exposure::OneOf(&["auto", "on", "off"]),
};

impl Default for EmbeddedConfig {
    fn default() -> Self {
        EmbeddedConfig {
            threads: 0,
            context: 0,
            parallel: 0,
            queue: 64,
            keep_alive: Duration::from_secs(300),
            memory_mb: 0,
            prompt_lookup: false,
            draft_model: None,
            gpu_layers: None,
            kv_cache: KvCacheSetting::default(),
            flash_attention: FlashAttentionSetting::default(),
            prefix_cache_mb: 512,
        }
    }
}

keys_of! {
    EmbeddedConfig {
        threads: COUNT_OR_NONE, "Compute threads; 0 uses one for each physical core.";
        context: COUNT_OR_NONE, "Context size of one conversation in tokens; 0 chooses what fits into the memory, up to the context that the model was trained for and 32768.";
        parallel: COUNT_OR_NONE, "Conversations that one model processes at the same time; 0 chooses what fits into the memory, up to 64.";
        queue: COUNT, "Requests that may wait for one model.";
        keep_alive: SECONDS, "Seconds that an unused model stays in memory.";
        memory_mb: COUNT_OR_NONE, "Memory limit for all loaded models together in MiB; 0 is 70 % of the machine's memory.";
        prompt_lookup: FLAG, "Guess the next tokens of answers that repeat earlier text, such as code that is edited; the answers stay the same.";
        draft_model: OPTIONAL_TEXT, "Small model that guesses the next tokens of larger ones with the same vocabulary, such as \"qwen3:0.6b\" for \"qwen3:8b\"; the answers stay the same. Hob uses it while answers are faster with it; \"\" for none.";
        gpu_layers: LAYERS, "Layers of a model on graphics cards: \"auto\" for as many as fit, or a number; 0 does not use the cards.";
        kv_cache: KV_CACHE, "Numbers of the KV cache: f16, or q8_0 for about half the memory and a small loss of quality.";
        flash_attention: FLASH_ATTENTION, "Flash attention: auto, on or off. kv_cache = \"q8_0\" requires it.";
        prefix_cache_mb: COUNT_OR_NONE, "Disk space for prompts that a model need not read again after a restart, in MiB; 0 saves none.";
        !tune;
    }
}

/// The cloud providers' addresses.
#[derive(Debug, Clone)]
pub struct CloudConfig {
    pub openai_host: String,
    pub anthropic_host: String,
    pub gemini_host: String,
    /// How long a provider may take to answer.
    pub timeout: Duration,
}

impl Default for CloudConfig {
    fn default() -> Self {
        CloudConfig {
            openai_host: "https://api.openai.com/v1".to_owned(),
            anthropic_host: "https://api.anthropic.com".to_owned(),
            gemini_host: "https://generativelanguage.googleapis.com".to_owned(),
            timeout: TIMEOUT,
        }
    }
}

keys_of! {
    CloudConfig {
        openai_host: HTTP_URL, "OpenAI or a compatible service; includes /v1.";
        anthropic_host: HTTP_URL, "Anthropic: models with 'claude' in their name.";
        gemini_host: HTTP_URL, "Google: models with 'gemini' in their name.";
        timeout: SECONDS, "Seconds a provider may take to answer.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_that_was_only_recommended_is_not_a_choice() {
        let mut engine = EngineConfig::default();
        assert!(!engine.is_chosen());
        engine.default = Some(EngineName::Llamacpp);
        assert!(engine.is_chosen(), "written by hand");
        engine.recommended = Some(EngineName::Llamacpp);
        assert!(!engine.is_chosen());

        let changes: [fn(&mut EngineConfig); 7] = [
            |engine| engine.default = Some(EngineName::Ollama),
            |engine| engine.pool = vec![EngineName::Vllm],
            |engine| engine.llamacpp.server.host = "http://gpu.lan:8080".into(),
            |engine| engine.llamacpp.server.hosts = vec!["http://gpu.lan:8080".into()],
            |engine| engine.llamacpp.server.discover = "dns://gpu.lan:8080".parse().ok(),
            |engine| engine.llamacpp.server.api_key = Some("k".to_owned().into()),
            |engine| engine.llamacpp.binary_path = Some("llama-server".into()),
        ];
        for change in changes {
            let mut changed = engine.clone();
            change(&mut changed);
            assert!(changed.is_chosen(), "{changed:?}");
        }
    }

    #[test]
    fn engines_with_a_server_are_found_by_key() {
        let hosts: Vec<Option<String>> = EngineName::ALL
            .into_iter()
            .map(|key| EngineConfig::default().server(key).map(|server| server.host.clone()))
            .collect();
        let at = |port: u16| Some(format!("http://localhost:{port}"));
        assert_eq!(hosts, [at(11434), at(8000), at(30000), at(8080), at(4000), None, None]);
    }

    #[test]
    fn several_hosts_take_the_place_of_one_and_stand_beside_the_one_that_hob_starts() {
        let mut engine = EngineConfig::default();
        assert_eq!(engine.addresses(EngineName::Vllm), ["http://localhost:8000"]);
        assert_eq!(engine.addresses(EngineName::Cloud), [""; 0]);
        engine.vllm.hosts = vec!["http://a:1".into(), "http://b:1".into()];
        assert_eq!(engine.addresses(EngineName::Vllm), ["http://a:1", "http://b:1"]);

        engine.llamacpp.server.hosts = vec!["http://c:1".into()];
        assert_eq!(engine.addresses(EngineName::Llamacpp), ["http://c:1"]);
        engine.llamacpp.binary_path = Some("llama-server".into());
        assert_eq!(engine.addresses(EngineName::Llamacpp), ["http://localhost:8080", "http://c:1"]);

        engine.llamacpp.server.discover = "dns://llamacpp.lan:8080".parse().ok();
        assert_eq!(engine.addresses(EngineName::Llamacpp), ["http://localhost:8080"]);
        engine.llamacpp.binary_path = None;
        assert_eq!(engine.addresses(EngineName::Llamacpp), [""; 0]);
    }
}
