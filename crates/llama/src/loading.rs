//! Loads models, with as many layers on graphics cards as fit there.

use std::path::{Path, PathBuf};

use hob_core::EngineError;
use hob_models::tuned::file_to_load;
use hob_models::{MemoryEstimate, ModelFootprint, StoredModel};
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use parking_lot::{Mutex, MutexGuard};
use thiserror::Error;

use crate::backends::backend;
use crate::card_eviction::beside;
use crate::cards::{Card, have_room, is_out_of_memory, room, usable_cards};
use crate::context_size::footprint;
use crate::draft::{draft_options, warn_once};
use crate::error::unusable;
use crate::gpu_layers::{LayerSizes, Offload};
use crate::loaded_model::{DraftModel, LoadedModel};
use crate::log;
use crate::mapped_pages;
use crate::model_memory::MemoryParts;
use crate::options::{GpuLayers, LlamaOptions};
use crate::vector_context::embedding_footprint;

/// Where a model would go.
#[derive(Debug)]
pub(crate) struct LoadPlan {
    cards: Vec<Card>,
    /// Layers that should be on the cards, the output among them.
    wanted: u32,
    /// What a card has to hold.
    pub(crate) sizes: LayerSizes,
    pub(crate) offload: Offload,
    /// All of its memory, on cards or not.
    pub(crate) footprint: ModelFootprint,
    /// Where its draft model would go.
    pub(crate) draft: Option<Box<LoadPlan>>,
}

impl LoadPlan {
    /// With the graphics cards as they are now. `None` if its header cannot be read. Starts llama.cpp; blocks.
    pub(crate) fn new(stored: &StoredModel, options: &LlamaOptions) -> Option<Self> {
        Self::on(usable_cards(options.gpu_layers), stored, options)
    }

    /// With these graphics cards, and beside its draft model, if there is memory for that too. Pure.
    pub(crate) fn on(cards: Vec<Card>, stored: &StoredModel, options: &LlamaOptions) -> Option<Self> {
        let draft = stored.draft.as_deref().and_then(|draft| {
            let options = draft_options(draft, options);
            Self::alone(cards.clone(), draft, &options)
        });
        let alone = Self::alone(cards.clone(), stored, options)?;
        let Some(draft) = draft else { return Some(alone) };
        let most = draft.at_most();
        let beside_draft = beside(&cards, most.cards.iter());
        let plan = Self::alone(beside_draft, stored, &options.beside(most.main))?;
        let budget = options.memory_budget.saturating_add(room(&cards));
        // What the model needs comes first: without all of its layers on the cards, it would be slower than any draft makes it.
        let keeps_layers = plan.offload.layers >= alone.offload.layers;
        match keeps_layers && plan.footprint.memory.total().saturating_add(most.total()) <= budget {
            true => Some(LoadPlan { draft: Some(Box::new(draft)), ..plan }),
            false => Some(alone),
        }
    }

    /// Without its draft model.
    fn alone(cards: Vec<Card>, stored: &StoredModel, options: &LlamaOptions) -> Option<Self> {
        let (needs, header) = (stored.needs()?, stored.header.as_deref()?);
        let with = |room: u64| {
            let of_conversations = footprint(&needs, stored.trained(), options, room);
            match header.is_embedding {
                true => embedding_footprint(&needs, header, &of_conversations.plan),
                false => of_conversations,
            }
        };
        let all = with(room(&cards)).at_most;
        // The footprint counts a projector as weights, but it is no part of a layer. It goes to a card as a whole.
        let projector = stored.projector.as_ref().map_or(0, |projector| projector.size);
        let weights = all.weights.saturating_sub(projector);
        let buffers = all.compute.saturating_add(all.library).saturating_add(projector);
        let sizes = LayerSizes::new(header, weights, all.kv_cache, buffers);
        let offload = Offload::plan(&sizes, &cards, options.gpu_layers);
        let footprint = with(offload.room);
        let wanted = match options.gpu_layers {
            GpuLayers::Auto => sizes.all(),
            GpuLayers::Count(count) => count.min(sizes.all()),
        };
        Some(LoadPlan { cards, wanted, sizes, offload, footprint, draft: None })
    }

    /// Whether the cards have room for all layers that should be there.
    pub(crate) fn is_complete(&self) -> bool {
        self.offload.layers >= self.wanted && have_room(&self.cards, &self.offload.shares)
    }

    /// The memory that the model begins with, and its draft model.
    pub(crate) fn at_start(&self) -> MemoryParts {
        let draft = self.draft.as_ref().map(|draft| draft.at_start());
        self.parts(&self.footprint.at_start).with(draft.unwrap_or_default())
    }

    /// The memory of the model alone with all conversations.
    fn at_most(&self) -> MemoryParts {
        self.parts(&self.footprint.at_most)
    }

    /// The bytes of its draft model, at most.
    pub(crate) fn draft_bytes(&self) -> u64 {
        self.draft.as_ref().map_or(0, |draft| draft.at_most().total())
    }

    fn parts(&self, memory: &MemoryEstimate) -> MemoryParts {
        let on_cards = self.offload.bytes();
        MemoryParts { main: memory.total().saturating_sub(on_cards), cards: self.offload.shares.clone() }
    }
}

/// Waits until a model may be loaded. With graphics cards, models are loaded one after the other, so that each finds the memory that
/// the others have left. Hold the result until the model has all of its memory. Blocks.
pub(crate) fn loading_turn(cards: &[Card]) -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    (!cards.is_empty()).then(|| TURN.lock())
}

impl LoadedModel {
    /// Loads a model with its draft model, in its tuned form if there is one. Blocks.
    pub(crate) fn load(stored: &StoredModel, options: &LlamaOptions) -> Result<Self, EngineError> {
        let file = file_to_load(&stored.path);
        let Some(draft) = &stored.draft else { return Self::load_file(stored, &file, options) };
        // Before the model has its memory.
        let plan = LoadPlan::new(stored, options);
        let mut loaded = Self::load_file(stored, &file, options)?;
        loaded.load_draft(draft, options, plan.is_none_or(|plan| plan.draft.is_some()));
        Ok(loaded)
    }

    /// Loads the draft model of this one, if that is possible.
    fn load_draft(&mut self, draft: &StoredModel, options: &LlamaOptions, has_room: bool) {
        let found = match has_room {
            true => DraftModel::load(self, draft, options),
            false => Err(format!(
                "there is too little memory for '{}' beside it. Raise [engine.embedded] memory_mb, or lower context",
                draft.id
            )),
        };
        match found {
            Ok(draft) => {
                tracing::info!(model = %self.id, draft = %draft.loaded.id, "draft model loaded");
                self.draft = Some(Box::new(draft));
            }
            Err(reason) => warn_once(&self.id, &reason),
        }
    }

    /// Loads this file of a model, with the layers on graphics cards that fit there.
    pub(crate) fn load_file(
        stored: &StoredModel,
        file: &Path,
        options: &LlamaOptions,
    ) -> Result<Self, EngineError> {
        let name = &stored.id;
        if let Some(problem) = &stored.problem {
            return Err(unusable(format!("the model '{name}' is not usable: {problem}")));
        }
        backend()?;
        let plan = LoadPlan::new(stored, options);
        // What a draft model will have in the main memory is not for conversations.
        let draft =
            plan.as_ref().and_then(|plan| plan.draft.as_ref()).map_or(0, |draft| draft.at_most().main);
        let options = &options.beside(draft);
        let mut offload = match &plan {
            Some(plan) => plan.offload.clone(),
            None => Offload::default(),
        };
        loop {
            let error = match Self::load_once(stored, file, options, &offload) {
                Ok(loaded) => return Ok(loaded),
                Err(error) => error,
            };
            let (Some(plan), true, LoadError::OutOfMemory(_)) = (&plan, offload.layers > 0, &error) else {
                return Err(error.into());
            };
            let smaller = offload.smaller(&plan.sizes, &plan.cards);
            tracing::warn!(
                model = name,
                layers = offload.layers,
                next = smaller.layers,
                %error,
                "the graphics cards have too little memory for the layers; Hob tries with fewer"
            );
            offload = smaller;
        }
    }

    /// Loads the model, and makes sure that its conversations fit too.
    fn load_once(
        stored: &StoredModel,
        file: &Path,
        options: &LlamaOptions,
        offload: &Offload,
    ) -> Result<Self, LoadError> {
        let name = &stored.id;
        let backend = backend().map_err(LoadError::Other)?;
        let params = LlamaModelParams::default()
            .with_n_gpu_layers(offload.layers)
            // None of them means the processor alone, even for parts that are not layers.
            .with_devices(&offload.cards)
            .map_err(|error| LoadError::Other(unusable(error.to_string())))?;
        let (loaded, said) = log::listen(|| LlamaModel::load_from_file(backend, file, &params));
        let model = loaded.map_err(|_| {
            let reason = match said.errors.first() {
                Some(first) => first.as_str(),
                None => "llama.cpp gives no reason",
            };
            let error = unusable(format!("cannot load the model '{name}': {reason}"));
            if is_out_of_memory(&said.errors) {
                LoadError::OutOfMemory(error)
            } else {
                LoadError::Other(error)
            }
        })?;
        let copied = said.buffers.copied_weights;
        if copied > stored.size / 2 {
            let parts = stored.files.iter().map(PathBuf::as_path).filter(|_| file == stored.path);
            parts.chain([file]).for_each(mapped_pages::release_file);
        }
        let loaded = Self::new(stored, options, offload, (model, copied)).map_err(LoadError::Other)?;
        // A card is given all memory for conversations at once, because it could be missing in the middle of an answer.
        if offload.layers > 0 {
            let trial = match loaded.embeds_only {
                true => loaded.embedding_context(),
                false => loaded.writing_context(loaded.context_size.cells),
            };
            if let Err(error) = trial {
                return Err(LoadError::OutOfMemory(error));
            }
        }
        Ok(loaded)
    }
}

/// Why a model could not be loaded.
#[derive(Debug, Error)]
enum LoadError {
    /// A card has too little memory; another attempt with fewer layers may succeed.
    #[error(transparent)]
    OutOfMemory(EngineError),
    #[error(transparent)]
    Other(EngineError),
}

impl From<LoadError> for EngineError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::OutOfMemory(error) | LoadError::Other(error) => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::fixtures::{GB, card};

    #[test]
    fn models_are_loaded_onto_cards_one_after_the_other() {
        let cards = [card(0, 8 * GB, 8 * GB)];
        let (sender, order) = mpsc::channel();
        let first = loading_turn(&cards);
        // The processor has no turns.
        assert!(first.is_some() && loading_turn(&[]).is_none());
        let second = thread::spawn({
            let (cards, sender) = (cards.clone(), sender.clone());
            move || {
                let _turn = loading_turn(&cards);
                sender.send("second").expect("a receiver");
            }
        });
        assert!(order.recv_timeout(Duration::from_millis(100)).is_err(), "the second waits");
        sender.send("first").expect("a receiver");
        drop(first);
        second.join().expect("no panic");
        assert_eq!(order.try_iter().collect::<Vec<_>>(), ["first", "second"]);
    }
}
