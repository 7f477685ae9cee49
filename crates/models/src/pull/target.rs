//! Writes, checks and renames the files of a pull.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::error::PullError;
use super::job::PullJob;
use super::options::DownloadStep;
use crate::checksum::{Checksum, Summing, read_in_blocks};
use crate::directory;
use crate::gguf::GgufHeader;
use crate::names::{self, Shard};
use crate::projector;

/// The expected content of a file.
pub(super) struct Content<'a> {
    pub size: u64,
    pub sha256: Option<Checksum>,
    /// Changes with the content.
    pub version: &'a str,
}

#[derive(Debug)]
pub(super) struct Target {
    /// Among the files of its model, from 1.
    pub number: u32,
    pub path: PathBuf,
    /// The name contains the version, so that it is not continued with other content.
    pub part: PathBuf,
    pub size: u64,
    pub sha256: Option<Checksum>,
}

impl Target {
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Whether this file already exists.
    fn exists(&self, job: &PullJob) -> Result<bool, PullError> {
        match fs::metadata(&self.path) {
            Ok(metadata) if metadata.is_file() && metadata.len() == self.size => {}
            _ => return Ok(false),
        }
        let Some(expected) = self.sha256 else {
            return Ok(true);
        };
        Ok(checksum(job, &self.path, self.size)? == expected)
    }
}

/// All files of a model on their way.
#[derive(Debug)]
pub(super) struct PullPlan {
    id: String,
    pub targets: Vec<Target>,
}

impl PullPlan {
    pub fn new<'a>(
        job: &PullJob,
        id: &str,
        contents: impl ExactSizeIterator<Item = Content<'a>>,
    ) -> Result<Self, PullError> {
        // Ids come from hubs and from people.
        if !names::is_safe(id) {
            return Err(PullError::BadName { name: id.to_owned() });
        }
        let dir = job.directory.dir();
        let count = u32::try_from(contents.len()).unwrap_or(u32::MAX);
        let target = |(number, content): (u32, Content<'_>)| {
            let name = Shard::file_name(id, number, count);
            Target {
                number,
                path: dir.join(&name),
                part: dir.join(format!("{name}.{}.part", tag(&content))),
                size: content.size,
                sha256: content.sha256,
            }
        };
        Ok(PullPlan { id: id.to_owned(), targets: (1..).zip(contents).map(target).collect() })
    }

    /// Adds the projector of the model, after its other files.
    pub fn with_projector(mut self, job: &PullJob, content: &Content<'_>) -> Self {
        let name = projector::file_name(&self.id);
        let dir = job.directory.dir();
        self.targets.push(Target {
            number: u32::try_from(self.targets.len()).unwrap_or(u32::MAX).saturating_add(1),
            path: dir.join(&name),
            part: dir.join(format!("{name}.{}.part", tag(content))),
            size: content.size,
            sha256: content.sha256,
        });
        self
    }

    /// What is left to fetch. A working model of this name is never overwritten.
    pub fn without_what_is_there(mut self, job: &PullJob) -> Result<Self, PullError> {
        let taken = || PullError::NameTaken { id: self.id.clone(), dir: job.directory.dir().to_owned() };
        let stored = job.directory.find(&self.id)?;
        let ours = |path: &PathBuf| self.targets.iter().any(|target| target.path == *path);
        if stored.as_ref().is_some_and(|model| !model.files.iter().all(ours)) {
            return Err(taken());
        }
        let is_broken = stored.is_some_and(|model| model.problem.is_some());
        let mut there = Vec::new();
        for target in &self.targets {
            let exists = target.exists(job)?;
            if !exists && !is_broken && target.path.exists() {
                return Err(taken());
            }
            there.push(exists);
        }
        self.forget_others(job)?;
        let mut there = there.into_iter();
        self.targets.retain(|_| !there.next().unwrap_or(false));
        Ok(self)
    }

    /// Removes parts of other versions, which nothing will ever complete.
    fn forget_others(&self, job: &PullJob) -> Result<(), PullError> {
        for path in job.directory.leftovers(&self.id)? {
            if self.targets.iter().all(|target| target.part != path) {
                fs::remove_file(&path).map_err(|error| PullError::io(&path, "removed", error))?;
            }
        }
        Ok(())
    }

    /// Makes complete parts a model.
    pub fn publish(self) -> Result<(), PullError> {
        for target in &self.targets {
            if let Err(reason) = check(&target.part, target.number) {
                // It is what the source has and is of no use, so there is nothing to resume.
                fs::remove_file(&target.part)
                    .map_err(|error| PullError::io(&target.part, "removed", error))?;
                return Err(PullError::NotAModel { file: target.name(), reason });
            }
        }
        // The first file makes it a model, so it comes last.
        for target in self.targets.iter().rev() {
            fs::rename(&target.part, &target.path)
                .map_err(|error| PullError::io(&target.path, "renamed", error))?;
            sync_directory_of(&target.path)?;
        }
        Ok(())
    }
}

/// The size of a valid part `number` of a model.
pub(super) fn check(path: &Path, number: u32) -> Result<u64, String> {
    let (header, size) = GgufHeader::read_file(path).map_err(|error| error.to_string())?;
    directory::problem_of(&header, size, number).map_or(Ok(size), Err)
}

/// The checksum of a file, with progress.
pub(super) fn checksum(job: &PullJob, path: &Path, size: u64) -> Result<Checksum, PullError> {
    let unreadable = |error| PullError::io(path, "read", error);
    let mut summing = Summing::default();
    read_in_blocks(File::open(path).map_err(unreadable)?, |block, done| {
        summing.add(block);
        job.report(DownloadStep::Checking, done, Some(size));
        job.check_active()
    })
    .map_err(unreadable)?;
    Ok(summing.finish())
}

/// A rename is durable after its directory is synced.
fn sync_directory_of(path: &Path) -> Result<(), PullError> {
    #[cfg(unix)]
    if let Some(dir) = path.parent() {
        let sync = || File::open(dir)?.sync_all();
        sync().map_err(|error| PullError::io(dir, "written", error))?;
    }
    Ok(())
}

/// A short tag for a content.
fn tag(content: &Content<'_>) -> String {
    let mut summing = Summing::default();
    summing.add(&content.size.to_le_bytes());
    summing.add(content.version.as_bytes());
    summing.finish().to_string().chars().take(12).collect()
}
