//! Configuration files of users, and what they mean.

#[path = "read_message_tests.rs"]
mod messages;

use std::time::Duration;

use proptest::prelude::*;
use secrecy::ExposeSecret;

use super::*;
use crate::agent::AgentName;
use crate::engine_name::EngineName;

fn read_text(text: &str) -> Result<(Config, Vec<ConfigWarning>), ConfigError> {
    read(Source { file: "~/.hob/config.toml", text, home: Some(Path::new("/home/ann")) })
}

fn config(text: &str) -> Config {
    let (config, warnings) = read_text(text).expect("a good file");
    assert_eq!(warnings, [], "{text}");
    config
}

fn error(text: &str) -> String {
    read_text(text).expect_err("a bad file").to_string()
}

fn warnings_of(text: &str) -> Vec<String> {
    read_text(text).expect("a usable file").1.iter().map(ConfigWarning::to_string).collect()
}

#[test]
fn an_empty_file_gives_the_defaults() {
    assert_eq!(list(&config("")), list(&Config::default()));
    assert_eq!(list(&config("[server]\n[engine.ollama]\n")), list(&Config::default()));
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let values: Vec<String> = list(&Config::default())
        .iter()
        .flat_map(|section| {
            section.full_names().zip(&section.keys).map(|(name, key)| format!("{name} = {}", key.value))
        })
        .collect();
    insta::assert_snapshot!(values.join("\n"), @r#"
    server.host = "0.0.0.0"
    server.port = 8000
    server.agent = "orchestrator"
    server.model = ""
    server.workers = 1
    server.api_key = ""
    server.allowed_hosts = []
    server.announce = true
    server.cors_origins = []
    server.limit_failure = "refuse"
    server.access_log = "off"
    server.max_body_mb = 64
    server.max_in_flight = 1024
    server.max_waiting = 1024
    server.queue_timeout = 30.0
    server.header_timeout = 30.0
    server.body_timeout = 60.0
    server.write_timeout = 60.0
    server.drain_seconds = 0.0
    server.shutdown_grace = 30.0
    server.tls.cert = ""
    server.tls.key = ""
    server.identity.issuer = ""
    server.identity.audience = []
    server.identity.jwks_url = ""
    server.identity.jwks_file = ""
    server.identity.secret_file = ""
    server.identity.algorithms = []
    server.identity.header = ""
    server.identity.name_claim = "sub"
    server.identity.max_lifetime = 86400.0
    server.identity.blocked = []
    server.identity.rules = []
    engine.default = ""
    engine.recommended = ""
    engine.pool = []
    engine.ollama.host = "http://localhost:11434"
    engine.ollama.hosts = []
    engine.ollama.discover = ""
    engine.ollama.timeout = 120.0
    engine.ollama.api_key = ""
    engine.vllm.host = "http://localhost:8000"
    engine.vllm.hosts = []
    engine.vllm.discover = ""
    engine.vllm.timeout = 120.0
    engine.vllm.api_key = ""
    engine.sglang.host = "http://localhost:30000"
    engine.sglang.hosts = []
    engine.sglang.discover = ""
    engine.sglang.timeout = 120.0
    engine.sglang.api_key = ""
    engine.llamacpp.host = "http://localhost:8080"
    engine.llamacpp.hosts = []
    engine.llamacpp.discover = ""
    engine.llamacpp.timeout = 120.0
    engine.llamacpp.api_key = ""
    engine.llamacpp.binary_path = ""
    engine.llamacpp.model_path = ""
    engine.llamacpp.args = []
    engine.llamacpp.start_timeout = 120.0
    engine.litellm.host = "http://localhost:4000"
    engine.litellm.hosts = []
    engine.litellm.discover = ""
    engine.litellm.timeout = 120.0
    engine.litellm.api_key = ""
    engine.cloud.openai_host = "https://api.openai.com/v1"
    engine.cloud.anthropic_host = "https://api.anthropic.com"
    engine.cloud.gemini_host = "https://generativelanguage.googleapis.com"
    engine.cloud.timeout = 120.0
    engine.embedded.threads = 0
    engine.embedded.context = 0
    engine.embedded.parallel = 0
    engine.embedded.queue = 64
    engine.embedded.keep_alive = 300.0
    engine.embedded.memory_mb = 0
    engine.embedded.prompt_lookup = false
    engine.embedded.draft_model = ""
    engine.embedded.gpu_layers = "auto"
    engine.embedded.kv_cache = "f16"
    engine.embedded.flash_attention = "auto"
    engine.embedded.prefix_cache_mb = 512
    intelligence.default_model = ""
    intelligence.router = "heuristic"
    intelligence.fallback_model = ""
    intelligence.allow_cloud_fallback = false
    intelligence.temperature = 0.7
    intelligence.max_tokens = 1024
    models.aliases = {}
    agent.max_turns = 10
    memory.backend = "auto"
    memory.min_word_share = 0.1
    memory.min_similarity = 0.3
    memory.chunk_size = 512
    memory.chunk_overlap = 64
    memory.context = true
    memory.context_passages = 5
    memory.context_tokens = 1500
    memory.embedding_model = ""
    memory.ocr_languages = ""
    channel.enabled = false
    channel.gateway_url = "ws://127.0.0.1:18789/ws"
    channel.default_agent = "simple"
    channel.reconnect_interval = 5.0
    channel.token = ""
    channel.reply = true
    channel.trust = {}
    channel.allow_from = []
    channel.messages_per_minute = 20
    channel.history = 20
    channel.key = ""
    channel.transcription_model = ""
    channel.whatsapp.enabled = false
    channel.whatsapp.auth_dir = ""
    channel.whatsapp.assistant_name = "Hob"
    channel.whatsapp.assistant_has_own_number = false
    channel.telegram.enabled = false
    channel.telegram.token = ""
    channel.telegram.token_file = ""
    channel.telegram.groups = true
    channel.telegram.pairing = true
    channel.telegram.api_url = "https://api.telegram.org"
    channel.email.enabled = false
    channel.email.folder = "INBOX"
    channel.email.name = "Hob"
    channel.email.pairing = true
    channel.email.senders = []
    channel.email.authentication_server = ""
    channel.email.answers_per_hour = 20
    channel.email.poll_interval = 60.0
    mail.imap_host = ""
    mail.imap_port = 993
    mail.imap_security = "tls"
    mail.smtp_host = ""
    mail.smtp_port = 465
    mail.smtp_security = "tls"
    mail.user = ""
    mail.password = ""
    mail.password_file = ""
    mail.address = ""
    mail.folder = "INBOX"
    mail.authorities = ""
    scheduler.enabled = true
    scheduler.poll_interval = 60.0
    scheduler.max_concurrent = 4
    sandbox.enabled = false
    sandbox.runtime = "auto"
    sandbox.image = "python:3.13-slim"
    sandbox.timeout = 300.0
    sandbox.max_concurrent = 5
    sandbox.allowlist = []
    tools.file_roots = []
    tools.allow_after_untrusted = []
    mcp.servers = {}
    sources.calendar = {}
    sources.feeds = {}
    sources.pages = {}
    sources.weather.url = "https://api.open-meteo.com/v1/forecast"
    sources.weather.latitude = ""
    sources.weather.longitude = ""
    sources.weather.place = ""
    sources.weather.units = "metric"
    telemetry.enabled = true
    telemetry.retention_days = 0
    telemetry.metrics = true
    telemetry.energy = true
    telemetry.otlp_endpoint = ""
    savings.prices = {}
    database.url = ""
    database.password_file = ""
    database.max_connections = 10
    database.connect_timeout = 5.0
    database.statement_timeout = 30.0
    update.url = ""
    "#);
}

#[test]
fn values_of_the_file_are_resolved() {
    let config = config(
        "[server]
        host = '127.0.0.1'
        port = 9000
        agent = ''
        api_key = 'sk-local'
        queue_timeout = 0.5
        [engine]
        default = 'vllm'
        [engine.vllm]
        host = 'gpu-box:8001/'
        timeout = 300
        [engine.llamacpp]
        binary_path = '~/bin/llama-server'
        start_timeout = 900
        args = ['--ctx-size', '8192']
        [channel]
        default_agent = 'openhands'
        [channel.whatsapp]
        assistant_has_own_number = true",
    );
    assert_eq!(config.server.host, "127.0.0.1");
    assert_eq!(config.server.port, 9000);
    assert_eq!(config.server.agent, None);
    assert_eq!(config.server.api_key.as_ref().map(ExposeSecret::expose_secret), Some("sk-local"));
    assert_eq!(config.server.queue_timeout, Duration::from_millis(500));
    assert_eq!(config.engine.default, Some(EngineName::Vllm));
    assert_eq!(config.engine.vllm.host, "http://gpu-box:8001");
    assert_eq!(config.engine.vllm.timeout, Duration::from_secs(300));
    assert_eq!(config.engine.llamacpp.binary_path.as_deref(), Some(Path::new("/home/ann/bin/llama-server")));
    assert_eq!(config.engine.llamacpp.args, ["--ctx-size", "8192"]);
    assert_eq!(config.engine.llamacpp.start_timeout, Duration::from_secs(900));
    assert_eq!(config.channel.default_agent, Some(AgentName::Codeact));
    assert!(config.channel.whatsapp.assistant_has_own_number);
}

#[test]
fn prices_may_stand_in_a_section_or_behind_a_key() {
    let section = config(
        "[savings.prices]
        'gpt-5.2' = { input = 1.5, output = 12 }
        [savings.prices.claude-haiku-5]
        input = 1
        output = 5.25",
    );
    let key = config(
        "[savings]
        prices = { 'gpt-5.2' = { input = 1.5, output = 12 }, claude-haiku-5 = { input = 1, output = 5.25 } }",
    );
    let prices: Vec<(&str, u64, u64)> = section
        .savings
        .prices
        .iter()
        .map(|(name, price)| (name.as_str(), price.input, price.output))
        .collect();
    assert_eq!(prices, [("claude-haiku-5", 1_000_000, 5_250_000), ("gpt-5.2", 1_500_000, 12_000_000)]);
    assert_eq!(key.savings.prices, section.savings.prices);
}

#[test]
fn an_engine_that_was_not_chosen_stays_unchosen() {
    assert_eq!(config("").engine.default, None);
    assert_eq!(config("[engine]\ndefault = ''").engine.default, None);
    assert_eq!(config("engine.default = 'ollama'").engine.default, Some(EngineName::Ollama));
}

#[test]
fn older_flat_keys_are_still_read() {
    let engine = config(
        "[engine]
        ollama_host = 'http://a:1/'
        vllm_host = 'b:2'
        sglang_host = 'http://c:3'
        llamacpp_host = 'http://d:4'
        llamacpp_path = '/opt/llama-server'",
    )
    .engine;
    assert_eq!(engine.ollama.host, "http://a:1");
    assert_eq!(engine.vllm.host, "http://b:2");
    assert_eq!(engine.sglang.host, "http://c:3");
    assert_eq!(engine.llamacpp.server.host, "http://d:4");
    assert_eq!(engine.llamacpp.binary_path.as_deref(), Some(Path::new("/opt/llama-server")));
}

#[test]
fn a_sub_section_goes_before_the_older_flat_key() {
    let engine = config(
        "[engine]
        ollama_host = 'http://old:1'
        llamacpp_path = '/old'
        [engine.ollama]
        host = 'http://new:1'
        [engine.llamacpp]
        binary_path = '/new'",
    )
    .engine;
    assert_eq!(engine.ollama.host, "http://new:1");
    assert_eq!(engine.llamacpp.binary_path.as_deref(), Some(Path::new("/new")));
}

#[test]
fn a_host_may_be_written_without_its_scheme() {
    let engine =
        config("[engine.ollama]\nhost = 'localhost:11434'\n[engine.vllm]\nhosts = ['a:1', 'b:1']").engine;
    assert_eq!(engine.ollama.host, "http://localhost:11434");
    assert_eq!(engine.vllm.hosts, ["http://a:1", "http://b:1"]);
    assert_eq!(
        error("engine.ollama.host = 'http:/localhost:11434'"),
        "~/.hob/config.toml:1: engine.ollama.host: expected an http or https address such as http://localhost:11434, \
         got \"http:/localhost:11434\""
    );
}

/// Right sides of `key = …`, good and bad.
fn any_value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| toml::Value::from(number).to_string()),
        any::<bool>().prop_map(|flag| flag.to_string()),
        any::<String>().prop_map(|text| toml::Value::from(text).to_string()),
        "(https?|wss?|)(://)?[a-z0-9.:@/?#\\[\\]-]{0,20}"
            .prop_map(|text| toml::Value::from(text).to_string()),
        prop::collection::vec(any::<String>(), 0..3).prop_map(|texts| toml::Value::from(texts).to_string()),
        Just("1979-05-27T07:32:00Z".to_owned()),
        Just("{ port = 1 }".to_owned()),
    ]
}

fn any_key() -> impl Strategy<Value = String> {
    let sections = list(&Config::default());
    let keys: Vec<String> = sections.iter().flat_map(|section| section.full_names()).collect();
    prop_oneof![4 => prop::sample::select(keys), 1 => "[a-z_]{1,8}(\\.[a-z_]{1,8})?"]
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        let _ = read_text(&text);
    }

    #[test]
    fn no_value_makes_it_panic_and_every_error_has_a_place(
        lines in prop::collection::vec((any_key(), any_value()), 0..8)
    ) {
        let text: String = lines.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        if let Err(error) = read_text(&text) {
            prop_assert!(error.to_string().lines().all(|line| line.starts_with("~/.hob/config.toml:")), "{}", error);
        }
    }

    #[test]
    fn a_value_that_was_accepted_is_accepted_again_as_it_was_understood(key in any_key(), value in any_value()) {
        let Ok((config, _)) = read_text(&format!("{key} = {value}\n")) else { return Ok(()) };
        let understood: String = list(&config)
            .iter()
            .flat_map(|section| section.full_names().zip(&section.keys).map(|(name, key)| format!("{name} = {}\n", key.value)))
            .collect();
        let (again, warnings) = read_text(&understood).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(list(&again), list(&config));
        prop_assert_eq!(warnings, []);
    }
}
