//! Downloads one file over HTTP, and continues where the last attempt stopped.

use std::io::{Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use hob_core::Backoff;
use reqwest::header::CONTENT_RANGE;
use reqwest::{Response, StatusCode};
use tokio::fs::File;
use tokio::io::{AsyncSeekExt, AsyncWriteExt};
use tokio::time::Instant;
use url::Url;

use super::client::HubClient;
use super::error::PullError;
use super::job::PullJob;
use super::options::{DownloadRetry, DownloadStep};
use super::target::Target;
use crate::checksum::{Checksum, Summing, read_in_blocks};

/// Progress is reported after this many bytes or this time.
const REPORT_BYTES: u64 = 1 << 20;
const REPORT_PAUSE: Duration = Duration::from_millis(200);

/// The longest `Retry-After` that is accepted.
const MAX_RETRY_AFTER: u64 = 60;

pub(super) struct Download<'a> {
    pub client: &'a HubClient,
    pub url: Url,
    pub repo: &'a str,
    /// Bytes of the files before this one, for progress.
    pub before: u64,
    /// Bytes of all files.
    pub total: u64,
    pub retry: DownloadRetry,
    /// Whether there is another source, so that a silent host is given up early.
    pub has_other_source: bool,
}

impl Download<'_> {
    /// Completes the part of `target`, checks its length and checksum, and syncs it.
    pub async fn run(&self, job: &PullJob, target: &Target) -> Result<(), PullError> {
        let mut part = Part::open(job, target).await?;
        let mut from_before = part.length > 0;
        loop {
            if let Err(error) = self.complete(job, target, &mut part).await {
                // Nothing to resume, and another source may have it.
                if part.length == 0 {
                    part.remove().await?;
                }
                return Err(error);
            }
            let found = part.settle().await?;
            let Some(expected) = target.sha256.filter(|expected| *expected != found) else {
                return Ok(());
            };
            if !from_before {
                part.remove().await?;
                return Err(PullError::Checksum { file: target.name(), expected, found });
            }
            // A power cut may have damaged the part: start again.
            from_before = false;
            part.restart().await?;
        }
    }

    /// Retries until the file is complete, or too many attempts in a row made no progress.
    async fn complete(&self, job: &PullJob, target: &Target, part: &mut Part) -> Result<(), PullError> {
        let retry = self.retry;
        let pauses = Backoff { first: retry.pause, longest: retry.pause.saturating_mul(retry.attempts) };
        let mut failures = 0;
        // The most that was there. A part that begins again and again makes no progress.
        let mut furthest = part.length;
        while part.length < target.size {
            let Err(error) = self.attempt(job, target, part).await else {
                continue;
            };
            failures = if part.length > furthest { 1 } else { failures + 1 };
            furthest = furthest.max(part.length);
            let attempts = match self.has_other_source && part.length == 0 {
                true => retry.attempts.min(1),
                false => retry.attempts,
            };
            let Some(asked) = may_pass(&error).filter(|_| failures <= attempts) else {
                return Err(error);
            };
            tracing::debug!(%error, file = %target.name(), at = part.length, "a download was interrupted; resuming it");
            tokio::time::sleep(asked.max(pauses.delay(failures))).await;
        }
        Ok(())
    }

    async fn attempt(&self, job: &PullJob, target: &Target, part: &mut Part) -> Result<(), PullError> {
        let mut got = self.client.get(self.url.clone(), part.length, self.repo).await;
        // The range does not exist, so the file has changed. Once, because some hubs refuse every range.
        if part.length > 0 && matches!(got, Err(PullError::Refused { status: 416, .. })) {
            part.restart().await?;
            got = self.client.get(self.url.clone(), 0, self.repo).await;
        }
        let mut response = got.map_err(explained)?;
        self.agree(target, part, &response).await?;
        let mut told = (part.length, Instant::now());
        self.report(job, part);
        while let Some(chunk) = response.chunk().await.map_err(|error| self.client.unreachable(&error))? {
            let length = part.length + chunk.len() as u64;
            if length > target.size {
                return Err(changed(target, length));
            }
            part.append(&chunk).await?;
            if part.length - told.0 >= REPORT_BYTES || told.1.elapsed() >= REPORT_PAUSE {
                self.report(job, part);
                told = (part.length, Instant::now());
            }
        }
        self.report(job, part);
        if part.length < target.size {
            // A proxy may close the connection properly but too early.
            return Err(PullError::Unreachable {
                host: self.client.host().to_owned(),
                reason: format!("it ended after {} of {} bytes", part.length, target.size),
            });
        }
        Ok(())
    }

    /// Moves the part to the start of the answer, and refuses an answer about another file.
    async fn agree(&self, target: &Target, part: &mut Part, response: &Response) -> Result<(), PullError> {
        if response.status() == StatusCode::PARTIAL_CONTENT {
            let range = response.headers().get(CONTENT_RANGE);
            let range = range.and_then(|range| ContentRange::parse(range.to_str().ok()?));
            let range =
                range.ok_or_else(|| self.client.malformed(self.repo, "it sent a part without its range"))?;
            return match range {
                ContentRange { total: Some(total), .. } if total != target.size => {
                    Err(changed(target, total))
                }
                ContentRange { start, .. } if start != part.length => {
                    Err(self.client.malformed(self.repo, "it sent another part than requested"))
                }
                _ => Ok(()),
            };
        }
        // The whole file: not every proxy supports ranges.
        if part.length > 0 {
            part.restart().await?;
        }
        match response.content_length() {
            Some(length) if length != target.size => Err(changed(target, length)),
            _ => Ok(()),
        }
    }

    fn report(&self, job: &PullJob, part: &Part) {
        job.report(DownloadStep::Downloading, self.before + part.length, Some(self.total));
    }
}

/// Says what a refused range means for a request that has none.
fn explained(error: PullError) -> PullError {
    match error {
        PullError::Refused { repo, host, status: 416, retry_after, .. } => PullError::Refused {
            repo,
            host,
            status: 416,
            message: "it does not send the file, not even from its start. Try again later, or another hub"
                .to_owned(),
            retry_after,
        },
        other => other,
    }
}

fn changed(target: &Target, found: u64) -> PullError {
    PullError::Changed { file: target.name(), expected: target.size, found }
}

/// The wait before a retry, if a retry may help.
fn may_pass(error: &PullError) -> Option<Duration> {
    match error {
        PullError::Unreachable { .. } => Some(Duration::ZERO),
        PullError::Refused { status: 408 | 429 | 500.., retry_after, .. } => {
            retry_after.or(Some(0)).filter(|seconds| *seconds <= MAX_RETRY_AFTER).map(Duration::from_secs)
        }
        _ => None,
    }
}

/// `bytes 100-199/200`; the total may be `*`.
#[derive(Debug, PartialEq, Eq)]
struct ContentRange {
    start: u64,
    total: Option<u64>,
}

impl ContentRange {
    fn parse(text: &str) -> Option<Self> {
        let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
        let (start, _) = range.split_once('-')?;
        Some(ContentRange {
            start: start.parse().ok()?,
            total: match total {
                "*" => None,
                total => Some(total.parse().ok()?),
            },
        })
    }
}

/// The growing file, and its checksum so far.
struct Part {
    path: PathBuf,
    file: File,
    length: u64,
    summing: Summing,
}

impl Part {
    /// Continues an existing part.
    async fn open(job: &PullJob, target: &Target) -> Result<Self, PullError> {
        let (path, size) = (target.part.clone(), target.size);
        let (file, length, summing) = job
            .blocking(move |job| {
                let read = || {
                    let mut file = std::fs::File::options()
                        .create(true)
                        .truncate(false)
                        .read(true)
                        .write(true)
                        .open(&path)?;
                    if file.metadata()?.len() > size {
                        file.set_len(0)?;
                    }
                    let mut summing = Summing::default();
                    let length = read_in_blocks(&mut file, |block, done| {
                        summing.add(block);
                        job.report(DownloadStep::Checking, done, Some(size));
                        job.check_active()
                    })?;
                    file.seek(SeekFrom::Start(length))?;
                    Ok((file, length, summing))
                };
                read().map_err(|error| PullError::io(&path, "read", error))
            })
            .await?;
        Ok(Part { path: target.part.clone(), file: File::from_std(file), length, summing })
    }

    async fn append(&mut self, bytes: &[u8]) -> Result<(), PullError> {
        self.file.write_all(bytes).await.map_err(|error| PullError::io(&self.path, "written", error))?;
        self.summing.add(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    async fn restart(&mut self) -> Result<(), PullError> {
        let failed = |error| PullError::io(&self.path, "written", error);
        // Pending writes would otherwise follow the truncation.
        self.file.flush().await.map_err(failed)?;
        self.file.set_len(0).await.map_err(failed)?;
        self.file.seek(SeekFrom::Start(0)).await.map_err(failed)?;
        self.summing = Summing::default();
        self.length = 0;
        Ok(())
    }

    /// Syncs the file, and returns its checksum.
    async fn settle(&mut self) -> Result<Checksum, PullError> {
        let failed = |error| PullError::io(&self.path, "written", error);
        self.file.flush().await.map_err(failed)?;
        self.file.sync_all().await.map_err(failed)?;
        Ok(self.summing.clone().finish())
    }

    async fn remove(&self) -> Result<(), PullError> {
        tokio::fs::remove_file(&self.path).await.map_err(|error| PullError::io(&self.path, "removed", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_range_is_read_or_refused() {
        let range = |start, total| Some(ContentRange { start, total });
        assert_eq!(ContentRange::parse("bytes 100-199/200"), range(100, Some(200)));
        assert_eq!(ContentRange::parse("bytes 0-1/*"), range(0, None));
        for bad in ["", "bytes */200", "100-199/200", "bytes 1-2", "bytes a-b/c", "bytes 1-2/-3"] {
            assert_eq!(ContentRange::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_temporary_errors_are_retried() {
        let refused = |status, retry_after| PullError::Refused {
            repo: String::new(),
            host: String::new(),
            status,
            message: String::new(),
            retry_after,
        };
        assert_eq!(may_pass(&refused(503, None)), Some(Duration::ZERO));
        assert_eq!(may_pass(&refused(429, Some(7))), Some(Duration::from_secs(7)));
        assert_eq!(may_pass(&refused(429, Some(3600))), None);
        assert_eq!(may_pass(&refused(400, None)), None);
        assert_eq!(may_pass(&PullError::Cancelled), None);
    }
}
