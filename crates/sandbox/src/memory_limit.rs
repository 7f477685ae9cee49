//! Watches the memory of a process and its descendants, where the kernel limits each process alone. What their sockets and pipes hold
//! belongs to no process, so it is estimated from their number. Watches the number of files too, where a file system has a size only:
//! an empty file has none, and takes memory of the kernel.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::job::ExitReason;
use crate::options::{OPEN_FILES, SandboxLimits};

/// A runaway allocates about a gigabyte a second, so the limit is exceeded only slightly.
const INTERVAL: Duration = Duration::from_millis(100);

/// More than a sandbox allows.
const MAX_PROCESSES: usize = 1_024;

/// What a socket can hold: its buffers have this size on most machines, and a program in the sandbox cannot change it.
const SOCKET_BYTES: u64 = 208 << 10;

/// The buffers of TCP grow, so what they hold is counted too. The kernel needs up to twice the memory for it.
const TCP_OVERHEAD: u64 = 2;

/// What a pipe can hold: its buffer has this size on most machines, and a program in the sandbox cannot change it.
const PIPE_BYTES: u64 = 64 << 10;

/// Where a program can create files.
const SCRATCH: [&str; 2] = ["/tmp", "/dev/shm"];

/// Returns when `ancestor` and its descendants exceed a limit.
pub async fn watch(ancestor: u32, limits: SandboxLimits) -> ExitReason {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // Reading many processes takes a moment.
        let reading = tokio::task::spawn_blocking(move || exceeded(ancestor, limits));
        if let Ok(Some(reason)) = reading.await {
            return reason;
        }
    }
}

fn exceeded(ancestor: u32, limits: SandboxLimits) -> Option<ExitReason> {
    let family = family(ancestor);
    // Shared pages are counted once.
    let own_memory = family.iter().map(|pid| own(*pid)).sum::<u64>();
    if own_memory + in_sockets(&family) + in_pipes(&family) > limits.memory {
        return Some(ExitReason::TooMuchMemory);
    }
    let files: u64 = SCRATCH.iter().map(|scratch| files_in(scratch, &family)).sum();
    (files > limits.files).then_some(ExitReason::TooManyFiles)
}

/// A process and its descendants.
fn family(ancestor: u32) -> Vec<u32> {
    let mut family = vec![ancestor];
    let mut index = 0;
    while let Some(pid) = family.get(index).copied() {
        index += 1;
        if family.len() < MAX_PROCESSES {
            family.extend(children(pid));
        }
    }
    family
}

/// The files of a directory that is a file system of its own inside. All processes inside have the same.
#[cfg(target_os = "linux")]
fn files_in(scratch: &str, family: &[u32]) -> u64 {
    use rustix::fs::{Mode, OFlags, fstat, fstatvfs, open};

    // Both questions are about one opened directory: while bubblewrap replaces the root, the same path leads to the machine's own
    // directory for a moment.
    let opened =
        |path: &str| open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok();
    // The first processes of bubblewrap are outside, and see the directory of this machine.
    let outside = opened(scratch).and_then(|directory| Some(fstat(directory).ok()?.st_dev));
    let inside = |pid: &u32| {
        let directory = opened(&format!("/proc/{pid}/root{scratch}"))?;
        let device = fstat(&directory).ok()?.st_dev;
        let found = fstatvfs(&directory).ok().filter(|_| Some(device) != outside)?;
        Some(found.f_files.saturating_sub(found.f_ffree))
    };
    family.iter().find_map(inside).unwrap_or(0)
}

#[cfg(not(target_os = "linux"))]
fn files_in(_scratch: &str, _family: &[u32]) -> u64 {
    0
}

/// A process that has ended or cannot be read counts as nothing.
fn own(pid: u32) -> u64 {
    let summary = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let kilobytes = summary
        .lines()
        .find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1_024
}

/// What the sockets of the network namespace inside can hold, and what those of TCP do hold.
fn in_sockets(family: &[u32]) -> u64 {
    let namespace = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    let outside = namespace("self");
    let inside = family.iter().find(|pid| {
        let found = namespace(&pid.to_string());
        found.is_some() && found != outside
    });
    let Some(pid) = inside else { return 0 };
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
    let queued = queued_bytes(&read("tcp")) + queued_bytes(&read("tcp6"));
    sockets(&read("sockstat")) * SOCKET_BYTES + queued * TCP_OVERHEAD
}

/// The number of sockets of all kinds, from the kernel's file `sockstat`.
fn sockets(counts: &str) -> u64 {
    let used = counts.lines().find_map(|line| line.strip_prefix("sockets: used "));
    used.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// What the connections in a table of the kernel have sent without a confirmation, and received without a reader. The fifth column has
/// both numbers, as in `0000001A:00000000`.
fn queued_bytes(table: &str) -> u64 {
    let queues = table.lines().skip(1).filter_map(|line| line.split_whitespace().nth(4)?.split_once(':'));
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap_or(0);
    queues.map(|(sent, received)| number(sent) + number(received)).sum()
}

/// What the pipes that these processes have open can hold. A pipe that several have open counts once.
fn in_pipes(family: &[u32]) -> u64 {
    let (mut pipes, mut hidden) = (BTreeSet::new(), 0);
    // A thread can have open files of its own.
    for thread in family.iter().flat_map(|pid| threads(*pid)) {
        match std::fs::read_dir(thread.join("fd")) {
            Ok(files) => pipes.extend(files.flatten().filter_map(|file| pipe(&file.path()))),
            // A program can hide what it has open, and its threads need not share it. A pipe keeps what it holds while one of its
            // ends is open.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => hidden += OPEN_FILES,
            // It has ended.
            Err(_) => {}
        }
    }
    (pipes.len() as u64 + hidden) * PIPE_BYTES
}

/// What identifies a pipe, with or without a name; `None` for another file. Does not wait for a file system on another machine.
#[cfg(target_os = "linux")]
fn pipe(open_file: &Path) -> Option<(u32, u32, u64)> {
    use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};

    let about = statx(CWD, open_file, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE | StatxFlags::INO).ok()?;
    let is_pipe = FileType::from_raw_mode(about.stx_mode.into()) == FileType::Fifo;
    is_pipe.then_some((about.stx_dev_major, about.stx_dev_minor, about.stx_ino))
}

#[cfg(not(target_os = "linux"))]
fn pipe(_open_file: &Path) -> Option<(u32, u32, u64)> {
    None
}

/// The directories of the threads of a process.
fn threads(pid: u32) -> impl Iterator<Item = PathBuf> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads.map(|thread| thread.path())
}

/// Every thread has a list of its child processes.
fn children(pid: u32) -> Vec<u32> {
    let lists = threads(pid).filter_map(|thread| std::fs::read_to_string(thread.join("children")).ok());
    lists
        .flat_map(|list| {
            list.split(' ').filter_map(|number| number.trim().parse().ok()).collect::<Vec<u32>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_counted_and_so_is_what_tcp_holds() {
        let counts = "sockets: used 19\nTCP: inuse 2 orphan 0 tw 0 alloc 1 mem 91\nUDP: inuse 0 mem 0\n";
        assert_eq!(sockets(counts), 19);
        assert_eq!([sockets("sockets: used many\n"), sockets("")], [0, 0]);
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n   \
                     0: 0100007F:1F90 00000000:0000 0A 00000000:00000002 00:00000000 00000000     0\n   \
                     1: 0100007F:1F90 0100007F:8CA2 01 0000001A:00001000 00:00000000 00000000     0\n   \
                     2: cut\n";
        assert_eq!(queued_bytes(table), 2 + 0x1a + 0x1000);
        assert_eq!(queued_bytes(""), 0);
    }
}
