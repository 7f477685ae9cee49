//! How all engines are, asked side by side.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use hob_config::Config;
use hob_core::{Engine, EngineError, ModelInfo};
use hob_net::BindAddress;
use hob_system::{points_to_self, probe_all};

use crate::failure;

/// A list of models that takes longer than this is not worth waiting for.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// Of one that did not answer to the first question nothing more is expected than a refusal.
const RETRY_TIMEOUT: Duration = Duration::from_secs(1);

/// An engine and how it is.
pub struct EngineStatus {
    pub engine: Arc<dyn Engine>,
    pub state: EngineState,
    /// Those of its hosts that do not answer, where it has several.
    pub silent_hosts: Vec<String>,
}

pub enum EngineState {
    /// Its address is the one Hob listens on.
    OwnAddress,
    /// It has nothing to answer with: the cloud without a key, the embedded engine without a model.
    NotConfigured,
    NotResponding,
    /// It answers, but not to the question for its models.
    Failing {
        reason: String,
        /// The status by which it refused.
        refused: Option<u16>,
    },
    Available {
        models: Vec<ModelInfo>,
    },
}

/// Asks all engines.
pub async fn check_engines(engines: &[Arc<dyn Engine>], config: &Config) -> Vec<EngineStatus> {
    let bind = BindAddress { host: config.server.host.clone(), port: config.server.port };
    join_all(engines.iter().map(|engine| async {
        let address = engine.address();
        let hosts = engine.members();
        let silent_hosts = async {
            let answered = probe_all(hosts).await;
            let silent = hosts.iter().zip(answered).filter(|(_, answers)| !answers);
            silent.map(|(host, _)| host.address().to_owned()).collect()
        };
        let state = async {
            if points_to_self(engine.as_ref(), &bind) {
                EngineState::OwnAddress
            } else if probe_all(std::slice::from_ref(engine)).await.contains(&true) {
                list(engine.as_ref()).await
            } else if address.is_empty() {
                // Who cannot answer may still have models of other uses.
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
        Ok(Err(error)) => failing(error),
        Err(_) => EngineState::Failing {
            reason: format!("no list of models within {} s", LIST_TIMEOUT.as_secs()),
            refused: None,
        },
    }
}

/// Whoever does not say that it is well may say why when it is asked for its models.
async fn retry(engine: &dyn Engine) -> EngineState {
    match tokio::time::timeout(RETRY_TIMEOUT, engine.list_models()).await {
        Ok(Err(error @ (EngineError::Refused { .. } | EngineError::Malformed { .. }))) => failing(error),
        _ => EngineState::NotResponding,
    }
}

fn failing(error: EngineError) -> EngineState {
    let refused = match &error {
        EngineError::Refused { status, .. } => Some(*status),
        _ => None,
    };
    EngineState::Failing { reason: failure::explain(&error.into()), refused }
}
