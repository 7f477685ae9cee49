//! The status of all engines, checked concurrently.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Error, anyhow};
use futures::future::join_all;
use hob_config::Config;
use hob_core::{Engine, EngineError, HostDiscovery, ModelInfo};
use hob_engines::selection::{failure_of, points_to_self, probe_all};
use hob_net::BindAddress;

/// The longest wait for a list of models.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest wait for a name that had no address just now.
const NAME_TIMEOUT: Duration = Duration::from_secs(1);

/// An engine and its state.
pub struct EngineStatus {
    pub engine: Arc<dyn Engine>,
    pub state: EngineState,
    /// Hosts that do not answer, for an engine with several hosts.
    pub silent_hosts: Vec<String>,
}

pub enum EngineState {
    /// Its address is Hob's own.
    OwnAddress,
    /// It cannot answer: the cloud has no key, or the embedded engine has no model.
    NotConfigured,
    NotResponding,
    /// It answers, but does not list its models.
    Failing(Error),
    Available {
        models: Vec<ModelInfo>,
    },
}

/// Checks all engines.
pub async fn check_engines(engines: &[Arc<dyn Engine>], config: &Config) -> Vec<EngineStatus> {
    let bind = BindAddress { host: config.server.host.clone(), port: config.server.port };
    join_all(engines.iter().map(|engine| async {
        let address = engine.address();
        let silent_hosts = async {
            if is_discovered(engine.as_ref()) {
                // Waits until the hosts have been looked up.
                engine.health().await;
            }
            let hosts = engine.members();
            let answered = probe_all(&hosts).await;
            let silent = hosts.iter().zip(answered).filter(|(_, answers)| !answers);
            silent.map(|(host, _)| host.address().to_owned()).collect()
        };
        let state = async {
            if points_to_self(engine.as_ref(), &bind) {
                EngineState::OwnAddress
            } else if probe_all(std::slice::from_ref(engine)).await.contains(&true) {
                list(engine.as_ref()).await
            } else if address.is_empty() {
                // An engine that cannot answer may still have embedding models.
                match list(engine.as_ref()).await {
                    EngineState::Available { models } if !models.is_empty() => {
                        EngineState::Available { models }
                    }
                    _ => EngineState::NotConfigured,
                }
            } else {
                retry(engine.as_ref()).await
            }
        };
        let (state, silent_hosts) = tokio::join!(state, silent_hosts);
        EngineStatus { engine: Arc::clone(engine), state, silent_hosts }
    }))
    .await
}

async fn list(engine: &dyn Engine) -> EngineState {
    match tokio::time::timeout(LIST_TIMEOUT, engine.list_models()).await {
        Ok(Ok(models)) => EngineState::Available { models },
        Ok(Err(error)) => EngineState::Failing(error.into()),
        Err(_) => EngineState::Failing(anyhow!("no list of models within {} s", LIST_TIMEOUT.as_secs())),
    }
}

/// An engine that fails its health check may give the reason.
async fn retry(engine: &dyn Engine) -> EngineState {
    // The name is not the address of a server that could be started.
    if is_discovered(engine) && engine.members().is_empty() {
        let listed = tokio::time::timeout(NAME_TIMEOUT, engine.list_models()).await;
        return match listed {
            Ok(Err(error @ EngineError::Unreachable { .. })) => EngineState::Failing(error.into()),
            _ => EngineState::NotResponding,
        };
    }
    failure_of(engine).await.map_or(EngineState::NotResponding, |error| EngineState::Failing(error.into()))
}

/// Whether the hosts of the engine are listed in DNS.
pub fn is_discovered(engine: &dyn Engine) -> bool {
    engine.address().parse::<HostDiscovery>().is_ok()
}
