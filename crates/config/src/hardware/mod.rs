//! Detects the platform, processor, memory and graphics cards. Makes no decisions.

mod amd;
mod apple;
mod format;
mod gpu;
mod machine;
mod nvidia;
mod probe;
mod sysfs;

use std::fmt;

pub use gpu::{Gpu, GpuVendor};
pub use machine::{Cpu, Platform};

use gpu::{Adapters, grouped};

/// What was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Hardware {
    pub platform: Platform,
    pub cpu: Cpu,
    /// Memory in GB of 2^30 bytes. In a container, what the container may use.
    pub ram_gb: f64,
    pub gpus: Vec<Gpu>,
    /// Errors of the detection, in sentences, such as a driver that does not answer. A tool that is not installed is not an
    /// error.
    pub notes: Vec<String>,
}

/// Detects the hardware. All probes run concurrently, each for at most three seconds.
pub async fn detect() -> Hardware {
    let (machine, nvidia, rocm, sysfs, apple) =
        tokio::join!(machine::look(), nvidia::look(), amd::look(), sysfs::look(), apple::look());
    let mut notes = Vec::new();
    let mut heard = |answer: Result<Adapters, probe::ProbeError>| {
        answer.unwrap_or_else(|error| {
            notes.push(error.to_string());
            Adapters::new()
        })
    };
    let (nvidia, rocm, apple) = (heard(nvidia), heard(rocm), heard(apple));
    let gpus = combine(DetectedHardware {
        nvidia,
        rocm,
        sysfs,
        apple: apple::with_unified_memory(apple, machine.ram_gb),
    });
    Hardware { platform: machine.platform, cpu: machine.cpu, ram_gb: machine.ram_gb, gpus, notes }
}

/// The result of each probe.
#[derive(Default)]
struct DetectedHardware {
    nvidia: Adapters,
    rocm: Adapters,
    sysfs: Adapters,
    apple: Adapters,
}

fn combine(found: DetectedHardware) -> Vec<Gpu> {
    let DetectedHardware { nvidia, mut rocm, mut sysfs, apple } = found;
    // The driver's own tool has names and sizes; the kernel's list is the fallback.
    if !rocm.is_empty() {
        sysfs.retain(|adapter| adapter.vendor != GpuVendor::Amd);
    }
    rocm.retain(amd::is_worth_using);
    sysfs.retain(amd::is_worth_using);
    grouped([nvidia, rocm, apple, sysfs].concat())
}

/// Four lines or more for a person to read.
impl fmt::Display for Hardware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Platform  {} {}", self.platform.os, self.platform.arch)?;
        writeln!(f, "CPU       {}", self.cpu)?;
        writeln!(f, "Memory    {:.1} GB", self.ram_gb)?;
        if self.gpus.is_empty() {
            return write!(f, "GPU       none");
        }
        let lines: Vec<String> = self.gpus.iter().map(|gpu| format!("GPU       {gpu}")).collect();
        f.write_str(&lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::gpu::Adapter;

    fn adapter(vendor: GpuVendor, model: &str, vram_gb: Option<f64>) -> Adapter {
        Adapter { vendor, model: model.to_owned(), vram_gb }
    }

    #[test]
    fn the_drivers_own_tool_goes_before_the_kernels_list() {
        let card = adapter(GpuVendor::Amd, "Radeon RX 7900 XTX", Some(24.0));
        let same = adapter(GpuVendor::Amd, "AMD GPU [1002:744c]", Some(24.0));
        let arc = adapter(GpuVendor::Other("Intel".into()), "Intel GPU [8086:56a0]", None);
        let gpus = |found| combine(found).into_iter().map(|gpu| gpu.model).collect::<Vec<_>>();
        let both = DetectedHardware {
            rocm: vec![card],
            sysfs: vec![same.clone(), arc.clone()],
            ..DetectedHardware::default()
        };
        assert_eq!(gpus(both), ["Radeon RX 7900 XTX", "Intel GPU [8086:56a0]"]);
        let kernel_only = DetectedHardware { sysfs: vec![same, arc], ..DetectedHardware::default() };
        assert_eq!(gpus(kernel_only), ["AMD GPU [1002:744c]", "Intel GPU [8086:56a0]"]);
    }

    #[test]
    fn the_display_unit_inside_a_processor_is_no_graphics_card() {
        let unit = adapter(GpuVendor::Amd, "AMD Radeon Graphics", Some(0.5));
        assert_eq!(combine(DetectedHardware { rocm: vec![unit.clone()], ..DetectedHardware::default() }), []);
        assert_eq!(combine(DetectedHardware { sysfs: vec![unit], ..DetectedHardware::default() }), []);
    }

    #[test]
    fn a_machine_is_described_in_a_few_lines() {
        let mut hardware = Hardware {
            platform: Platform { os: "linux".into(), arch: "x86_64".into() },
            cpu: Cpu { brand: "AMD EPYC 7763\u{1b}[0m".into(), physical_cores: Some(64), logical_cores: 128 },
            ram_gb: 503.5,
            gpus: vec![Gpu {
                vendor: GpuVendor::Nvidia,
                model: "NVIDIA H100\nNVL".into(),
                vram_gb: Some(93.6),
                count: 2,
            }],
            notes: Vec::new(),
        };
        insta::assert_snapshot!(hardware, @r"
        Platform  linux x86_64
        CPU       AMD EPYC 7763 [0m, 64 cores, 128 threads
        Memory    503.5 GB
        GPU       2 x NVIDIA H100 NVL, 93.6 GB each
        ");
        hardware.gpus.clear();
        assert!(hardware.to_string().ends_with("\nGPU       none"));
    }

    #[tokio::test]
    async fn this_machine_has_a_processor_and_memory() {
        let hardware = detect().await;
        assert!(hardware.cpu.logical_cores >= 1, "{hardware:?}");
        assert!(hardware.ram_gb > 0.0, "{hardware:?}");
        assert_eq!(hardware.platform.os, std::env::consts::OS);
    }
}
