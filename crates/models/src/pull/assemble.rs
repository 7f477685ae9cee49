//! A model out of the files it is published in: one that is kept as it is, or several that are made into one.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};

use super::Site;
use super::error::PullError;
use super::options::Step;
use super::target::{self, Target};
use crate::catalogue::{BertMembers, Member, Packed, Pinned};
use crate::convert::{BertFiles, ConvertError, bert_to_gguf};

/// Where a file has to be for [`make`]. `work` is a directory for what lies in between.
pub(super) fn place_of(pinned: &Pinned, member: &Member, work: &Path, target: &Target) -> PathBuf {
    match pinned.packed {
        // The model itself: where the next pull finds what this one has of it.
        Packed::Gguf(_) => target.part.clone(),
        Packed::Bert(_) => work.join(member.file_name()),
    }
}

/// Completes the part of `target`, with every file in its place.
pub(super) fn make(site: &Site, work: &Path, pinned: &Pinned, target: &Target) -> Result<(), PullError> {
    match pinned.packed {
        Packed::Gguf(_) => Ok(()),
        Packed::Bert(members) => convert(site, work, members, target),
    }
}

fn convert(site: &Site, work: &Path, members: &BertMembers, target: &Target) -> Result<(), PullError> {
    let read = |member: &Member| {
        let path = work.join(member.file_name());
        fs::read(&path).map_err(|error| PullError::io(&path, "read", error))
    };
    let (vocabulary, config) = (read(&members.vocabulary)?, read(&members.config)?);
    let weights = work.join(members.weights.file_name());
    let input = File::open(&weights).map_err(|error| PullError::io(&weights, "read", error))?;

    let unwritable = |error| PullError::io(&target.part, "written", error);
    let part = File::create(&target.part).map_err(unwritable)?;
    let files = BertFiles {
        name: members.name,
        config: &config,
        vocabulary: &vocabulary,
        weights: BufReader::new(input),
    };
    bert_to_gguf(files, BufWriter::new(&part), |done, total| {
        site.report(Step::Converting, done, Some(total));
        site.go_on()
    })
    .map_err(|error| match error {
        ConvertError::Write(error) => unwritable(error),
        other => PullError::NotAModel { file: target.name(), reason: other.to_string() },
    })?;
    part.sync_all().map_err(unwritable)?;
    // The same from the same, or something is amiss on this machine.
    let found = target::checksum(site, &target.part, target.size)?;
    match target.sha256 {
        Some(expected) if expected != found => {
            fs::remove_file(&target.part).map_err(unwritable)?;
            Err(PullError::Checksum { file: target.name(), expected, found })
        }
        _ => Ok(()),
    }
}
