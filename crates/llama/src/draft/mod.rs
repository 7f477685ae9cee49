//! Draft models: a small model guesses the next tokens of a large one with the same vocabulary.
//!
//! A guess counts only if the sampler of the large model, its target, chooses the same token; see `batching`. A draft model that is
//! missing or cannot be used never stops its target: it answers without drafts, and the log says why. Knows nothing of requests.

mod choice;
mod costs;
mod drafter;
mod slots;
mod trust;
mod vocabulary;

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, AtomicU64};

use hob_core::EngineError;
use hob_models::StoredModel;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::vocab::VocabType;
use parking_lot::Mutex;

pub(crate) use choice::with_draft;
pub(crate) use costs::{MAX_DRAFTING, StepTimes};
pub(crate) use drafter::{DraftTask, Drafter, Drafts};
pub(crate) use trust::DraftTrust;

use crate::error::plain_message;
use crate::guess_length::GuessLimits;
use crate::loaded_model::{DraftModel, LoadedModel};
use crate::options::{DraftUse, GpuLayers, LlamaOptions};
use crate::prefix_cache::Reuse;
use vocabulary::{TokenTexts, compare};

/// The tokens that a draft model has memory for, of all conversations together. A longer conversation is not drafted.
const DRAFT_CELLS: u32 = 8192;

/// The guesses for one answer. With fewer right ones than expected, a few tokens without guesses cost little.
pub(crate) const DRAFT_LIMITS: GuessLimits = GuessLimits { first: 4, most: 8, pause: 16 };

impl DraftModel {
    /// The draft model of a target that is loaded. Blocks.
    pub(crate) fn load(
        target: &LoadedModel,
        stored: &StoredModel,
        options: &LlamaOptions,
    ) -> Result<Self, String> {
        if target.reuse() == Reuse::Nothing {
            return Err("it cannot take tokens back".to_owned());
        }
        let own = draft_options(stored, options);
        let mut loaded = LoadedModel::load(stored, &own).map_err(reason)?;
        if loaded.reuse() == Reuse::Nothing {
            return Err(format!("'{}' cannot take tokens back", stored.id));
        }
        compare(texts(&target.model), texts(&loaded.model)).map_err(|difference| {
            format!(
                "'{}' has another vocabulary: {difference}. Choose a draft model of the same family",
                stored.id
            )
        })?;
        // A sequence for each slot of the target. They share the cells.
        loaded.parallel = target.parallel;
        let when = options.draft.as_ref().map_or(DraftUse::Faster, |draft| draft.when);
        Ok(DraftModel {
            loaded,
            when,
            cells: AtomicU32::new(0),
            guessed: AtomicU64::new(0),
            right: AtomicU64::new(0),
        })
    }
}

fn reason(error: EngineError) -> String {
    plain_message(error)
}

/// The options of a draft model beside its target.
pub(crate) fn draft_options(stored: &StoredModel, options: &LlamaOptions) -> LlamaOptions {
    let trained =
        stored.trained().and_then(|trained| u32::try_from(trained).ok()).filter(|length| *length > 0);
    LlamaOptions {
        context: Some(trained.map_or(DRAFT_CELLS, |trained| trained.min(DRAFT_CELLS))),
        parallel: Some(1),
        prompt_lookup: false,
        draft: None,
        prefix_store: None,
        gpu_layers: match options.gpu_layers {
            GpuLayers::Count(0) => GpuLayers::Count(0),
            GpuLayers::Auto | GpuLayers::Count(_) => GpuLayers::Auto,
        },
        ..options.clone()
    }
}

/// Says once that a model answers without drafts.
pub(crate) fn warn_once(model: &str, reason: &str) {
    static SAID: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let is_new = SAID.lock().get_or_insert_default().insert(format!("{model}\0{reason}"));
    if is_new {
        tracing::warn!(model, "the draft model is not used, so the model answers without it: {reason}");
    }
}

/// The tokens of a model.
fn texts(model: &LlamaModel) -> TokenTexts<VocabType, impl ExactSizeIterator<Item = Vec<u8>>> {
    let vocab = model.vocab();
    let kind = vocab.vocab_type();
    let text =
        move |token| vocab.text(LlamaToken(token)).map(|text| text.to_bytes().to_vec()).unwrap_or_default();
    TokenTexts { kind, texts: (0..model.n_vocab()).map(text) }
}
