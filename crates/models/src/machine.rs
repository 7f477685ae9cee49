//! Measures this machine: how fast it reads its memory, and how much room its disk has.

use std::hint::black_box;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::fit::MachineSpeed;

/// Bytes that are read: more than the caches of most processors have.
const MOST_BYTES: u64 = 256 << 20;

/// The part of the machine's memory that a measurement uses at most.
const MEMORY_SHARE: u64 = 16;

/// The first pass may wake sleeping cores.
const PASSES: usize = 3;

/// Reads memory with all cores, on a machine that has `memory` bytes for models. Takes some tenths of a second and blocks.
pub fn measure_speed(memory: u64) -> MachineSpeed {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let bytes = MOST_BYTES.min(memory / MEMORY_SHARE).max(1 << 20);
    // Written, because untouched pages share one page of zeros.
    let memory = vec![1_u8; usize::try_from(bytes).unwrap_or(1 << 20)];
    let mut best = Duration::MAX;
    for _ in 0..PASSES {
        let started = Instant::now();
        thread::scope(|scope| {
            for part in memory.chunks(memory.len().div_ceil(cores)) {
                // The system's library compares, as fast as the memory is. A loop of our own would depend on how Hob is built.
                let (first, second) = part.split_at(part.len() / 2);
                scope.spawn(move || black_box(first == &second[..first.len()]));
            }
        });
        best = best.min(started.elapsed());
    }
    let bytes = memory.len() as f64;
    MachineSpeed { bandwidth: (bytes / best.as_secs_f64().max(1e-9)) as u64, cores }
}

/// The free bytes on the disk of a directory, which need not exist yet; `None` if the system does not report them.
#[cfg(unix)]
pub fn free_disk(directory: &Path) -> Option<u64> {
    let existing = directory.ancestors().find(|path| path.exists())?;
    let disk = rustix::fs::statvfs(existing).ok()?;
    disk.f_bavail.checked_mul(disk.f_frsize)
}

#[cfg(not(unix))]
pub fn free_disk(_directory: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_directory_that_does_not_exist_yet_has_the_disk_of_its_parent() {
        let home = tempfile::tempdir().unwrap();
        assert!(free_disk(&home.path().join("models/of/mine")).is_some_and(|free| free > 0));
    }

    #[test]
    fn a_measurement_counts_all_bytes() {
        let speed = measure_speed(1 << 30);
        assert!(speed.bandwidth > 1_000_000 && speed.cores > 0, "{speed:?}");
    }
}
