//! What the engine computes with, and what it would put where. For people who ask; no model is loaded.

use hob_core::{ComputeUnits, DevicePlan};
use hob_models::StoredModel;

use crate::backends::{backend, problems};
use crate::cards::{cards, processor_features};
use crate::error::plain_message;
use crate::loading::LoadPlan;
use crate::options::LlamaOptions;

/// What the engine computes with.
pub(crate) fn compute_units() -> ComputeUnits {
    let failure = backend().err().map(plain_message);
    ComputeUnits {
        processor: processor_features(),
        cards: cards().into_iter().map(|card| card.device).collect(),
        problems: failure.into_iter().chain(problems().iter().cloned()).collect(),
    }
}

/// Where the layers of a model would go now; `None` if its header cannot be read.
pub(crate) fn device_plan(stored: &StoredModel, options: &LlamaOptions) -> Option<DevicePlan> {
    let plan = LoadPlan::new(stored, options)?;
    Some(DevicePlan { layers: plan.sizes.all(), shares: plan.offload.shares })
}
