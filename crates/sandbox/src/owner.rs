//! The owner of a container. Its name contains the process that started it, and the system of that process.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A process that starts containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerOwner {
    /// Identifies this boot of this machine and this process namespace, because several machines and containers may share a
    /// daemon. `None` if it is unknown.
    system: Option<String>,
    pid: u32,
}

impl ContainerOwner {
    pub fn this_process() -> Self {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        let namespace = std::fs::read_link("/proc/self/ns/pid").ok();
        let system = boot.zip(namespace).map(|parts| {
            let mut hasher = DefaultHasher::new();
            parts.hash(&mut hasher);
            format!("{:08x}", hasher.finish() & 0xffff_ffff)
        });
        ContainerOwner { system, pid: std::process::id() }
    }

    /// A unique name.
    pub fn new_name(&self) -> String {
        let system = self.system.as_deref().unwrap_or("elsewhere");
        format!("hob-{system}-{}-{:012x}", self.pid, fastrand::u64(..) & 0xffff_ffff_ffff)
    }

    /// The filter for containers of this system.
    pub fn filter(&self) -> Option<String> {
        self.system.as_ref().map(|system| format!("name=hob-{system}-"))
    }

    /// Whether a container belongs to this system and its owner has ended.
    pub fn is_orphan(&self, name: &str) -> bool {
        self.pid_of(name).is_some_and(|pid| !is_alive(pid))
    }

    fn pid_of(&self, name: &str) -> Option<u32> {
        let rest = name.strip_prefix("hob-")?.strip_prefix(self.system.as_deref()?)?.strip_prefix('-')?;
        rest.split_once('-')?.0.parse().ok()
    }
}

#[cfg(unix)]
fn is_alive(pid: u32) -> bool {
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};

    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // Any other error means that the process exists.
    pid.is_none_or(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

#[cfg(not(unix))]
fn is_alive(_pid: u32) -> bool {
    true
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn only_containers_of_dead_owners_on_this_system_are_orphans() {
        let owner = ContainerOwner::this_process();
        let mine = owner.new_name();
        assert_ne!(mine, owner.new_name());
        assert!(mine.starts_with(owner.filter().unwrap().strip_prefix("name=").unwrap()));
        assert!(!owner.is_orphan(&mine));
        // Larger than any process number of Linux.
        let dead = ContainerOwner { pid: 2_000_000_000, ..owner.clone() };
        assert!(owner.is_orphan(&dead.new_name()));
        let elsewhere = ContainerOwner { system: Some("00000000".into()), ..dead };
        for foreign in [elsewhere.new_name().as_str(), "postgres", "hob-", "hob-x", ""] {
            assert!(!owner.is_orphan(foreign), "{foreign}");
        }
    }
}
