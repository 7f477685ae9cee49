//! What the engines of a pool have in memory, and on which graphics cards. An engine that does not answer is skipped.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use hob_core::{ComputeDevice, RunningModel};

use crate::pool::EnginePool;

/// An engine that takes longer to list its models in memory is skipped.
const LIST_TIMEOUT: Duration = Duration::from_secs(2);

/// A model in the memory of one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInMemory {
    /// The key of its engine.
    pub engine: String,
    /// Its address; `None` in this process.
    pub host: Option<String>,
    pub model: RunningModel,
}

impl EnginePool {
    /// The models in memory, each with the key of its engine, of the engines whose keys are `allowed`.
    pub async fn running_models(&self, allowed: impl Fn(&str) -> bool) -> Vec<(String, RunningModel)> {
        let lists = self.engines().filter(|engine| allowed(engine.key())).map(|engine| async move {
            let listed = tokio::time::timeout(LIST_TIMEOUT, engine.running_models()).await;
            match listed {
                Ok(Ok(models)) => models.into_iter().map(|model| (engine.key().to_owned(), model)).collect(),
                Ok(Err(error)) => {
                    tracing::debug!(engine = engine.key(), %error, "engine does not list its models in memory");
                    Vec::new()
                }
                Err(_) => Vec::new(),
            }
        });
        join_all(lists).await.into_iter().flatten().collect()
    }

    /// The models in memory of every host of every engine.
    pub async fn models_in_memory(&self) -> Vec<ModelInMemory> {
        let hosts = self.engines().flat_map(|engine| match engine.members() {
            members if members.is_empty() => vec![Arc::clone(engine)],
            members => members,
        });
        let lists = hosts.map(|host| async move {
            let listed = tokio::time::timeout(LIST_TIMEOUT, host.running_models()).await;
            let models = listed.ok().and_then(Result::ok).unwrap_or_default();
            let loaded = |model| ModelInMemory {
                engine: host.key().to_owned(),
                host: Some(host.address().to_owned()).filter(|address| !address.is_empty()),
                model,
            };
            models.into_iter().map(loaded).collect::<Vec<_>>()
        });
        join_all(lists).await.into_iter().flatten().collect()
    }

    /// The graphics cards that engines in this process use.
    pub async fn devices(&self) -> Vec<ComputeDevice> {
        let lists = self.engines().map(|engine| async move { engine.devices().await });
        join_all(lists).await.into_iter().flatten().collect()
    }
}
