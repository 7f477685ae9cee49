//! Graphics cards.

use std::fmt;

use crate::hardware::format::printable;

/// Who made a card, as far as it matters for what runs on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpuVendor {
    Nvidia,
    Amd,
    Apple,
    Other(String),
}

impl fmt::Display for GpuVendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            GpuVendor::Nvidia => "NVIDIA",
            GpuVendor::Amd => "AMD",
            GpuVendor::Apple => "Apple",
            GpuVendor::Other(name) => name,
        })
    }
}

/// One or more cards of the same kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Gpu {
    pub vendor: GpuVendor,
    /// The name the driver gives it.
    pub model: String,
    /// Video memory of each card in GB of 2^30 bytes; where processor and card share their memory, all of it. `None`
    /// if the driver does not report it.
    pub vram_gb: Option<f64>,
    /// How many of them there are.
    pub count: usize,
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let model = printable(&self.model);
        let each = if self.count > 1 { " each" } else { "" };
        if self.count > 1 {
            write!(f, "{} x ", self.count)?;
        }
        match self.vram_gb {
            Some(vram) => write!(f, "{model}, {vram:.1} GB{each}"),
            None => write!(f, "{model}, memory unknown"),
        }
    }
}

/// One card, as a probe reports it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Adapter {
    pub vendor: GpuVendor,
    pub model: String,
    pub vram_gb: Option<f64>,
}

pub(super) type Adapters = Vec<Adapter>;

/// Puts cards of the same kind together, in the order of their first appearance.
pub(super) fn grouped(adapters: Adapters) -> Vec<Gpu> {
    let mut gpus: Vec<Gpu> = Vec::new();
    for Adapter { vendor, model, vram_gb } in adapters {
        let same = |gpu: &&mut Gpu| gpu.vendor == vendor && gpu.model == model && gpu.vram_gb == vram_gb;
        match gpus.iter_mut().find(same) {
            Some(gpu) => gpu.count += 1,
            None => gpus.push(Gpu { vendor, model, vram_gb, count: 1 }),
        }
    }
    gpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_cards_are_counted_and_different_ones_kept_apart() {
        let card =
            |model: &str| Adapter { vendor: GpuVendor::Nvidia, model: model.to_owned(), vram_gb: Some(24.0) };
        let gpus = grouped(vec![card("L4"), card("A10"), card("L4")]);
        let counted: Vec<(&str, usize)> = gpus.iter().map(|gpu| (gpu.model.as_str(), gpu.count)).collect();
        assert_eq!(counted, [("L4", 2), ("A10", 1)]);
    }
}
