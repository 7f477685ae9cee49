//! What the directory of model files asks of the engine: what a model would need, and its measured tuning.

use async_trait::async_trait;
use hob_core::{ComputeUnits, DevicePlan, EngineError};
use hob_models::tuned::{KeepTuned, TuneReport};
use hob_models::{CatalogueEntry, DraftPlan, MemoryNeeds, ModelFileEngine, ModelFootprint, StoredModel};

use crate::compute_units::{compute_units, device_plan};
use crate::context_size::footprint;
use crate::engine::LlamaEngine;
use crate::loading::LoadPlan;
use crate::tune::tune_for_caller;

#[async_trait]
impl ModelFileEngine for LlamaEngine {
    fn memory_budget(&self) -> u64 {
        self.cache.memory_budget()
    }

    fn footprint(&self, stored: &StoredModel) -> Option<ModelFootprint> {
        LoadPlan::new(&self.cache.drafted(stored), self.cache.options()).map(|plan| plan.footprint)
    }

    fn draft_plan(&self, stored: &StoredModel) -> Option<DraftPlan> {
        let stored = self.cache.drafted(stored);
        let model = stored.draft.as_ref()?.id.clone();
        let plan = LoadPlan::new(&stored, self.cache.options())?;
        Some(DraftPlan { model, memory: plan.draft.is_some().then(|| plan.draft_bytes()) })
    }

    fn entry_footprint(&self, entry: &CatalogueEntry) -> ModelFootprint {
        let needs = MemoryNeeds::of_entry(entry);
        footprint(&needs, Some(entry.context), self.cache.options(), self.cache.card_memory())
    }

    fn compute_units(&self) -> ComputeUnits {
        compute_units()
    }

    fn device_plan(&self, stored: &StoredModel) -> Option<DevicePlan> {
        device_plan(&self.cache.drafted(stored), self.cache.options())
    }

    async fn tune(&self, model: &str, keep: KeepTuned) -> Result<TuneReport, EngineError> {
        let stored = self.cache.find(model.strip_suffix(".gguf").unwrap_or(model)).await?;
        // Only the model itself is measured.
        let stored = StoredModel { draft: None, ..stored };
        tune_for_caller(stored, self.cache.options().clone(), keep).await
    }
}
