//! Which mounts are allowed: what the allowlist contains once every link on both sides is resolved.

use std::path::{Component, Path, PathBuf};

use super::error::SandboxError;
use super::job::Mount;

const MAX_MOUNTS: usize = 16;

/// Where mounts may appear. Anywhere else they could stand in for a part of the system.
const PLACES: [&str; 3] = ["work", "data", "mnt"];

/// A mount that passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// Absolute, without links and without `..`.
    pub host: PathBuf,
    pub inside: PathBuf,
    /// What the check looked at, as the sandbox will see it again (`device:inode`). The path may be replaced in between.
    pub identity: String,
}

/// Checks all mounts of a job; one that does not pass fails them all.
pub fn check(mounts: &[Mount], allowlist: &[PathBuf]) -> Result<Vec<Allowed>, SandboxError> {
    if mounts.len() > MAX_MOUNTS {
        return Err(SandboxError::BadJob("a program can have at most 16 mounts"));
    }
    // A directory that is not there allows nothing.
    let allowlist: Vec<PathBuf> = allowlist.iter().filter_map(|entry| entry.canonicalize().ok()).collect();
    mounts.iter().map(|mount| check_one(mount, &allowlist)).collect()
}

fn check_one(mount: &Mount, allowlist: &[PathBuf]) -> Result<Allowed, SandboxError> {
    let refused =
        |reason: &str| SandboxError::MountNotAllowed { host: mount.host.clone(), reason: reason.to_owned() };
    if !mount.host.is_absolute() {
        return Err(refused("its path must be absolute"));
    }
    if !is_place(&mount.inside) {
        return Err(refused("it can only appear at /work, /data, /mnt or below"));
    }
    // That a path outside is missing is nobody's business either, so both have the same words.
    let outside = "it is not in the allowlist ([sandbox] allowlist)";
    let host = mount.host.canonicalize().map_err(|_| refused(outside))?;
    if !allowlist.iter().any(|entry| host.starts_with(entry)) {
        return Err(refused(outside));
    }
    let metadata = host.symlink_metadata().map_err(|_| refused(outside))?;
    if !metadata.is_dir() && !metadata.is_file() {
        return Err(refused("only files and directories can be mounted"));
    }
    Ok(Allowed { host, inside: mount.inside.clone(), identity: identity(&metadata) })
}

fn is_place(inside: &Path) -> bool {
    let mut components = inside.components();
    let starts_well = components.next() == Some(Component::RootDir)
        && matches!(components.next(), Some(Component::Normal(name)) if PLACES.iter().any(|place| name == *place));
    starts_well && components.all(|component| matches!(component, Component::Normal(_)))
}

#[cfg(unix)]
fn identity(metadata: &std::fs::Metadata) -> String {
    use std::os::unix::fs::MetadataExt;
    format!("{}:{}", metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn identity(_metadata: &std::fs::Metadata) -> String {
    String::new()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn paths(root: &Path) -> (PathBuf, PathBuf) {
        let (allowed, outside) = (root.join("allowed"), root.join("outside"));
        std::fs::create_dir_all(allowed.join("deep")).unwrap();
        std::fs::create_dir_all(outside.join("deep")).unwrap();
        std::os::unix::fs::symlink(&outside, allowed.join("link")).unwrap();
        std::os::unix::fs::symlink(&allowed, root.join("alias")).unwrap();
        (allowed, outside)
    }

    fn mount(host: impl Into<PathBuf>) -> Mount {
        Mount { host: host.into(), inside: "/work".into() }
    }

    #[test]
    fn only_what_the_allowlist_contains_may_be_mounted() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        let (allowed, outside) = paths(&root);
        let allowlist = [allowed.clone(), root.join("not there")];
        for good in
            [allowed.clone(), allowed.join("deep"), root.join("alias/deep"), outside.join("../allowed")]
        {
            let checked = check(&[mount(&good)], &allowlist).unwrap();
            assert!(checked[0].host.starts_with(&allowed), "{}", good.display());
        }
        for bad in [
            outside,
            allowed.join("../outside"),
            allowed.join("link"),
            allowed.join("link/deep"),
            allowed.join("missing"),
            root.join("allowed-not"),
            root.clone(),
            "/".into(),
            "/dev/null".into(),
            "relative".into(),
        ] {
            let refused = check(&[mount(allowed.clone()), mount(&bad)], &allowlist);
            assert!(matches!(refused, Err(SandboxError::MountNotAllowed { .. })), "{}", bad.display());
        }
        assert!(check(&[mount(&allowed)], &[]).is_err());
    }

    #[test]
    fn an_allowlist_entry_that_is_a_link_means_what_it_points_to() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        let (allowed, outside) = paths(&root);
        assert!(check(&[mount(allowed.join("deep"))], &[root.join("alias")]).is_ok());
        assert!(check(&[mount(outside)], &[root.join("alias")]).is_err());
    }

    #[test]
    fn a_mount_cannot_stand_in_for_a_part_of_the_system() {
        let home = tempfile::tempdir().unwrap();
        let allowlist = [home.path().to_owned()];
        let at = |inside: &str| {
            check(&[Mount { host: home.path().to_owned(), inside: inside.into() }], &allowlist).is_ok()
        };
        for good in ["/work", "/work/a/b", "/data/x", "/mnt/y"] {
            assert!(at(good), "{good}");
        }
        for bad in ["/", "/usr", "/etc", "/tmp/x", "/work/../usr", "work", "", "/proc/1", "/workshop"] {
            assert!(!at(bad), "{bad}");
        }
    }
}
