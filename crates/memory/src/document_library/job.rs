//! The jobs of the library: what is being indexed, what was lately, and stopping them. No input or output.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::SystemTime;

use hob_core::time::Moment;
use hob_core::{CollectionName, CollectionSet};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::index::IndexProgress;

/// Jobs that wait or run.
const MAX_UNFINISHED: usize = 64;

/// Finished jobs that are listed.
const MAX_FINISHED: usize = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum JobKind {
    /// A file that was uploaded.
    Upload,
    /// A folder that was added, or is indexed again.
    Folder,
    /// The changes of a watched folder.
    Watch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    Waiting,
    Running,
    Done,
    Failed,
}

/// What is indexed, and how far it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IndexJob {
    pub id: u64,
    pub kind: JobKind,
    pub collection: CollectionName,
    pub path: PathBuf,
    pub state: JobState,
    /// Checked files.
    pub files: u64,
    /// All files, when they are counted.
    pub total: Option<u64>,
    /// New and changed files.
    pub indexed: u64,
    /// Files that are not text, and that could not be read.
    pub skipped: u64,
    /// Deleted files.
    pub removed: u64,
    /// Missing vectors, done and in total.
    pub vectors: u64,
    pub vectors_total: u64,
    /// Why it failed, or why an uploaded file was skipped.
    pub fault: Option<String>,
    #[serde(rename = "added_at")]
    pub added: Moment,
    #[serde(rename = "finished_at")]
    pub finished: Option<Moment>,
}

impl IndexJob {
    fn is_finished(&self) -> bool {
        matches!(self.state, JobState::Done | JobState::Failed)
    }

    /// Whether a finished job is worth listing: a look at a watched folder usually finds nothing.
    fn is_news(&self) -> bool {
        self.kind != JobKind::Watch || self.fault.is_some() || self.indexed + self.removed > 0
    }

    /// Takes progress in.
    pub(super) fn advance(&mut self, progress: &IndexProgress<'_>) {
        match progress {
            IndexProgress::Files(report) => {
                self.files = report.files;
                self.indexed = report.indexed + report.added;
                self.skipped = report.skipped + report.failed;
                self.removed = report.removed;
            }
            IndexProgress::Skipped(file) | IndexProgress::Warning(file) => {
                if self.kind == JobKind::Upload {
                    self.fault = Some(file.reason.clone());
                }
            }
            IndexProgress::Total { files, is_final } => self.total = is_final.then_some(*files),
            IndexProgress::Vectors { done, of } => (self.vectors, self.vectors_total) = (*done, *of),
        }
    }
}

/// Too many jobs wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooManyJobs;

/// A job, and how it is stopped.
#[derive(Debug)]
struct ListedJob {
    job: IndexJob,
    stop: CancellationToken,
    /// Cancelled when the job is finished.
    ended: CancellationToken,
    /// Whether its folder, collection or document was removed. Then nothing of it is listed after its end.
    is_unwanted: bool,
}

/// All jobs, oldest first.
#[derive(Debug, Default)]
pub(super) struct JobList {
    jobs: VecDeque<ListedJob>,
    last: u64,
    /// Stops all jobs.
    stop: CancellationToken,
}

impl JobList {
    pub(super) fn stopped_by(stop: CancellationToken) -> Self {
        JobList { stop, ..JobList::default() }
    }

    pub(super) fn add(
        &mut self,
        kind: JobKind,
        collection: CollectionName,
        path: PathBuf,
        now: SystemTime,
    ) -> Result<IndexJob, TooManyJobs> {
        if self.jobs.iter().filter(|listed| !listed.job.is_finished()).count() >= MAX_UNFINISHED {
            return Err(TooManyJobs);
        }
        self.last += 1;
        let job = IndexJob {
            id: self.last,
            kind,
            collection,
            path,
            state: JobState::Waiting,
            files: 0,
            total: None,
            indexed: 0,
            skipped: 0,
            removed: 0,
            vectors: 0,
            vectors_total: 0,
            fault: None,
            added: Moment::of(now),
            finished: None,
        };
        self.jobs.push_back(ListedJob {
            job: job.clone(),
            stop: self.stop.child_token(),
            ended: CancellationToken::new(),
            is_unwanted: false,
        });
        Ok(job)
    }

    pub(super) fn change(&mut self, id: u64, change: impl FnOnce(&mut IndexJob)) {
        if let Some(listed) = self.jobs.iter_mut().find(|listed| listed.job.id == id) {
            change(&mut listed.job);
        }
    }

    /// What stops a job. An unknown one stops with the library.
    pub(super) fn stop_of(&self, id: u64) -> CancellationToken {
        let found = self.jobs.iter().find(|listed| listed.job.id == id);
        found.map_or_else(|| self.stop.clone(), |listed| listed.stop.clone())
    }

    /// Stops unfinished jobs, because what they add is being removed. Returns what is cancelled at the end of each.
    pub(super) fn cancel(&mut self, is_meant: impl Fn(&IndexJob) -> bool) -> Vec<CancellationToken> {
        let meant = self.jobs.iter_mut().filter(|listed| !listed.job.is_finished() && is_meant(&listed.job));
        meant
            .map(|listed| {
                listed.is_unwanted = true;
                listed.stop.cancel();
                listed.ended.clone()
            })
            .collect()
    }

    /// Ends a job, and forgets old ones. Returns whether the end is worth showing.
    pub(super) fn finish(&mut self, id: u64, fault: Option<String>, now: SystemTime) -> bool {
        let Some(listed) = self.jobs.iter_mut().find(|listed| listed.job.id == id) else { return false };
        let job = &mut listed.job;
        job.state = if fault.is_some() { JobState::Failed } else { JobState::Done };
        job.fault = fault.or(job.fault.take());
        job.finished = Some(Moment::of(now));
        let is_listed = job.is_news() && !listed.is_unwanted;
        let is_news = job.is_news() || listed.is_unwanted;
        listed.ended.cancel();
        self.jobs.retain(|listed| listed.job.id != id || is_listed);
        let mut finished = self.jobs.iter().filter(|listed| listed.job.is_finished()).count();
        self.jobs.retain(|listed| {
            let is_old = listed.job.is_finished() && finished > MAX_FINISHED;
            finished -= usize::from(is_old);
            !is_old
        });
        is_news
    }

    /// The jobs of the collections, newest first.
    pub(super) fn of(&self, collections: &CollectionSet) -> Vec<IndexJob> {
        let is_theirs =
            |job: &&IndexJob| collections.names().is_none_or(|names| names.contains(&job.collection));
        self.jobs.iter().rev().map(|listed| &listed.job).filter(is_theirs).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{IndexReport, IndexWarning};

    fn add(list: &mut JobList, kind: JobKind, collection: &str) -> Result<u64, TooManyJobs> {
        let collection = CollectionName::parse(collection).unwrap();
        list.add(kind, collection, "/notes".into(), SystemTime::UNIX_EPOCH).map(|job| job.id)
    }

    #[test]
    fn waiting_jobs_are_limited_and_old_ones_forgotten() {
        let mut list = JobList::default();
        let ids: Vec<u64> =
            (0..MAX_UNFINISHED).map(|_| add(&mut list, JobKind::Folder, "team").unwrap()).collect();
        assert_eq!(add(&mut list, JobKind::Folder, "team"), Err(TooManyJobs));
        for id in &ids {
            assert!(list.finish(*id, None, SystemTime::UNIX_EPOCH));
        }
        let left = list.of(&CollectionSet::All);
        assert_eq!((left.len(), left[0].id), (MAX_FINISHED, MAX_UNFINISHED as u64), "the newest are kept");
        assert!(left.iter().all(|job| job.state == JobState::Done));
    }

    #[test]
    fn a_look_at_a_watched_folder_is_listed_if_it_found_something() {
        let mut list = JobList::default();
        let quiet = add(&mut list, JobKind::Watch, "team").unwrap();
        assert!(!list.finish(quiet, None, SystemTime::UNIX_EPOCH));
        let changed = add(&mut list, JobKind::Watch, "team").unwrap();
        let report = IndexReport { files: 3, indexed: 1, failed: 1, ..IndexReport::default() };
        list.change(changed, |job| job.advance(&IndexProgress::Files(&report)));
        assert!(list.finish(changed, None, SystemTime::UNIX_EPOCH));
        let broken = add(&mut list, JobKind::Watch, "other").unwrap();
        assert!(list.finish(broken, Some("it is away".into()), SystemTime::UNIX_EPOCH));
        let listed: Vec<_> = list.of(&CollectionSet::All).iter().map(|job| (job.id, job.state)).collect();
        assert_eq!(listed, [(broken, JobState::Failed), (changed, JobState::Done)]);
        let team = list.of(&CollectionSet::of(CollectionName::parse("team").unwrap()));
        assert_eq!(team.iter().map(|job| (job.id, job.skipped)).collect::<Vec<_>>(), [(changed, 1)]);
    }

    #[test]
    fn a_cancelled_job_is_stopped_and_leaves_the_list_when_it_ends() {
        let mut list = JobList::default();
        let gone = add(&mut list, JobKind::Folder, "team").unwrap();
        let kept = add(&mut list, JobKind::Folder, "other").unwrap();
        let team = CollectionName::parse("team").unwrap();
        let ends = list.cancel(|job| job.collection == team);
        assert_eq!((ends.len(), list.of(&CollectionSet::All).len()), (1, 2));
        assert_eq!(
            (list.stop_of(gone).is_cancelled(), list.stop_of(kept).is_cancelled(), ends[0].is_cancelled()),
            (true, false, false)
        );
        assert!(list.finish(gone, Some("stopped".into()), SystemTime::UNIX_EPOCH));
        assert!(ends[0].is_cancelled());
        assert_eq!(list.of(&CollectionSet::All).iter().map(|job| job.id).collect::<Vec<_>>(), [kept]);
    }

    #[test]
    fn an_upload_says_why_it_was_skipped() {
        let mut list = JobList::default();
        let id = add(&mut list, JobKind::Upload, "team").unwrap();
        let skipped = IndexWarning { path: "/notes".into(), reason: "the file is binary, not text".into() };
        list.change(id, |job| job.advance(&IndexProgress::Skipped(&skipped)));
        assert!(list.finish(id, None, SystemTime::UNIX_EPOCH));
        let job = &list.of(&CollectionSet::All)[0];
        assert_eq!((job.state, job.fault.as_deref()), (JobState::Done, Some("the file is binary, not text")));
    }
}
