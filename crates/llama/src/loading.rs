//! Loads models, with as many layers on graphics cards as fit there.

use std::path::Path;

use hob_core::EngineError;
use hob_models::StoredModel;
use hob_models::tuned::file_to_load;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use thiserror::Error;

use crate::backends::backend;
use crate::devices::{LayerSizes, Offload, cards, is_out_of_memory};
use crate::error::unusable;
use crate::loaded_model::{ContextSize, LoadedModel};
use crate::log;
use crate::options::{GpuLayers, LlamaOptions};

impl LoadedModel {
    /// Loads a model, in its tuned form if there is one. Blocks.
    pub(crate) fn load(stored: &StoredModel, options: &LlamaOptions) -> Result<Self, EngineError> {
        Self::load_file(stored, &file_to_load(&stored.path), options)
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
        let cards = if options.gpu_layers == GpuLayers::Count(0) { Vec::new() } else { cards() };
        let sizes = layer_sizes(stored, options);
        let mut offload = match &sizes {
            Some(sizes) => Offload::plan(sizes, &cards, options.gpu_layers),
            None => Offload::default(),
        };
        loop {
            let error = match Self::load_once(stored, file, options, &offload) {
                Ok(loaded) => return Ok(loaded),
                Err(error) => error,
            };
            let (Some(sizes), true, LoadError::OutOfMemory(_)) = (&sizes, offload.layers > 0, &error) else {
                return Err(error.into());
            };
            let smaller = offload.smaller(sizes, &cards);
            tracing::warn!(
                model = name,
                layers = offload.layers,
                next = smaller.layers,
                %error,
                "the graphics cards have too little memory for the layers; trying with fewer"
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
        let (loaded, errors) = log::with_errors(|| LlamaModel::load_from_file(backend, file, &params));
        let model = loaded.map_err(|_| {
            let said = match errors.first() {
                Some(first) => first.as_str(),
                None => "llama.cpp gives no reason",
            };
            let error = unusable(format!("cannot load the model '{name}': {said}"));
            if is_out_of_memory(&errors) { LoadError::OutOfMemory(error) } else { LoadError::Other(error) }
        })?;
        let loaded = Self::new(stored, options, offload, model).map_err(LoadError::Other)?;
        // Memory for conversations is allocated as needed, so that it could be missing in the middle of an answer.
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

/// What a card has to hold of a model; `None` if its header cannot be read.
pub(crate) fn layer_sizes(stored: &StoredModel, options: &LlamaOptions) -> Option<LayerSizes> {
    let estimate = stored.memory(ContextSize::of(stored, options).cells.into())?;
    let header = stored.header.as_deref()?;
    // The estimate counts a projector as weights, but it is no part of a layer. It goes to a card as a whole.
    let projector = stored.projector.as_ref().map_or(0, |projector| projector.size);
    let weights = estimate.weights.saturating_sub(projector);
    Some(LayerSizes::new(header, weights, estimate.kv_cache, estimate.overhead.saturating_add(projector)))
}
