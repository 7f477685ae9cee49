//! Which engine suits a machine. A pure table.

use crate::engine_name::EngineName;
use crate::hardware::{Gpu, GpuVendor};

/// NVIDIA's cards for data centres.
const DATACENTER: [&str; 6] = ["A100", "H100", "H200", "L40", "A10", "A30"];

/// The engine for a machine with these cards. With cards of several vendors the first row that fits counts.
pub fn recommend(gpus: &[Gpu]) -> EngineName {
    let has = |vendor: GpuVendor| gpus.iter().any(|gpu| gpu.vendor == vendor);
    if gpus.iter().any(is_datacenter_card) {
        EngineName::Vllm
    } else if has(GpuVendor::Nvidia) || has(GpuVendor::Apple) {
        EngineName::Ollama
    } else if has(GpuVendor::Amd) {
        EngineName::Vllm
    } else {
        EngineName::Llamacpp
    }
}

fn is_datacenter_card(gpu: &Gpu) -> bool {
    let mut words = gpu.model.split(|character: char| !character.is_ascii_alphanumeric());
    gpu.vendor == GpuVendor::Nvidia && words.any(|word| DATACENTER.iter().any(|card| is_variant(word, card)))
}

/// `L40S` and `A10G` are an L40 and an A10, whereas an `A1000` is another card.
fn is_variant(word: &str, card: &str) -> bool {
    let word = word.to_ascii_uppercase();
    word.strip_prefix(card)
        .is_some_and(|suffix| suffix.chars().all(|character| character.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(vendor: GpuVendor, model: &str) -> Gpu {
        Gpu { vendor, model: model.to_owned(), vram_gb: None, count: 1 }
    }

    #[test]
    fn each_kind_of_hardware_has_its_engine() {
        use EngineName::{Llamacpp, Ollama, Vllm};
        use GpuVendor::{Amd, Apple, Nvidia, Other};
        assert_eq!(recommend(&[]), Llamacpp);
        for (vendor, model, engine) in [
            (Apple, "Apple M2 Max", Ollama),
            (Nvidia, "NVIDIA A100-SXM4-80GB", Vllm),
            (Nvidia, "NVIDIA A100 80GB PCIe", Vllm),
            (Nvidia, "NVIDIA A100X", Vllm),
            (Nvidia, "GRID A100-10C", Vllm),
            (Nvidia, "NVIDIA H100 80GB HBM3", Vllm),
            (Nvidia, "nvidia h100 nvl", Vllm),
            (Nvidia, "NVIDIA H200", Vllm),
            (Nvidia, "NVIDIA L40", Vllm),
            (Nvidia, "NVIDIA L40S", Vllm),
            (Nvidia, "NVIDIA A10", Vllm),
            (Nvidia, "NVIDIA A10G", Vllm),
            (Nvidia, "NVIDIA A30", Vllm),
            (Nvidia, "NVIDIA RTX A1000", Ollama),
            (Nvidia, "NVIDIA RTX A3000 Laptop GPU", Ollama),
            (Nvidia, "NVIDIA GeForce RTX 4090", Ollama),
            (Nvidia, "NVIDIA L4", Ollama),
            (Nvidia, "NVIDIA GeForce GT 1030", Ollama),
            (Nvidia, "Tesla T4", Ollama),
            (Nvidia, "", Ollama),
            (Amd, "AMD Instinct MI300X OAM", Vllm),
            (Amd, "Radeon RX 7900 XTX", Vllm),
            (Other("Intel".into()), "Intel GPU [8086:56a0]", Llamacpp),
            (Other("Moore Threads".into()), "MTT A100", Llamacpp),
        ] {
            assert_eq!(recommend(&[gpu(vendor, model)]), engine, "{model}");
        }
    }

    #[test]
    fn the_best_card_of_several_decides() {
        let desktop = gpu(GpuVendor::Nvidia, "NVIDIA GeForce GT 1030");
        let server = gpu(GpuVendor::Nvidia, "NVIDIA H100 NVL");
        let intel = gpu(GpuVendor::Other("Intel".into()), "Intel GPU [8086:56a0]");
        let amd = gpu(GpuVendor::Amd, "Radeon RX 7900 XTX");
        assert_eq!(recommend(&[desktop.clone(), server]), EngineName::Vllm);
        assert_eq!(recommend(&[intel.clone(), amd.clone()]), EngineName::Vllm);
        assert_eq!(recommend(&[intel, amd, desktop]), EngineName::Ollama);
    }
}
