//! How many layers of a model go to graphics cards. Pure.
//!
//! Layers go to the cards as far as they fit, with their part of the conversations, and the rest stays with the processor. Several cards
//! share them by their free memory, as llama.cpp does it.

use hob_core::DeviceShare;
use hob_models::GgufHeader;

use crate::cards::{Card, room};
use crate::options::GpuLayers;

/// The sizes of a model as far as a card has to hold them, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LayerSizes {
    /// Layers, without the output.
    pub(crate) layers: u32,
    /// Weights and conversations of one layer.
    pub(crate) layer: u64,
    /// The weights after the layers, which llama.cpp counts as one more layer.
    pub(crate) output: u64,
    /// Buffers on every card that has a layer.
    pub(crate) buffers: u64,
}

/// More than any model has. A file with a larger number is broken.
const MAX_LAYERS: u64 = 4096;

impl LayerSizes {
    /// Of a model with these bytes of weights, conversations and buffers.
    pub(crate) fn new(header: &GgufHeader, weights: u64, kv_cache: u64, buffers: u64) -> Self {
        let layers = layer_count(header.block_count);
        let of_layers = weights.saturating_sub(header.input_bytes).saturating_sub(header.output_bytes);
        // A model without weights for its output uses a copy of those of its input.
        let output = if header.output_bytes > 0 { header.output_bytes } else { header.input_bytes };
        let all = of_layers.saturating_add(kv_cache);
        LayerSizes { layers, layer: all.div_ceil(u64::from(layers.max(1))), output, buffers }
    }

    /// Layers with the output.
    pub(crate) fn all(&self) -> u32 {
        self.layers.saturating_add(1)
    }
}

/// How a model is divided between the processor and the cards.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Offload {
    /// Layers on cards, the output among them.
    pub(crate) layers: u32,
    /// Whether these are all layers, so that the processor has nearly nothing to do.
    pub(crate) is_whole: bool,
    /// The layers of the model, the output among them; 0 if no layer is on a card.
    all_layers: u32,
    /// The numbers of the cards in llama.cpp's list.
    pub(crate) cards: Vec<usize>,
    pub(crate) shares: Vec<DeviceShare>,
    /// Bytes that the cards had for models; 0 if no layer is there. The context depends on them.
    pub(crate) room: u64,
}

impl Offload {
    /// As many layers as fit, or as many as the user wants, on all cards.
    pub(crate) fn plan(sizes: &LayerSizes, cards: &[Card], wanted: GpuLayers) -> Self {
        let layers = match wanted {
            GpuLayers::Auto => layers_that_fit(sizes, cards),
            GpuLayers::Count(count) => count.min(sizes.all()),
        };
        Self::of(sizes, cards, layers)
    }

    /// So many layers on all cards.
    fn of(sizes: &LayerSizes, cards: &[Card], layers: u32) -> Self {
        if layers == 0 || cards.is_empty() {
            return Offload::default();
        }
        let shares = shares(sizes, cards, layers).into_iter().zip(cards);
        let shares = shares
            .filter(|((layers, _), _)| *layers > 0)
            .map(|((layers, bytes), card)| DeviceShare { device: card.device.name.clone(), layers, bytes });
        Offload {
            layers,
            is_whole: layers >= sizes.all(),
            all_layers: sizes.all(),
            cards: cards.iter().map(|card| card.index).collect(),
            shares: shares.collect(),
            room: room(cards),
        }
    }

    /// A smaller one for the next attempt; the last one has no layers.
    pub(crate) fn smaller(&self, sizes: &LayerSizes, cards: &[Card]) -> Self {
        Self::of(sizes, cards, self.layers * 3 / 4)
    }

    /// Bytes on all cards.
    pub(crate) fn bytes(&self) -> u64 {
        self.shares.iter().map(|share| share.bytes).sum()
    }

    /// The part on each card with one more context of the model: a card has the cache of its layers, and buffers of its own.
    pub(crate) fn shares_with_context(&self, kv_cache: u64, compute: u64) -> Vec<DeviceShare> {
        let with_context = |share: &DeviceShare| {
            let context = self.cache_of(share.layers, kv_cache).saturating_add(compute);
            DeviceShare { bytes: share.bytes.saturating_add(context), ..share.clone() }
        };
        self.shares.iter().map(with_context).collect()
    }

    /// The part of that context in the main memory.
    pub(crate) fn context_beside_cards(&self, kv_cache: u64, compute: u64) -> u64 {
        match self.is_whole {
            true => 0,
            false => kv_cache.saturating_sub(self.cache_of(self.layers, kv_cache)).saturating_add(compute),
        }
    }

    /// The part of a cache that belongs to so many layers.
    fn cache_of(&self, layers: u32, kv_cache: u64) -> u64 {
        let part = u128::from(kv_cache) * u128::from(layers) / u128::from(self.all_layers.max(1));
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}

/// The most layers with which no card needs more than it has.
fn layers_that_fit(sizes: &LayerSizes, cards: &[Card]) -> u32 {
    let fits = |layers: &u32| {
        shares(sizes, cards, *layers).iter().zip(cards).all(|((_, bytes), card)| *bytes <= card.room())
    };
    if cards.is_empty() { 0 } else { (1..=sizes.all()).rev().find(fits).unwrap_or(0) }
}

/// The layers and bytes of every card. llama.cpp puts the last layers and the output on the cards, in order, by their free memory.
fn shares(sizes: &LayerSizes, cards: &[Card], layers: u32) -> Vec<(u32, u64)> {
    let free: Vec<f64> = cards.iter().map(|card| card.device.memory_free as f64).collect();
    let sum: f64 = free.iter().sum();
    let mut ends = Vec::with_capacity(free.len());
    free.iter().fold(0.0, |before, free| {
        ends.push((before + free) / sum);
        before + free
    });
    let mut shares = vec![(0_u32, 0_u64); cards.len()];
    for layer in 0..layers {
        let at = f64::from(layer) / f64::from(layers);
        let card = ends.iter().position(|end| *end > at).unwrap_or(cards.len() - 1);
        let is_output = layer + 1 == layers;
        let (count, bytes) = &mut shares[card];
        *count += 1;
        *bytes = bytes.saturating_add(if is_output { sizes.output } else { sizes.layer });
    }
    for (_, bytes) in shares.iter_mut().filter(|(count, _)| *count > 0) {
        *bytes = bytes.saturating_add(sizes.buffers);
    }
    shares
}

/// The layers to plan with: none if the file has an impossible number.
fn layer_count(named: Option<u64>) -> u32 {
    named.filter(|count| *count <= MAX_LAYERS).and_then(|count| u32::try_from(count).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{GB, card};

    #[test]
    fn an_impossible_number_of_layers_is_not_planned_with() {
        let counts = [None, Some(32), Some(4097), Some(u64::from(u32::MAX)), Some(u64::MAX)];
        assert_eq!(counts.map(layer_count), [0, 32, 0, 0, 0]);
    }

    /// 32 layers of 128 MiB, an output of 512 MiB, buffers of 256 MiB.
    const SIZES: LayerSizes = LayerSizes { layers: 32, layer: GB / 8, output: GB / 2, buffers: GB / 4 };

    fn plan(cards: &[Card], wanted: GpuLayers) -> (u32, Vec<(String, u32)>) {
        let offload = Offload::plan(&SIZES, cards, wanted);
        (offload.layers, offload.shares.into_iter().map(|share| (share.device, share.layers)).collect())
    }

    #[test]
    fn all_layers_go_to_a_card_with_room_for_them() {
        let large = [card(1, 70 * GB, 80 * GB)];
        assert_eq!(plan(&large, GpuLayers::Auto), (33, vec![("CUDA1".into(), 33)]));
        let offload = Offload::plan(&SIZES, &large, GpuLayers::Auto);
        assert_eq!((offload.cards, offload.shares[0].bytes), (vec![1], 32 * GB / 8 + GB / 2 + GB / 4));
    }

    #[test]
    fn a_smaller_card_gets_the_layers_that_fit_beside_its_reserve() {
        // 3 GB are free, 512 MiB stay so, 256 MiB are buffers, 512 MiB are the output: 14 layers fit.
        assert_eq!(plan(&[card(0, 3 * GB, 8 * GB)], GpuLayers::Auto), (15, vec![("CUDA0".into(), 15)]));
        assert_eq!(plan(&[card(0, GB, 8 * GB)], GpuLayers::Auto), (0, vec![]));
        assert_eq!(plan(&[], GpuLayers::Auto), (0, vec![]));
    }

    #[test]
    fn several_cards_share_by_their_free_memory() {
        let two = [card(0, 20 * GB, 24 * GB), card(1, 10 * GB, 24 * GB)];
        assert_eq!(plan(&two, GpuLayers::Auto), (33, vec![("CUDA0".into(), 22), ("CUDA1".into(), 11)]));
        // Neither of them could hold the model.
        let small = [card(0, 3 * GB, 4 * GB), card(1, 3 * GB, 4 * GB)];
        let (layers, shares) = plan(&small, GpuLayers::Auto);
        assert!(layers > 15 && layers < 33, "{layers}");
        assert_eq!(shares.iter().map(|(_, count)| count).sum::<u32>(), layers);
    }

    #[test]
    fn a_number_of_layers_is_taken_as_it_is() {
        let small = [card(0, GB, 8 * GB)];
        assert_eq!(plan(&small, GpuLayers::Count(7)), (7, vec![("CUDA0".into(), 7)]));
        assert_eq!(plan(&small, GpuLayers::Count(999)), (33, vec![("CUDA0".into(), 33)]));
        assert_eq!(plan(&small, GpuLayers::Count(0)), (0, vec![]));
    }

    #[test]
    fn attempts_end_with_the_processor() {
        let cards = [card(0, 70 * GB, 80 * GB)];
        let mut offload = Offload::plan(&SIZES, &cards, GpuLayers::Auto);
        let mut attempts = vec![offload.layers];
        while offload.layers > 0 {
            offload = offload.smaller(&SIZES, &cards);
            attempts.push(offload.layers);
        }
        assert_eq!(attempts, [33, 24, 18, 13, 9, 6, 4, 3, 2, 1, 0]);
        assert_eq!(offload, Offload::default());
    }

    #[test]
    fn a_second_context_is_counted_where_its_layers_are() {
        let parts = |cards: &[Card], wanted: GpuLayers| {
            let offload = Offload::plan(&SIZES, cards, wanted);
            let of_context = offload.shares_with_context(33 * GB, GB).into_iter().zip(&offload.shares);
            let on_cards: Vec<u64> = of_context.map(|(with, without)| with.bytes - without.bytes).collect();
            (on_cards, offload.context_beside_cards(33 * GB, GB))
        };
        let large = [card(0, 70 * GB, 80 * GB)];
        assert_eq!(parts(&large, GpuLayers::Auto), (vec![34 * GB], 0));
        let two = [card(0, 20 * GB, 24 * GB), card(1, 10 * GB, 24 * GB)];
        assert_eq!(parts(&two, GpuLayers::Auto), (vec![23 * GB, 12 * GB], 0));
        // 13 layers are with the processor, which has buffers too.
        assert_eq!(parts(&large, GpuLayers::Count(20)), (vec![21 * GB], 14 * GB));
        assert_eq!(parts(&large, GpuLayers::Count(0)), (vec![], 34 * GB));
        assert_eq!(parts(&[], GpuLayers::Auto), (vec![], 34 * GB));
    }
}
