//! Whose container is it? Its name tells the process that started it, and the world in which that process has its number.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A process that names containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerOwner {
    /// Stands for this boot of this machine and this process namespace. Elsewhere the same number is somebody else, and
    /// several machines and containers may share a daemon. `None` where that cannot be told.
    world: Option<String>,
    pid: u32,
}

impl ContainerOwner {
    pub fn this_process() -> Self {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        let namespace = std::fs::read_link("/proc/self/ns/pid").ok();
        let world = boot.zip(namespace).map(|parts| {
            let mut hasher = DefaultHasher::new();
            parts.hash(&mut hasher);
            format!("{:08x}", hasher.finish() & 0xffff_ffff)
        });
        ContainerOwner { world, pid: std::process::id() }
    }

    /// A name that no other container has.
    pub fn new_name(&self) -> String {
        let world = self.world.as_deref().unwrap_or("elsewhere");
        format!("hob-{world}-{}-{:012x}", self.pid, fastrand::u64(..) & 0xffff_ffff_ffff)
    }

    /// For the list of containers of this world.
    pub fn filter(&self) -> Option<String> {
        self.world.as_ref().map(|world| format!("name=hob-{world}-"))
    }

    /// Whether a container is of this world and its owner is no more.
    pub fn is_orphan(&self, name: &str) -> bool {
        self.pid_of(name).is_some_and(|pid| !is_alive(pid))
    }

    fn pid_of(&self, name: &str) -> Option<u32> {
        let rest = name.strip_prefix("hob-")?.strip_prefix(self.world.as_deref()?)?.strip_prefix('-')?;
        rest.split_once('-')?.0.parse().ok()
    }
}

#[cfg(unix)]
fn is_alive(pid: u32) -> bool {
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};

    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // Whatever else the answer is, somebody of that number is there.
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
        let elsewhere = ContainerOwner { world: Some("00000000".into()), ..dead };
        for foreign in [elsewhere.new_name().as_str(), "postgres", "hob-", "hob-x", ""] {
            assert!(!owner.is_orphan(foreign), "{foreign}");
        }
    }
}
