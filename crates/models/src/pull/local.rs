//! Adds a model file of this machine: as a link, or as a copy if that is not possible.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::PullError;
use super::job::PullJob;
use super::options::DownloadStep;
use super::target::{self, Content, PullPlan, Target};
use crate::checksum::read_in_blocks;
use crate::directory::StoredModel;
use crate::gguf::GgufHeader;
use crate::names::{self, Shard};
use crate::projector;

/// A model: its name, and its files in order with their sizes.
struct Found {
    id: String,
    files: Vec<(PathBuf, u64)>,
    projector: Option<(PathBuf, u64)>,
}

pub(super) async fn pull(job: &PullJob, path: &Path) -> Result<StoredModel, PullError> {
    let path = path.to_owned();
    let found = job.blocking(move |_| find(&path)).await?;
    let id = found.id.clone();
    let plan = plan(job, &found)?;
    let job = job.locked(&id).await?;
    job.blocking(move |job| take(job, &found, plan)).await?;
    job.arrived(&id).await
}

/// The complete model of a path, which may be one of several parts.
fn find(path: &Path) -> Result<Found, PullError> {
    let path = fs::canonicalize(path).map_err(|error| PullError::io(path, "found", error))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let Some(shard) = Shard::parse(&stem) else {
        let size = check(&path, 1)?;
        let projector = projector_beside(&path, &stem);
        return Ok(Found { id: stem, files: vec![(path, size)], projector });
    };
    let mut files = Vec::new();
    for number in 1..=shard.count {
        let part = path.with_file_name(Shard::file_name(&shard.stem, number, shard.count));
        let size = check(&part, number)?;
        files.push((part, size));
    }
    let projector = projector_beside(&path, &shard.stem);
    Ok(Found { id: shard.stem, files, projector })
}

/// The projector of the model `id` in the same directory.
fn projector_beside(path: &Path, id: &str) -> Option<(PathBuf, u64)> {
    let files = fs::read_dir(path.parent()?).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let fitting = files.filter(|file| names::is_model_file(file)).filter_map(|file| {
        let fit = projector::fits(&file.file_stem()?.to_string_lossy(), id)?;
        let (header, size) = GgufHeader::read_file(&file).ok()?;
        let is_complete = header.projector.is_some() && header.missing_bytes(size).is_none();
        is_complete.then_some((fit, file, size))
    });
    let (_, file, size) = fitting.max_by(|one, other| (one.0, &other.1).cmp(&(other.0, &one.1)))?;
    Some((file, size))
}

fn check(path: &Path, number: u32) -> Result<u64, PullError> {
    target::check(path, number)
        .map_err(|reason| PullError::NotAModel { file: path.display().to_string(), reason })
}

fn plan(job: &PullJob, found: &Found) -> Result<PullPlan, PullError> {
    let content = |size: u64| Content { size, sha256: None, version: "local" };
    let plan = PullPlan::new(job, &found.id, found.files.iter().map(|(_, size)| content(*size)))?;
    Ok(match &found.projector {
        Some((_, size)) => plan.with_projector(job, &content(*size)),
        None => plan,
    })
}

fn take(job: &PullJob, found: &Found, mut plan: PullPlan) -> Result<(), PullError> {
    // Comparing needs to read both files, so it is done only if the target exists.
    let sources: Vec<&(PathBuf, u64)> = found.files.iter().chain(&found.projector).collect();
    for (target, (source, size)) in plan.targets.iter_mut().zip(&sources) {
        if target.path.exists() {
            target.sha256 = Some(target::checksum(job, source, *size)?);
        }
    }
    let plan = plan.without_what_is_there(job)?;
    for target in &plan.targets {
        let (source, _) = sources[target.number as usize - 1];
        link_or_copy(job, source, target)?;
    }
    plan.publish()
}

fn link_or_copy(job: &PullJob, source: &Path, target: &Target) -> Result<(), PullError> {
    let failed = |error| PullError::io(&target.part, "written", error);
    match fs::remove_file(&target.part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    if fs::hard_link(source, &target.part).is_ok() {
        return Ok(());
    }
    // Another disk, or a file system without links.
    let mut to = File::create(&target.part).map_err(failed)?;
    let from = File::open(source).map_err(|error| PullError::io(source, "read", error))?;
    read_in_blocks(from, |block, done| {
        job.report(DownloadStep::Copying, done, Some(target.size));
        job.check_active()?;
        to.write_all(block)
    })
    .map_err(failed)?;
    to.sync_all().map_err(failed)
}
