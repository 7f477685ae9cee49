//! Estimates the memory of a model before it is loaded. Pure.
//!
//! The sizes are those that llama.cpp allocates: a cache for all conversations together, its compute buffer for one batch, and
//! the scores of each conversation. Layers with a sliding window count in full, because the prefix cache needs all their tokens.

use super::header::GgufHeader;
use crate::catalogue::CatalogueEntry;

const F32: u64 = 4;

/// llama.cpp rounds the cells of its cache up to a multiple of this.
pub(crate) const CELL_PADDING: u64 = 256;

/// Bytes of a cell in the mask of one token of a batch: one number in 16 bits.
const MASK_BYTES: u64 = 2;

/// Rows of the model's width that are in the compute buffer beside the scores.
const WIDE_ROWS: u64 = 4;

/// Rows of the width of the feed-forward layer that are in the compute buffer at a time.
const FEED_FORWARD_ROWS: u64 = 3;

/// The library beside its buffers: graphs and threads, and the tokenizer for each word of the vocabulary.
const LIBRARY_BYTES: u64 = 12 << 20;
const LIBRARY_BYTES_PER_WORD: u64 = 400;

/// The vocabulary, the width and the feed-forward layer of a model that is not here yet.
const USUAL_VOCABULARY: u64 = 150_000;
const USUAL_WIDTH: u64 = 4096;
const USUAL_FEED_FORWARD: u64 = 12_288;

/// How exact the numbers of a KV cache are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KvPrecision {
    /// 16 bits each.
    #[default]
    F16,
    /// 8 bits each, and 16 bits more for each 32 of them.
    Q8,
}

impl KvPrecision {
    /// As llama.cpp calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            KvPrecision::F16 => "f16",
            KvPrecision::Q8 => "q8_0",
        }
    }

    fn bytes(self, numbers: u64) -> u64 {
        match self {
            KvPrecision::F16 => numbers.saturating_mul(2),
            KvPrecision::Q8 => numbers.div_ceil(32).saturating_mul(34),
        }
    }
}

/// How an engine runs a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextShape {
    /// Tokens of all conversations together.
    pub cells: u64,
    /// Conversations at a time.
    pub slots: u64,
    /// Tokens of one batch.
    pub batch: u64,
    pub kv: KvPrecision,
}

/// What a model needs, whatever its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryNeeds {
    pub weights: u64,
    /// Numbers of one token in the cache of all layers.
    cached_numbers: u64,
    /// Numbers of one conversation in the state of recurrent layers.
    state_numbers: u64,
    vocabulary: u64,
    /// Words that the model gives scores to; none if it reads a text as a whole, to embed it.
    scored: u64,
    width: u64,
    feed_forward: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryEstimate {
    pub weights: u64,
    pub kv_cache: u64,
    /// What is computed in one batch, and the scores of each conversation.
    pub compute: u64,
    /// The library itself, with the tokenizer.
    pub library: u64,
}

impl MemoryEstimate {
    pub fn total(&self) -> u64 {
        let buffers = self.kv_cache.saturating_add(self.compute);
        self.weights.saturating_add(buffers).saturating_add(self.library)
    }
}

impl MemoryNeeds {
    /// Of a model of `weights` bytes.
    pub fn of(header: &GgufHeader, weights: u64) -> Self {
        let (cached_numbers, state_numbers) = per_token_and_conversation(header);
        let vocabulary = header.vocabulary.unwrap_or(0);
        MemoryNeeds {
            weights,
            cached_numbers,
            state_numbers,
            vocabulary,
            // Others that embed were made of models that write, and llama.cpp computes their scores.
            scored: if header.is_embedding && !header.is_causal { 0 } else { vocabulary },
            width: header.embedding_length.unwrap_or(0),
            feed_forward: header.feed_forward_length.as_ref().map_or(0, |length| length.max()),
        }
    }

    /// Of a model of the catalogue.
    pub fn of_entry(entry: &CatalogueEntry) -> Self {
        MemoryNeeds {
            weights: entry.total_size(),
            cached_numbers: entry.kv.map_or(0, |kv| kv.numbers_per_token()),
            state_numbers: 0,
            vocabulary: USUAL_VOCABULARY,
            scored: if entry.kv.is_some() { USUAL_VOCABULARY } else { 0 },
            width: USUAL_WIDTH,
            feed_forward: USUAL_FEED_FORWARD,
        }
    }

    /// The same with weights that have another size in memory.
    pub fn with_weights(self, weights: u64) -> Self {
        MemoryNeeds { weights, ..self }
    }

    /// The bytes that one conversation of `tokens` tokens has in the cache.
    pub fn conversation(&self, tokens: u64, kv: KvPrecision) -> u64 {
        kv.bytes(self.cached_numbers).saturating_mul(tokens).saturating_add(self.state())
    }

    /// The bytes that every further token of the context costs.
    pub(crate) fn per_cell(&self, batch: u64, kv: KvPrecision) -> u64 {
        kv.bytes(self.cached_numbers).saturating_add(batch.saturating_mul(MASK_BYTES))
    }

    /// The bytes that every conversation costs, however short it is.
    pub(crate) fn state(&self) -> u64 {
        self.state_numbers.saturating_mul(F32)
    }

    pub fn estimate(&self, shape: ContextShape) -> MemoryEstimate {
        let ContextShape { cells, slots, batch, kv } = shape;
        let cells = cells.checked_next_multiple_of(CELL_PADDING).unwrap_or(u64::MAX);
        let cached = kv.bytes(self.cached_numbers).saturating_mul(cells);
        let widest = self.scored.max(self.feed_forward.saturating_mul(FEED_FORWARD_ROWS));
        let row = widest.saturating_add(self.width.saturating_mul(WIDE_ROWS)).saturating_mul(F32);
        let mask = if self.cached_numbers == 0 { 0 } else { cells.saturating_mul(MASK_BYTES) };
        let scores = self.scored.saturating_mul(slots).saturating_mul(F32);
        MemoryEstimate {
            weights: self.weights,
            kv_cache: cached.saturating_add(self.state().saturating_mul(slots)),
            compute: row.saturating_add(mask).saturating_mul(batch).saturating_add(scores),
            library: self.vocabulary.saturating_mul(LIBRARY_BYTES_PER_WORD).saturating_add(LIBRARY_BYTES),
        }
    }
}

/// The numbers of one token in the caches, and of one conversation in the states, of all layers.
fn per_token_and_conversation(header: &GgufHeader) -> (u64, u64) {
    // A model that is not causal has no cache.
    if !header.is_causal {
        return (0, 0);
    }
    let query_heads = header.head_count.as_ref().map_or(0, |heads| heads.max());
    let usual = header.embedding_length.and_then(|length| length.checked_div(query_heads)).unwrap_or(0);
    let key = header.key_length.unwrap_or(usual);
    let value = if header.has_latent_cache { 0 } else { header.value_length.unwrap_or(usual) };
    let of_head = key.saturating_add(value);
    let heads = header.head_count_kv.as_ref().or(header.head_count.as_ref());
    let heads_of = |layer: u64| heads.map_or(0, |heads| heads.get(layer));
    // More layers than any model has would only be counted for long.
    let layers = header.block_count.unwrap_or(0).min(MAX_LAYERS);
    let own_layers = layers.saturating_sub(header.shared_kv_layers);
    let interval = header.recurrence.and_then(|recurrence| recurrence.attention_interval);
    let (mut cached, mut state) = (0_u64, 0_u64);
    for layer in 0..own_layers {
        let has_cache = match interval {
            Some(interval) => (layer + 1).is_multiple_of(interval),
            None => heads_of(layer) > 0,
        };
        match header.recurrence {
            Some(recurrence) if !has_cache => state = state.saturating_add(recurrence.numbers),
            _ => cached = cached.saturating_add(heads_of(layer).saturating_mul(of_head)),
        }
    }
    (cached, state)
}

/// llama.cpp's limit.
const MAX_LAYERS: u64 = 512;
