//! Disks that take no more data.

use std::io;
use std::path::Path;

/// Why a disk takes no data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFault {
    /// No space is left, or the user's share of it is used.
    Full,
    /// The file system is mounted read-only.
    ReadOnly,
}

impl DiskFault {
    /// The fault that an error of a file reports.
    pub fn of_io(error: &io::Error) -> Option<Self> {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(DiskFault::Full),
            io::ErrorKind::ReadOnlyFilesystem => Some(DiskFault::ReadOnly),
            _ => None,
        }
    }

    /// The fault that the disk of a file has now. SQLite has one error for many failed calls and does not tell which one it was.
    #[cfg(unix)]
    pub(crate) fn of_disk(file: &Path) -> Option<Self> {
        let disk = rustix::fs::statvfs(file.parent()?).ok()?;
        if disk.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
            return Some(DiskFault::ReadOnly);
        }
        let is_counted = disk.f_blocks > 0;
        let has_no_space = is_counted && disk.f_bavail.saturating_mul(disk.f_frsize) < SMALLEST_SPACE;
        let has_no_names = disk.f_files > 0 && disk.f_favail == 0;
        (has_no_space || has_no_names).then_some(DiskFault::Full)
    }

    #[cfg(not(unix))]
    pub(crate) fn of_disk(_file: &Path) -> Option<Self> {
        None
    }
}

/// What SQLite needs for its smallest change, which begins a log and the index of it.
#[cfg(unix)]
const SMALLEST_SPACE: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_files_tell_full_disks_from_read_only_ones() {
        let of = |kind: io::ErrorKind| DiskFault::of_io(&io::Error::from(kind));
        assert_eq!(of(io::ErrorKind::StorageFull), Some(DiskFault::Full));
        assert_eq!(of(io::ErrorKind::QuotaExceeded), Some(DiskFault::Full));
        assert_eq!(of(io::ErrorKind::ReadOnlyFilesystem), Some(DiskFault::ReadOnly));
        assert_eq!(of(io::ErrorKind::PermissionDenied), None);
    }

    #[test]
    fn a_disk_that_works_has_no_fault() {
        let directory = tempfile::tempdir().expect("a directory");
        assert_eq!(DiskFault::of_disk(&directory.path().join("hob.db")), None);
        assert_eq!(DiskFault::of_disk(&directory.path().join("nowhere/hob.db")), None);
        assert_eq!(DiskFault::of_disk(Path::new(":memory:")), None);
    }
}
