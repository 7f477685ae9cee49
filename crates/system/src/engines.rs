//! Every engine there is, made from the configuration. One line per engine.

use std::path::Path;
use std::sync::Arc;

use hob_config::{Config, EngineKey, EngineServer};
use hob_core::{Engine, EngineError};
use hob_engine::wire::client::KeyHeader;
use hob_engine::{Endpoint, EndpointOptions, Ollama, OpenAiCompat, Style};

use crate::local_models;

/// All engines, in the order in which they are tried when the user prefers none. `home` is where Hob keeps its files.
pub fn engines(config: &Config, home: &Path) -> Result<Vec<Arc<dyn Engine>>, EngineError> {
    let engine = &config.engine;
    let mut engines: Vec<Arc<dyn Engine>> = vec![
        Arc::new(ollama(config)?),
        Arc::new(OpenAiCompat::new(Style::VLLM, endpoint(EngineKey::Vllm, &engine.vllm)?)),
        Arc::new(OpenAiCompat::new(Style::SGLANG, endpoint(EngineKey::Sglang, &engine.sglang)?)),
        Arc::new(OpenAiCompat::new(Style::LLAMACPP, endpoint(EngineKey::Llamacpp, &engine.llamacpp.server)?)),
        Arc::new(OpenAiCompat::new(Style::LITELLM, endpoint(EngineKey::Litellm, &engine.litellm)?)),
        #[cfg(feature = "cloud")]
        Arc::new(hob_engine::Cloud::new(cloud_options(config))?),
    ];
    engines.extend(local_models::engine(config, home));
    Ok(engines)
}

/// Ollama by itself, for what only it can do: downloading and describing its models.
pub fn ollama(config: &Config) -> Result<Ollama, EngineError> {
    Ok(Ollama::new(endpoint(EngineKey::Ollama, &config.engine.ollama)?))
}

fn endpoint(key: EngineKey, server: &EngineServer) -> Result<Endpoint, EngineError> {
    Endpoint::new(EndpointOptions {
        timeout: server.timeout,
        key: server.api_key.clone().map(KeyHeader::bearer),
        ..EndpointOptions::new(key.as_str(), &server.host)
    })
}

#[cfg(feature = "cloud")]
fn cloud_options(config: &Config) -> hob_engine::CloudOptions {
    let Config { engine, provider_keys: keys, .. } = config;
    let provider =
        |host: &str, key: &Option<_>| hob_engine::Provider { host: host.to_owned(), key: key.clone() };
    hob_engine::CloudOptions {
        openai: provider(&engine.cloud.openai_host, &keys.openai),
        anthropic: provider(&engine.cloud.anthropic_host, &keys.anthropic),
        gemini: provider(&engine.cloud.gemini_host, &keys.gemini),
        timeout: engine.cloud.timeout,
    }
}
