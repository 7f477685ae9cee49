//! The properties of a model in the header of its file.

/// One number for all layers, or one for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PerLayer {
    Same(u64),
    Each(Vec<u64>),
}

impl PerLayer {
    pub fn max(&self) -> u64 {
        match self {
            PerLayer::Same(number) => *number,
            PerLayer::Each(numbers) => numbers.iter().copied().max().unwrap_or(0),
        }
    }

    /// Of one layer.
    pub fn get(&self, layer: u64) -> u64 {
        match self {
            PerLayer::Same(number) => *number,
            PerLayer::Each(numbers) => {
                usize::try_from(layer).ok().and_then(|layer| numbers.get(layer)).copied().unwrap_or(0)
            }
        }
    }
}

/// The state of recurrent layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recurrence {
    /// Numbers of one layer and one conversation.
    pub numbers: u64,
    /// Every layer of this number has a cache and no state. Otherwise those without heads for a cache have a state.
    pub attention_interval: Option<u64>,
}

/// The part of a model in several files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GgufSplit {
    /// From 0.
    pub number: u64,
    pub count: u64,
}

/// What a file that reads pictures or sound for a model says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectorHeader {
    /// As llama.cpp names it, such as `gemma3`.
    pub kind: Option<String>,
    pub sees: bool,
    pub hears: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GgufHeader {
    pub version: u32,
    /// Such as `llama`. Only the first of several files has it.
    pub architecture: Option<String>,
    pub name: Option<String>,
    pub license: Option<String>,
    /// Such as `Q4_K_M`.
    pub quantization: Option<&'static str>,
    /// Counted over the tensors of this file.
    pub parameters: u64,
    pub tensors: u64,
    /// The longest context the model was trained for.
    pub context_length: Option<u64>,
    pub embedding_length: Option<u64>,
    pub block_count: Option<u64>,
    pub head_count: Option<PerLayer>,
    pub head_count_kv: Option<PerLayer>,
    /// The length of the key of a head, if it is not `embedding_length / head_count`.
    pub key_length: Option<u64>,
    pub value_length: Option<u64>,
    /// Whether the cache has one compressed vector per token in the place of keys and values.
    pub has_latent_cache: bool,
    /// Layers at the end that use the cache of earlier layers.
    pub shared_kv_layers: u64,
    pub feed_forward_length: Option<PerLayer>,
    /// Of layers that have a state in the place of a cache: one for each conversation, whatever its length.
    pub recurrence: Option<Recurrence>,
    pub expert_count: Option<u64>,
    /// The size of the vocabulary.
    pub vocabulary: Option<u64>,
    pub has_chat_template: bool,
    /// Whether tokens attend to earlier tokens only. Embedding models often attend to both sides.
    pub is_causal: bool,
    /// Whether it is an embedding model.
    pub is_embedding: bool,
    pub split: Option<GgufSplit>,
    /// Bytes of the weights before the layers, which read tokens.
    pub input_bytes: u64,
    /// Bytes of the weights after the layers. A model without them uses those before the layers.
    pub output_bytes: u64,
    /// If the file is not a model, but reads pictures or sound for one.
    pub projector: Option<ProjectorHeader>,
    /// A shorter file is incomplete.
    pub expected_size: u64,
}
