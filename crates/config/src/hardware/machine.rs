//! Platform, processor and memory.

use std::fmt;

use hob_process::machine_resources;

use crate::hardware::format::{gigabytes, printable};
use crate::hardware::probe::TIMEOUT;

/// The platform this program was built for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Platform {
    /// Such as `linux`, `macos`.
    pub os: String,
    /// Such as `x86_64`, `aarch64`.
    pub arch: String,
}

/// The processor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cpu {
    /// The manufacturer's name for it; empty if the system does not report it.
    pub brand: String,
    pub physical_cores: Option<usize>,
    /// Threads that run at once. In a container, as many as it may use.
    pub logical_cores: usize,
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let brand = printable(&self.brand);
        f.write_str(if brand.is_empty() { "unknown" } else { &brand })?;
        if let Some(cores) = self.physical_cores {
            write!(f, ", {cores} {}", if cores == 1 { "core" } else { "cores" })?;
        }
        write!(f, ", {} {}", self.logical_cores, if self.logical_cores == 1 { "thread" } else { "threads" })
    }
}

#[derive(Debug, Default)]
pub(super) struct Machine {
    pub platform: Platform,
    pub cpu: Cpu,
    pub ram_gb: f64,
}

pub(super) async fn look() -> Machine {
    let platform = Platform { os: std::env::consts::OS.to_owned(), arch: std::env::consts::ARCH.to_owned() };
    let reading = tokio::time::timeout(TIMEOUT, tokio::task::spawn_blocking(read)).await;
    let (cpu, ram_gb) = reading.ok().and_then(Result::ok).unwrap_or_default();
    Machine { platform, cpu, ram_gb }
}

fn read() -> (Cpu, f64) {
    let usable = std::thread::available_parallelism().map_or(1, usize::from);
    let found = machine_resources();
    let cpu = Cpu {
        brand: found.processor.unwrap_or_default(),
        physical_cores: found.cores.map(|cores| cores.min(usable)),
        logical_cores: usable,
    };
    (cpu, gigabytes(found.memory.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_that_tells_nothing_is_still_described() {
        let silent = Cpu { brand: String::new(), physical_cores: None, logical_cores: 1 };
        assert_eq!(silent.to_string(), "unknown, 1 thread");
        let known = Cpu { brand: "Apple M2 Max".into(), physical_cores: Some(12), logical_cores: 12 };
        assert_eq!(known.to_string(), "Apple M2 Max, 12 cores, 12 threads");
    }
}
