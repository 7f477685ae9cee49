//! Runs programs, a limited number of them at the same time. Knows nothing of how a runtime separates them.

use std::time::Duration;

use tokio::sync::{OnceCell, Semaphore};

use crate::checked_job::CheckedJob;
use crate::error::SandboxError;
use crate::job::{Job, JobResult, Mount};
use crate::launch::MAX_CODE_BYTES;
use crate::mounts::{self, MAX_MOUNTS};
use crate::options::SandboxOptions;
use crate::runtime::Runner;

/// The number of waiting programs for each that may run.
const WAITING_PER_SLOT: usize = 4;

const MAX_STDIN_BYTES: usize = 1 << 20;

/// Runs programs, a limited number concurrently. The runtime is found on first use.
pub struct Sandbox {
    options: SandboxOptions,
    runner: OnceCell<Runner>,
    /// Slots to run.
    slots: Semaphore,
    /// Slots to run or to wait.
    queue: Semaphore,
}

impl Sandbox {
    pub fn new(options: SandboxOptions) -> Self {
        if options.allowlist.len() > MAX_MOUNTS {
            tracing::warn!(
                most = MAX_MOUNTS,
                "[sandbox] allowlist has too many entries; only the first are mounted. Remove entries, or \
                 list a directory that contains several of them"
            );
        }
        let slots = options.max_concurrent.clamp(1, 1_024);
        Sandbox {
            slots: Semaphore::new(slots),
            queue: Semaphore::new(slots * (1 + WAITING_PER_SLOT)),
            runner: OnceCell::new(),
            options,
        }
    }

    pub fn timeout(&self) -> Duration {
        self.options.timeout
    }

    /// The files that every program may read.
    pub fn readable(&self) -> Vec<Mount> {
        mounts::of_allowlist(&self.options.allowlist)
    }

    /// Whether programs may read files, now or once an entry of the allowlist exists.
    pub fn may_read(&self) -> bool {
        !self.options.allowlist.is_empty()
    }

    /// Returns what would run the code.
    pub async fn check(&self) -> Result<String, SandboxError> {
        if !self.options.enabled {
            return Err(SandboxError::Disabled);
        }
        self.runner().await.map(Runner::describe)
    }

    /// Runs a job to its end. Dropping the future kills the program and leaves nothing behind.
    pub async fn run(&self, job: Job) -> Result<JobResult, SandboxError> {
        if !self.options.enabled {
            return Err(SandboxError::Disabled);
        }
        check_size(&job)?;
        // Invalid mounts are refused before anything starts or waits.
        mounts::check(&job.mounts, &self.options.allowlist)?;
        let _queued = self.queue.try_acquire().map_err(|_| self.busy())?;
        let _slot = self.slots.acquire().await.map_err(|_| self.busy())?;
        let runner = self.runner().await?;
        // Checked again, because they may have changed.
        let mounts = mounts::check(&job.mounts, &self.options.allowlist)?;
        let timeout = job.timeout.map_or(self.options.timeout, |limit| limit.min(self.options.timeout));
        runner.run(CheckedJob { job: &job, mounts: &mounts, timeout }).await
    }

    async fn runner(&self) -> Result<&Runner, SandboxError> {
        self.runner.get_or_try_init(|| Runner::find(&self.options)).await
    }

    fn busy(&self) -> SandboxError {
        let running = self.options.max_concurrent;
        SandboxError::Busy { running, waiting: running * WAITING_PER_SLOT }
    }
}

fn check_size(job: &Job) -> Result<(), SandboxError> {
    if job.code.trim().is_empty() {
        Err(SandboxError::BadJob("there is no code to run"))
    } else if job.code.len() > MAX_CODE_BYTES {
        Err(SandboxError::BadJob("the code is longer than 96 KiB"))
    } else if job.code.contains('\0') {
        Err(SandboxError::BadJob("the code contains a NUL character"))
    } else if job.stdin.len() > MAX_STDIN_BYTES {
        Err(SandboxError::BadJob("the input is longer than 1 MiB"))
    } else {
        Ok(())
    }
}
