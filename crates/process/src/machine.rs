//! The processor and the memory of this machine, within the limits of this process. Linux reports them in files, macOS by `sysctl`.

use std::collections::BTreeSet;
use std::fs;

use crate::environment::std_command;

/// The most memory that a container may use, in the two versions of control groups. A container sees its own group as the root.
const MEMORY_LIMITS: [&str; 2] = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];

/// What this machine computes with, as far as the system reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineResources {
    /// The manufacturer's name for the processor.
    pub processor: Option<String>,
    /// Cores, however many threads each of them runs.
    pub cores: Option<usize>,
    /// Bytes of memory; in a container, those that it may use.
    pub memory: Option<u64>,
}

/// Reads the processor and the memory. Takes milliseconds, and blocks.
pub fn machine_resources() -> MachineResources {
    if cfg!(target_os = "macos") {
        let keys = ["machdep.cpu.brand_string", "hw.physicalcpu", "hw.memsize"];
        let output = std_command("/usr/sbin/sysctl", &[]).args(keys).output();
        return from_sysctl(&output.map(|output| output.stdout).unwrap_or_default());
    }
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = text("/proc/cpuinfo");
    let limit = MEMORY_LIMITS.iter().find_map(|path| memory_limit(&text(path)));
    MachineResources {
        processor: processor(&cpuinfo),
        cores: cores(&cpuinfo),
        memory: total_memory(&text("/proc/meminfo"))
            .map(|total| limit.map_or(total, |limit| limit.min(total))),
    }
}

fn from_sysctl(output: &[u8]) -> MachineResources {
    let output = String::from_utf8_lossy(output);
    MachineResources {
        processor: value(&output, "machdep.cpu.brand_string").map(str::to_owned),
        cores: value(&output, "hw.physicalcpu").and_then(|cores| cores.parse().ok()),
        memory: value(&output, "hw.memsize").and_then(|bytes| bytes.parse().ok()),
    }
}

/// The value after a name and a colon.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = |line: &'a str| line.split_once(':').filter(|(key, _)| key.trim() == name);
    text.lines().find_map(line).map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
}

/// The name of the first processor. Boards name themselves at the end instead.
fn processor(cpuinfo: &str) -> Option<String> {
    ["model name", "Model"].iter().find_map(|name| value(cpuinfo, name)).map(str::to_owned)
}

/// The list has an entry for each thread.
fn cores(cpuinfo: &str) -> Option<usize> {
    let core = |entry| match (value(entry, "physical id"), value(entry, "core id")) {
        (Some(package), Some(core)) => Some((package, core)),
        // Without these, no core runs two threads.
        _ => Some(("", value(entry, "processor")?)),
    };
    let cores: BTreeSet<(&str, &str)> = cpuinfo.split("\n\n").filter_map(core).collect();
    Some(cores.len()).filter(|cores| *cores > 0)
}

fn total_memory(meminfo: &str) -> Option<u64> {
    let kibibytes: u64 = value(meminfo, "MemTotal")?.strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// `max` is no limit.
fn memory_limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_one_core_are_one_core() {
        let entry = |thread, package, core| {
            format!(
                "processor\t: {thread}\nmodel name\t: AMD EPYC 7B12\nphysical id\t: {package}\ncore id\t\t: {core}\n\n"
            )
        };
        let threads = [(0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 0, 0), (4, 0, 1), (5, 1, 0)];
        let cpuinfo: String =
            threads.into_iter().map(|(thread, package, core)| entry(thread, package, core)).collect();
        assert_eq!((processor(&cpuinfo).as_deref(), cores(&cpuinfo)), (Some("AMD EPYC 7B12"), Some(3)));
    }

    #[test]
    fn processors_that_name_no_cores_are_counted() {
        let board = "processor\t: 0\nCPU part\t: 0xd08\n\nprocessor\t: 1\nCPU part\t: 0xd08\n\n\
                     Revision\t: c03112\nModel\t\t: Raspberry Pi 4 Model B Rev 1.2\n";
        assert_eq!(
            (processor(board).as_deref(), cores(board)),
            (Some("Raspberry Pi 4 Model B Rev 1.2"), Some(2))
        );
        assert_eq!((processor(""), cores("")), (None, None));
    }

    #[test]
    fn memory_is_in_bytes_and_has_a_limit_or_none() {
        let meminfo = "MemTotal:       16384000 kB\nMemFree:         1024000 kB\n";
        assert_eq!(total_memory(meminfo), Some(16_777_216_000));
        assert_eq!((total_memory(""), total_memory("MemTotal: many kB")), (None, None));
        assert_eq!((memory_limit("2147483648\n"), memory_limit("max\n")), (Some(2_147_483_648), None));
        assert_eq!((memory_limit("0\n"), memory_limit("")), (None, None));
    }

    #[test]
    fn the_output_of_sysctl_is_read() {
        let output = b"machdep.cpu.brand_string: Apple M2 Max\nhw.physicalcpu: 12\nhw.memsize: 68719476736\n";
        let expected = MachineResources {
            processor: Some("Apple M2 Max".to_owned()),
            cores: Some(12),
            memory: Some(68_719_476_736),
        };
        assert_eq!((from_sysctl(output), from_sysctl(b"")), (expected, MachineResources::default()));
    }

    #[test]
    fn this_machine_has_a_core_and_memory() {
        let found = machine_resources();
        assert!(found.cores.is_some_and(|cores| cores > 0), "{found:?}");
        assert!(found.memory.is_some_and(|bytes| bytes > 64 << 20), "{found:?}");
    }
}
