//! Creates every engine from the configuration. One line per engine.

use std::path::Path;
use std::sync::Arc;

use hob_config::{Config, EngineConfig, EngineName, EngineServer};
use hob_core::{Engine, EngineError};
use hob_engines::selection::{
    NoEngine, RejectionReason, SelectedEngine, SelectionRules, points_to_self, select,
};
use hob_engines::wire::client::KeyHeader;
use hob_engines::{
    DiscoveryOptions, Endpoint, EndpointOptions, FoundHost, MultiHost, MultiHostOptions, Ollama,
    OpenAiCompat, RefreshTimes, Resend, Style,
};
use hob_net::{BindAddress, CertificateCheck, is_own_address, stays_on_this_machine};

use crate::startup::local_models;

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
    engines.extend(local_models::engine(config, home));
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
        own_address: Some(BindAddress { host: config.server.host.clone(), port: config.server.port }),
        allow_cloud_fallback: config.intelligence.allow_cloud_fallback,
    };
    select(engines, &wanted).await
}

/// The engine that a server waits for if none answers: the first one in question whose servers `hosts` or `discover` list, because
/// machines are started in any order. `None` if there is no such engine, or if waiting does not help.
pub fn awaited(
    engines: &[Arc<dyn Engine>],
    config: &Config,
    only: Option<EngineName>,
    none: &NoEngine,
) -> Option<Arc<dyn Engine>> {
    let tried = match none {
        NoEngine::UnknownKey { .. } => return None,
        NoEngine::Given(rejected) => std::slice::from_ref(rejected),
        NoEngine::NoneHealthy { tried } => tried.as_slice(),
    };
    let is_silent = |key: EngineName| {
        tried.iter().any(|tried| tried.key == key.as_str() && tried.why_not == RejectionReason::Unhealthy)
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
    let own = BindAddress { host: config.server.host.clone(), port: config.server.port };
    let mut others = Vec::new();
    for key in &config.engine.pool {
        let Some(engine) = engines.iter().find(|engine| engine.key() == key.as_str()) else {
            tracing::warn!(
                engine = key.as_str(),
                "an engine of the pool is not in this build. Remove it from [engine] pool"
            );
            continue;
        };
        if points_to_self(engine.as_ref(), &own) {
            tracing::warn!(
                engine = key.as_str(),
                "an engine of the pool is skipped: its address is Hob's own. Change its address, or [server] \
                 port"
            );
        } else if engine.key() != chosen.key() {
            others.push(Arc::clone(engine));
        }
    }
    others
}

/// Ollama without the pool, to download and describe its models. With several hosts, the first that is not Hob.
pub fn ollama(config: &Config) -> Result<Ollama, EngineError> {
    let own = BindAddress { host: config.server.host.clone(), port: config.server.port };
    let addresses = config.engine.addresses(EngineName::Ollama);
    let other = addresses.iter().find(|address| !is_own_address(address, &own));
    let Some(address) = other.or(addresses.first()) else {
        return Err(EngineError::NotConfigured {
            engine: EngineName::Ollama.to_string(),
            reason: "its hosts are listed in DNS, so models are managed on the hosts themselves".to_owned(),
        });
    };
    Ok(Ollama::new(endpoint(EngineName::Ollama, &config.engine.ollama, address)?))
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

/// The engine at one or several addresses, without those that are Hob's own.
fn served<E: Engine + 'static>(
    config: &Config,
    key: EngineName,
    engine: impl Fn(Endpoint) -> E + Send + Sync + 'static,
) -> Result<Option<Arc<dyn Engine>>, EngineError> {
    let Some(server) = config.engine.server(key) else { return Ok(None) };
    let own = BindAddress { host: config.server.host.clone(), port: config.server.port };
    let mut addresses = config.engine.addresses(key);
    if addresses.iter().any(|address| !is_own_address(address, &own)) {
        addresses.retain(|address| {
            let is_own = is_own_address(address, &own);
            if is_own {
                tracing::warn!(
                    engine = key.as_str(),
                    host = address,
                    "a host is skipped: its address is Hob's own. Correct the hosts of the engine, or change \
                     [server] port"
                );
            }
            !is_own
        });
    }
    let mut hosts: Vec<Arc<dyn Engine>> = Vec::with_capacity(addresses.len());
    for address in addresses {
        hosts.push(Arc::new(engine(endpoint(key, server, address)?)));
    }
    let options = MultiHostOptions { resend: resend(key), ..MultiHostOptions::default() };
    let Some(dns) = &server.discover else { return Ok(MultiHost::of(hosts, options)) };
    let server = server.clone();
    let make = move |host: &FoundHost| -> Result<Option<Arc<dyn Engine>>, EngineError> {
        if is_own_address(&host.url(), &own) {
            return Ok(None);
        }
        let endpoint = Endpoint::new(EndpointOptions {
            tls_name: host.tls_name.clone(),
            // The address was looked up here. A proxy may know others.
            connects_directly: true,
            ..endpoint_options(key, &server, &host.url())
        })?;
        Ok(Some(Arc::new(engine(endpoint))))
    };
    let discovery = DiscoveryOptions {
        engine: key.as_str().to_owned(),
        dns: dns.clone(),
        fixed: hosts,
        make: Box::new(make),
        refresh: RefreshTimes::default(),
    };
    Ok(Some(MultiHost::discovered(discovery, options)))
}

fn endpoint(key: EngineName, server: &EngineServer, address: &str) -> Result<Endpoint, EngineError> {
    Endpoint::new(endpoint_options(key, server, address))
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
