//! Watches the memory of a process and its descendants, where the kernel limits each process alone.

use std::time::Duration;

use crate::job::ExitReason;

/// A runaway allocates about a gigabyte a second, so the limit is exceeded only slightly.
const INTERVAL: Duration = Duration::from_millis(100);

/// More than a sandbox allows.
const MAX_PROCESSES: usize = 1_024;

/// Returns when `ancestor` and its descendants use more than `limit` bytes.
pub async fn watch(ancestor: u32, limit: u64) -> ExitReason {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // Reading many processes takes a moment.
        let reading = tokio::task::spawn_blocking(move || used(ancestor));
        if reading.await.is_ok_and(|used| used > limit) {
            return ExitReason::TooMuchMemory;
        }
    }
}

/// The memory of a process and its descendants. Shared pages are counted once.
fn used(ancestor: u32) -> u64 {
    let mut family = vec![ancestor];
    let mut total = 0;
    let mut index = 0;
    while let Some(pid) = family.get(index).copied() {
        index += 1;
        total += own(pid);
        if family.len() < MAX_PROCESSES {
            family.extend(children(pid));
        }
    }
    total
}

/// A process that has ended or cannot be read counts as nothing.
fn own(pid: u32) -> u64 {
    let summary = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let kilobytes = summary
        .lines()
        .find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1_024
}

/// Every thread has a list of its child processes.
fn children(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split(' ').filter_map(|number| number.trim().parse().ok()).collect::<Vec<u32>>()
        })
        .collect()
}
