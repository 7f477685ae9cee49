//! Estimates the memory of a model before it is loaded. Pure.

use super::header::GgufHeader;

/// Bytes of a number in the KV cache.
const F16: u64 = 2;
const F32: u64 = 4;

/// Tokens of a batch of llama.cpp, which determine its scratch buffers.
const BATCH: u64 = 512;

/// The rest: graphs, tokenizer, threads.
const BASE: u64 = 32 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryEstimate {
    pub weights: u64,
    pub kv_cache: u64,
    /// Scratch buffers and the library itself.
    pub overhead: u64,
}

impl MemoryEstimate {
    /// For a model of `weights` bytes and a context of `context` tokens over all sequences.
    ///
    /// Too high for models with special caches, such as windows or compression.
    pub fn of(header: &GgufHeader, weights: u64, context: u64) -> Self {
        let wide = header
            .embedding_length
            .unwrap_or(0)
            .saturating_mul(8)
            .saturating_add(header.vocabulary.unwrap_or(0));
        MemoryEstimate {
            weights,
            kv_cache: cached_per_token(header).saturating_mul(context),
            overhead: wide.saturating_mul(BATCH * F32).saturating_add(BASE),
        }
    }

    pub fn total(&self) -> u64 {
        self.weights.saturating_add(self.kv_cache).saturating_add(self.overhead)
    }
}

/// Keys and values of one token in all layers.
fn cached_per_token(header: &GgufHeader) -> u64 {
    // A model that is not causal has no cache.
    if !header.is_causal {
        return 0;
    }
    let layers = header.block_count.unwrap_or(0);
    let heads = header.head_count_kv.as_ref().or(header.head_count.as_ref());
    let heads = heads.map_or(0, |heads| heads.sum(layers));
    let query_heads = header.head_count.as_ref().map_or(0, |heads| heads.max());
    let usual = header.embedding_length.and_then(|length| length.checked_div(query_heads)).unwrap_or(0);
    let key = header.key_length.unwrap_or(usual);
    let value = header.value_length.unwrap_or(usual);
    heads.saturating_mul(key.saturating_add(value)).saturating_mul(F16)
}
