//! Checks mounts against the allowlist, after resolving every link on both sides.

use std::path::{Component, Path, PathBuf};

use crate::error::SandboxError;
use crate::job::Mount;

pub const MAX_MOUNTS: usize = 16;

/// The directories for mounts. Elsewhere a mount could replace a part of the system.
const MOUNT_POINTS: [&str; 3] = ["work", "data", "mnt"];

/// System directories, where nothing may be mounted.
const SYSTEM: [&str; 13] =
    ["bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys", "usr"];

/// The existing entries of the allowlist as mounts: each at its own path, and system directories below `/mnt`.
pub fn of_allowlist(allowlist: &[PathBuf]) -> Vec<Mount> {
    let there = allowlist.iter().filter_map(|entry| Some((entry, entry.canonicalize().ok()?)));
    there
        .filter(|(_, host)| is_readable(host))
        .map(|(entry, host)| {
            let inside = match can_keep_path(entry) {
                true => entry.clone(),
                false => Path::new("/mnt").join(host.strip_prefix("/").unwrap_or(&host)),
            };
            Mount { host, inside }
        })
        .take(MAX_MOUNTS)
        .collect()
}

/// Whether the sandbox can read it. If Hob runs as root, the sandbox runs as nobody.
#[cfg(unix)]
fn is_readable(host: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let has = |path: &Path, bits: u32| path.metadata().is_ok_and(|metadata| metadata.mode() & bits == bits);
    let for_nobody = || has(host, 0o004) && host.ancestors().all(|part| !part.is_dir() || has(part, 0o001));
    !rustix::process::geteuid().is_root() || for_nobody()
}

#[cfg(not(unix))]
fn is_readable(_host: &Path) -> bool {
    true
}

/// A checked mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedMount {
    /// Absolute, without links and without `..`.
    pub host: PathBuf,
    pub inside: PathBuf,
    /// The `device:inode` at the time of the check. The path may be replaced later.
    pub identity: String,
}

/// Checks all mounts of a job.
pub fn check(mounts: &[Mount], allowlist: &[PathBuf]) -> Result<Vec<AllowedMount>, SandboxError> {
    if mounts.len() > MAX_MOUNTS {
        return Err(SandboxError::BadJob("a program can have at most 16 mounts"));
    }
    // Entries that do not exist allow nothing.
    let allowlist: Vec<(&Path, PathBuf)> =
        allowlist.iter().filter_map(|entry| Some((entry.as_path(), entry.canonicalize().ok()?))).collect();
    mounts.iter().map(|mount| check_one(mount, &allowlist)).collect()
}

/// `allowlist` has each entry as written and resolved.
fn check_one(mount: &Mount, allowlist: &[(&Path, PathBuf)]) -> Result<AllowedMount, SandboxError> {
    let refused =
        |reason: &str| SandboxError::MountNotAllowed { host: mount.host.clone(), reason: reason.to_owned() };
    if !mount.host.is_absolute() {
        return Err(refused("its path must be absolute"));
    }
    let is_entry = allowlist.iter().any(|(entry, _)| *entry == mount.inside);
    let is_valid = is_mount_point(&mount.inside) || (is_entry && can_keep_path(&mount.inside));
    if !is_valid {
        return Err(refused("it can only appear at /work, /data, /mnt or below"));
    }
    // The same text for a missing path, so that it does not reveal which paths exist.
    let outside = "it is not in the allowlist ([sandbox] allowlist)";
    let host = mount.host.canonicalize().map_err(|_| refused(outside))?;
    if !allowlist.iter().any(|(_, entry)| host.starts_with(entry)) {
        return Err(refused(outside));
    }
    let metadata = host.symlink_metadata().map_err(|_| refused(outside))?;
    if !metadata.is_dir() && !metadata.is_file() {
        return Err(refused("only files and directories can be mounted"));
    }
    Ok(AllowedMount { host, inside: mount.inside.clone(), identity: identity(&metadata) })
}

fn is_mount_point(inside: &Path) -> bool {
    let mut components = inside.components();
    let has_valid_start = components.next() == Some(Component::RootDir)
        && matches!(components.next(), Some(Component::Normal(name)) if MOUNT_POINTS.iter().any(|known| name == *known));
    has_valid_start && components.all(|component| matches!(component, Component::Normal(_)))
}

/// Whether a path can be the same inside the sandbox.
fn can_keep_path(path: &Path) -> bool {
    let mut components = path.components();
    let has_valid_start = components.next() == Some(Component::RootDir)
        && matches!(components.next(), Some(Component::Normal(name)) if SYSTEM.iter().all(|part| name != *part));
    has_valid_start
        && path != Path::new("/tmp")
        && components.all(|component| matches!(component, Component::Normal(_)))
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
    fn an_allowlist_entry_is_mounted_at_its_own_path() {
        // Not in a directory of the system, such as /dev/shm.
        let home = tempfile::tempdir_in("/tmp").unwrap();
        let root = home.path().canonicalize().unwrap();
        let (allowed, outside) = paths(&root);
        for path in [&root, &allowed, &outside] {
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        let allowlist = [allowed.clone(), root.join("alias"), "/etc".into(), root.join("not there")];
        let mounts = of_allowlist(&allowlist);
        let expected = [
            Mount { host: allowed.clone(), inside: allowed.clone() },
            Mount { host: allowed.clone(), inside: root.join("alias") },
            Mount { host: "/etc".into(), inside: "/mnt/etc".into() },
        ];
        assert_eq!(mounts, expected);
        assert!(check(&mounts, &allowlist).is_ok());
        // Nothing else may stand in for another place.
        for inside in [outside, "/etc".into(), "/tmp".into(), "/".into(), "/usr/bin".into()] {
            let elsewhere = Mount { host: allowed.clone(), inside };
            assert!(check(&[elsewhere], &allowlist).is_err());
        }
    }

    #[test]
    fn an_allowlist_entry_that_is_a_link_allows_its_target() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        let (allowed, outside) = paths(&root);
        assert!(check(&[mount(allowed.join("deep"))], &[root.join("alias")]).is_ok());
        assert!(check(&[mount(outside)], &[root.join("alias")]).is_err());
    }

    #[test]
    fn a_mount_cannot_replace_a_part_of_the_system() {
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
