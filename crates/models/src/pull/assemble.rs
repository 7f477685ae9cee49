//! Makes a model from its published files: one unchanged file, or several that are converted.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};

use super::error::PullError;
use super::job::PullJob;
use super::options::DownloadStep;
use super::target::{self, Target};
use crate::catalogue::{BertPublication, PinnedModel, PublishedFile, PublishedForm};
use crate::convert::{BertFiles, ConvertError, bert_to_gguf};

/// The path of a file for [`make`]. `work` is a temporary directory.
pub(super) fn path_of(pinned: &PinnedModel, member: &PublishedFile, work: &Path, target: &Target) -> PathBuf {
    match pinned.packed {
        // The model itself, where the next pull continues.
        PublishedForm::Gguf(_) => target.part.clone(),
        PublishedForm::Bert(_) => work.join(member.file_name()),
    }
}

/// Completes the part of `target`. All files must be at their paths.
pub(super) fn make(
    job: &PullJob,
    work: &Path,
    pinned: &PinnedModel,
    target: &Target,
) -> Result<(), PullError> {
    match pinned.packed {
        PublishedForm::Gguf(_) => Ok(()),
        PublishedForm::Bert(members) => convert(job, work, members, target),
    }
}

fn convert(job: &PullJob, work: &Path, members: &BertPublication, target: &Target) -> Result<(), PullError> {
    let read = |member: &PublishedFile| {
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
        job.report(DownloadStep::Converting, done, Some(total));
        job.check_active()
    })
    .map_err(|error| match error {
        ConvertError::Write(error) => unwritable(error),
        other => PullError::NotAModel { file: target.name(), reason: other.to_string() },
    })?;
    part.sync_all().map_err(unwritable)?;
    // Equal sources give equal files, so a difference is an error of this machine.
    let found = target::checksum(job, &target.part, target.size)?;
    match target.sha256 {
        Some(expected) if expected != found => {
            fs::remove_file(&target.part).map_err(unwritable)?;
            Err(PullError::Checksum { file: target.name(), expected, found })
        }
        _ => Ok(()),
    }
}
