//! Graphics cards: which there are, and how much of their memory is for models. Also what the processor can do.
#![expect(
    unsafe_code,
    reason = "no safe wrapper has the identity of a device, or the features of the processor"
)]

use std::ffi::{CStr, c_char};

use hob_core::{ComputeDevice, DeviceShare};
use llama_cpp_2::{LlamaBackendDeviceType, list_llama_ggml_backend_devices};
use llama_cpp_sys_2 as sys;

use crate::backends::backend;
use crate::options::GpuLayers;

/// llama.cpp's limit.
const MAX_CARDS: usize = 16;

/// Memory of a card that stays free: its driver and other programs use some, and llama.cpp ends the process if a step needs more than
/// there is.
const LEAST_RESERVE: u64 = 512 << 20;
const RESERVED_PART: u64 = 16;

/// A graphics card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Card {
    /// The number of the device in llama.cpp's list.
    pub(crate) index: usize,
    pub(crate) device: ComputeDevice,
}

impl Card {
    /// Bytes for models.
    pub(crate) fn room(&self) -> u64 {
        let reserve = LEAST_RESERVE.max(self.device.memory_total / RESERVED_PART);
        self.device.memory_free.saturating_sub(reserve)
    }
}

/// The graphics cards in llama.cpp's order. Integrated ones count only if there is no other. Blocks, for a second at the first call.
pub(crate) fn cards() -> Vec<Card> {
    if backend().is_err() {
        return Vec::new();
    }
    let all = list_llama_ggml_backend_devices();
    let of = |kind: LlamaBackendDeviceType| -> Vec<Card> {
        let mut identities: Vec<String> = Vec::new();
        let found = all.iter().filter(|device| device.device_type == kind).filter(|device| {
            // Two backends may find the same card.
            let identity = identity(device.index);
            let is_new = identity.as_ref().is_none_or(|identity| !identities.contains(identity));
            identities.extend(identity);
            is_new
        });
        found
            .map(|device| Card {
                index: device.index,
                device: ComputeDevice {
                    name: device.name.clone(),
                    description: device.description.clone(),
                    backend: device.backend.clone(),
                    memory_total: device.memory_total as u64,
                    memory_free: device.memory_free as u64,
                },
            })
            .take(MAX_CARDS)
            .collect()
    };
    let cards = of(LlamaBackendDeviceType::Gpu);
    if cards.is_empty() { of(LlamaBackendDeviceType::IntegratedGpu) } else { cards }
}

/// The cards for models.
pub(crate) fn usable_cards(wanted: GpuLayers) -> Vec<Card> {
    match wanted {
        GpuLayers::Count(0) => Vec::new(),
        GpuLayers::Auto | GpuLayers::Count(_) => cards(),
    }
}

/// Bytes of all cards for models. Several cards cannot be filled completely: layers are not divided, and each card has its own
/// buffers. Never 0 with a card, because 0 means that there is none.
pub(crate) fn room(cards: &[Card]) -> u64 {
    let all: u64 = cards.iter().map(Card::room).sum();
    let usable = if cards.len() > 1 { all / 8 * 7 } else { all };
    usable.max(u64::from(!cards.is_empty()))
}

/// Whether the cards have room for these parts of a model.
pub(crate) fn have_room(cards: &[Card], shares: &[DeviceShare]) -> bool {
    let fits = |share: &DeviceShare| {
        cards.iter().any(|card| card.device.name == share.device && share.bytes <= card.room())
    };
    shares.iter().all(fits)
}

/// Where a card is in the machine, if its driver says so.
fn identity(index: usize) -> Option<String> {
    // SAFETY: the index is from llama.cpp's list, which never shrinks. The properties are plain numbers and pointers, for which zero is
    // a value; llama.cpp fills them, and its texts live as long as the process.
    let properties = unsafe {
        let device = sys::ggml_backend_dev_get(index);
        let mut properties: sys::ggml_backend_dev_props = std::mem::zeroed();
        sys::ggml_backend_dev_get_props(device, &raw mut properties);
        properties
    };
    text(properties.device_id)
}

/// The instructions of the processor that are used, such as `AVX2`. Those that older processors have too are not listed.
pub(crate) fn processor_features() -> Vec<String> {
    if backend().is_err() {
        return Vec::new();
    }
    // SAFETY: llama.cpp returns a zero-terminated text that it owns.
    let told = text(unsafe { sys::llama_print_system_info() }).unwrap_or_default();
    features_in(&told)
}

/// Reads `CUDA : ARCHS = 900 | CPU : SSE3 = 1 | AVX2 = 1 | REPACK = 1 |`.
fn features_in(told: &str) -> Vec<String> {
    let after = told.split("CPU :").nth(1).unwrap_or_default();
    let used = after.split('|').filter_map(|feature| feature.trim().strip_suffix(" = 1"));
    used.filter(|name| !["LLAMAFILE", "OPENMP", "REPACK"].contains(name)).map(str::to_owned).collect()
}

fn text(pointer: *const c_char) -> Option<String> {
    // SAFETY: not null, and the callers pass zero-terminated texts of llama.cpp that live as long as the process.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}

/// Whether loading failed because a card has too little memory.
pub(crate) fn is_out_of_memory(errors: &[String]) -> bool {
    let marks = [
        "alloc",
        "out of memory",
        "OutOfDeviceMemory",
        "OutOfHostMemory",
        "failed to reserve",
        "failed to initialize",
    ];
    errors.iter().any(|error| marks.iter().any(|mark| error.contains(mark)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{GB, card};

    #[test]
    fn every_card_needs_room_for_its_part_beside_its_reserve() {
        let share = |device: &str, bytes| DeviceShare { device: device.into(), layers: 1, bytes };
        let cards = [card(0, 2 * GB, 8 * GB), card(1, 10 * GB, 16 * GB)];
        assert!(have_room(&cards, &[share("CUDA0", GB), share("CUDA1", 9 * GB)]));
        assert!(!have_room(&cards, &[share("CUDA0", 2 * GB), share("CUDA1", GB)]));
        assert!(!have_room(&cards, &[share("CUDA2", 1)]));
        assert!(have_room(&[], &[]));
    }

    #[test]
    fn the_features_of_the_processor_are_read() {
        let told =
            "CUDA : ARCHS = 900 | USE_GRAPHS = 1 | CPU : SSE3 = 1 | AVX2 = 1 | AVX512 = 0 | REPACK = 1 | ";
        assert_eq!(features_in(told), ["SSE3", "AVX2"]);
        assert_eq!(features_in(""), [""; 0]);
    }
}
