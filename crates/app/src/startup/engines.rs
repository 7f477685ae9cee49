//! Creates every engine from the configuration. One line per engine.

use std::path::Path;
use std::sync::Arc;

use hob_config::{Config, EngineConfig, EngineName, EngineServer};
use hob_core::engine::CLOUD;
use hob_core::{Engine, EngineError};
use hob_engines::selection::{
    NoEngine, RejectionReason, SelectedEngine, SelectionRules, others_of_pool, select,
};
use hob_engines::wire::client::KeyHeader;
use hob_engines::{
    DefaultModel, Endpoint, EndpointOptions, EnginePool, Fallback, MultiHost, Ollama, OpenAiCompat, Resend,
    ServedHosts, Style,
};
use hob_net::{BindAddress, CertificateCheck, is_own_address, stays_on_this_machine};

use crate::startup::local_models::local_models;

/// Whether a request may be repeated if its answer was lost: not for a proxy, because the request may cost money.
fn resend(key: EngineName) -> Resend {
    match key {
        EngineName::Litellm | EngineName::Cloud => Resend::Never,
        EngineName::Ollama
        | EngineName::Vllm
        | EngineName::Sglang
        | EngineName::Llamacpp
        | EngineName::Embedded => Resend::Unanswered,
    }
}

/// All engines, in the order in which they are tried if none is configured. `home` is Hob's home directory. Must be called in a
/// runtime, which looks up hosts in DNS.
pub fn engines(config: &Config, home: &Path) -> Result<Vec<Arc<dyn Engine>>, EngineError> {
    let mut engines: Vec<Arc<dyn Engine>> = Vec::new();
    engines.extend(served(config, EngineName::Ollama, Ollama::new)?);
    engines.extend(served(config, EngineName::Vllm, |way| OpenAiCompat::new(Style::VLLM, way))?);
    engines.extend(served(config, EngineName::Sglang, |way| OpenAiCompat::new(Style::SGLANG, way))?);
    engines.extend(served(config, EngineName::Llamacpp, |way| OpenAiCompat::new(Style::LLAMACPP, way))?);
    engines.extend(served(config, EngineName::Litellm, |way| OpenAiCompat::new(Style::LITELLM, way))?);
    #[cfg(feature = "cloud")]
    engines.push(Arc::new(hob_engines::Cloud::new(cloud_options(config))?));
    engines.extend(local_models(config, home).engine());
    Ok(engines)
}

/// Selects the engine that answers. With `only`, no other engine is considered.
pub async fn choose(
    engines: &[Arc<dyn Engine>],
    config: &Config,
    only: Option<EngineName>,
) -> Result<SelectedEngine, NoEngine> {
    let wanted = SelectionRules {
        key: only.map(|key| key.to_string()),
        // With a pool and no default, the first engine of the pool is the default.
        default: config.engine.default.or(config.engine.pool.first().copied()).map(|key| key.to_string()),
        own_address: Some(own_address(config)),
        allow_cloud_fallback: config.intelligence.allow_cloud_fallback,
    };
    select(engines, &wanted).await
}

/// The engine that a server waits for if none answers: the first one in question whose servers `hosts` or `discover` list, because
/// machines are started in any order. `None` if there is no such engine, or if waiting does not help.
pub(crate) fn awaited(
    engines: &[Arc<dyn Engine>],
    config: &Config,
    only: Option<EngineName>,
    none: &NoEngine,
) -> Option<Arc<dyn Engine>> {
    let is_silent = |key: EngineName| {
        none.tried()
            .iter()
            .any(|tried| tried.key == key.as_str() && tried.why_not == RejectionReason::Unhealthy)
    };
    let EngineConfig { default, pool, .. } = &config.engine;
    let named: Vec<EngineName> = match only {
        Some(key) => vec![key],
        None if default.is_none() && pool.is_empty() => EngineName::ALL.to_vec(),
        None => default.iter().chain(pool).copied().collect(),
    };
    let is_awaited = |key: &EngineName| {
        config.engine.server(*key).is_some_and(EngineServer::lists_hosts) && is_silent(*key)
    };
    let key = named.into_iter().find(is_awaited)?;
    engines.iter().find(|engine| engine.key() == key.as_str()).cloned()
}

/// The engines besides the selected one, in the order of `[engine] pool`. An engine at Hob's own address is skipped.
pub fn beside(
    chosen: &Arc<dyn Engine>,
    engines: &[Arc<dyn Engine>],
    config: &Config,
) -> Vec<Arc<dyn Engine>> {
    let pool: Vec<&str> = config.engine.pool.iter().map(|key| key.as_str()).collect();
    others_of_pool(chosen.as_ref(), engines, &pool, &own_address(config))
}

/// The fallback for the default model.
pub(crate) fn fallback(config: &Config, engines: &[Arc<dyn Engine>]) -> Option<Fallback> {
    let model = config.intelligence.fallback_model.as_deref()?;
    let cloud = engines.iter().find(|engine| engine.key() == CLOUD);
    Some(Fallback::new(model, cloud.filter(|_| config.intelligence.allow_cloud_fallback).cloned()))
}

/// The model that `default` means for this engine, for display: nothing is recorded.
pub async fn default_model(
    config: &Config,
    home: &Path,
    engine: &Arc<dyn Engine>,
) -> Result<Option<String>, EngineError> {
    let default = DefaultModel::new(config.default_model().map(str::to_owned)).read_from(home);
    default.get(&EnginePool::new(Arc::clone(engine), Vec::new())).await
}

/// Ollama without the pool, to download and describe its models. With several hosts, the first that is not Hob.
pub fn ollama(config: &Config) -> Result<Ollama, EngineError> {
    let own = own_address(config);
    let addresses = config.engine.addresses(EngineName::Ollama);
    let other = addresses.iter().find(|address| !is_own_address(address, &own));
    let Some(address) = other.or(addresses.first()) else {
        return Err(EngineError::NotConfigured {
            engine: EngineName::Ollama.to_string(),
            reason: "its hosts are listed in DNS, so models are managed on the hosts themselves".to_owned(),
        });
    };
    let options = endpoint_options(EngineName::Ollama, &config.engine.ollama, address);
    Ok(Ollama::new(Endpoint::new(options)?))
}

/// A running Hob server of this machine at this URL, by its Ollama-compatible API. On an address of this machine its certificate, if it has
/// one, is for its public name and not for this URL. At any other address the server must prove its name, because it gets the owner's key.
pub fn running_server(config: &Config, url: &str) -> Result<Ollama, EngineError> {
    let options = EndpointOptions {
        key: config.server.api_key.clone().map(KeyHeader::bearer),
        certificates: certificate_check(url),
        ..EndpointOptions::new("hob", url)
    };
    Ok(Ollama::new(Endpoint::new(options)?))
}

fn certificate_check(url: &str) -> CertificateCheck {
    match stays_on_this_machine(url) {
        true => CertificateCheck::Accept,
        false => CertificateCheck::Verify,
    }
}

/// The engine on one or several servers.
fn served<E: Engine + 'static>(
    config: &Config,
    key: EngineName,
    engine: impl Fn(Endpoint) -> E + Send + Sync + 'static,
) -> Result<Option<Arc<dyn Engine>>, EngineError> {
    let Some(server) = config.engine.server(key) else { return Ok(None) };
    let hosts = ServedHosts {
        addresses: config.engine.addresses(key).into_iter().map(str::to_owned).collect(),
        discover: server.discover.clone(),
        endpoint: endpoint_options(key, server, &server.host),
        own_address: own_address(config),
    };
    MultiHost::served(hosts, engine)
}

/// Where this process listens.
fn own_address(config: &Config) -> BindAddress {
    BindAddress { host: config.server.host.clone(), port: config.server.port }
}

fn endpoint_options(key: EngineName, server: &EngineServer, address: &str) -> EndpointOptions {
    EndpointOptions {
        timeout: server.timeout,
        key: server.api_key.clone().map(KeyHeader::bearer),
        resend: resend(key),
        ..EndpointOptions::new(key.as_str(), address)
    }
}

#[cfg(feature = "cloud")]
fn cloud_options(config: &Config) -> hob_engines::CloudOptions {
    let Config { engine, provider_keys: keys, .. } = config;
    let provider =
        |host: &str, key: &Option<_>| hob_engines::Provider { host: host.to_owned(), key: key.clone() };
    hob_engines::CloudOptions {
        openai: provider(&engine.cloud.openai_host, &keys.openai),
        anthropic: provider(&engine.cloud.anthropic_host, &keys.anthropic),
        gemini: provider(&engine.cloud.gemini_host, &keys.gemini),
        timeout: engine.cloud.timeout,
    }
}
