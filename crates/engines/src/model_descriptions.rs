//! Details that engines report only for single models. They are cached for a while, because clients list models often.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use hob_core::{ListedModel, ModelInfo};
use tokio::time::Instant;

use crate::pool::EnginePool;

/// How long a description is used.
const FRESH: Duration = Duration::from_secs(60);

/// How long a list waits for descriptions. Unfinished ones are cancelled, and requested again for the next list.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Models that are asked for at a time.
const CONCURRENT: usize = 8;

/// Descriptions that are remembered.
const MAX_REMEMBERED: usize = 1_024;

/// The descriptions of models.
#[derive(Default)]
pub struct ModelDescriptions {
    /// By engine and model.
    known: Mutex<HashMap<(String, String), Description>>,
}

struct Description {
    since: Instant,
    /// `None` if the engine reports no details, or failed.
    model: Option<ModelInfo>,
}

impl ModelDescriptions {
    /// The models with the details that their engines report.
    pub async fn add_to(&self, pool: &EnginePool, mut listed: Vec<ListedModel>) -> Vec<ListedModel> {
        let unknown: Vec<ListedModel> =
            listed.iter().filter(|listed| self.get(listed).is_none()).cloned().collect();
        let asked = futures::stream::iter(unknown).for_each_concurrent(CONCURRENT, |listed| async move {
            if let Some(engine) = pool.with_key(&listed.engine) {
                let described = engine.describe(&listed.model).await;
                self.remember(&listed, described);
            }
        });
        // A slow engine does not keep the list from coming.
        let _ = tokio::time::timeout(TIMEOUT, asked).await;
        for listed in &mut listed {
            if let Some(Some(described)) = self.get(listed) {
                listed.model = described;
            }
        }
        listed
    }

    fn get(&self, listed: &ListedModel) -> Option<Option<ModelInfo>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Description { since, model } = known.get(&key(listed))?;
        (since.elapsed() < FRESH).then(|| model.clone())
    }

    fn remember(&self, listed: &ListedModel, described: Option<ModelInfo>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert(key(listed), Description { since: Instant::now(), model: described });
    }
}

fn key(listed: &ListedModel) -> (String, String) {
    (listed.engine.clone(), listed.model.id.clone())
}
