//! The steps of a download, in the words that clients of Ollama show.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, BoxStream, StreamExt};
use tokio::sync::watch;

use crate::pull::{DownloadProgress, DownloadProgressFn, DownloadStep, PullError, PullSpec};
use crate::service::ModelService;

/// One step of a download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullStep {
    /// What is being done, such as `pulling manifest`; `success` at the end.
    pub status: String,
    /// The digest of the file, where it is known.
    pub digest: Option<String>,
    /// Its size in bytes.
    pub total: Option<u64>,
    /// The bytes of it that are there.
    pub completed: Option<u64>,
}

impl PullStep {
    pub fn named(status: impl Into<String>) -> Self {
        PullStep { status: status.into(), digest: None, total: None, completed: None }
    }

    /// The last step: the model is there.
    pub fn success() -> Self {
        PullStep::named("success")
    }

    /// Whether the model is there now.
    pub fn is_last(&self) -> bool {
        self.status == "success"
    }

    fn of(name: &str, DownloadProgress { step, done, total }: DownloadProgress) -> Self {
        let counted = |status: String| PullStep { total, completed: Some(done), ..PullStep::named(status) };
        match step {
            DownloadStep::Waiting => PullStep::named("waiting for another pull of the same model"),
            DownloadStep::Listing => PullStep::named("pulling manifest"),
            DownloadStep::Downloading => counted(format!("pulling {name}")),
            DownloadStep::Checking => counted("verifying sha256 digest".to_owned()),
            DownloadStep::Unpacking => counted(format!("unpacking {name}")),
            DownloadStep::Converting => counted(format!("converting {name}")),
            DownloadStep::Copying => counted(format!("copying {name}")),
        }
    }
}

impl ModelService {
    /// Downloads a model that the caller calls `name`. The steps end with `success` or with an error. A slow reader gets the latest step.
    /// Dropping them stops the download; the next one resumes it.
    pub fn pull_steps(&self, spec: PullSpec, name: &str) -> BoxStream<'static, Result<PullStep, PullError>> {
        let (sender, progress) = watch::channel(None);
        let report: DownloadProgressFn = Arc::new(move |progress| {
            sender.send_replace(Some(progress));
        });
        let service = self.clone();
        let work = async move { service.pull(&spec, report).await.map(drop) }.boxed();
        let download = RunningDownload { name: name.to_owned(), work, progress };
        stream::unfold(Some(download), |download| async move {
            let mut download = download?;
            loop {
                tokio::select! {
                    biased;
                    Ok(()) = download.progress.changed() => {
                        let Some(progress) = *download.progress.borrow_and_update() else { continue };
                        return Some((Ok(PullStep::of(&download.name, progress)), Some(download)));
                    }
                    done = &mut download.work => return Some((done.map(|()| PullStep::success()), None)),
                }
            }
        })
        .boxed()
    }
}

/// A download in progress.
struct RunningDownload {
    name: String,
    work: BoxFuture<'static, Result<(), PullError>>,
    progress: watch::Receiver<Option<DownloadProgress>>,
}

/// Whether Hob downloads this itself. Where an Ollama answers, short names such as `qwen3:8b` are Ollama's.
pub fn is_pulled_by_hob(spec: &PullSpec, name: &str, has_ollama: bool) -> bool {
    match spec {
        PullSpec::Catalogue(entry) => !has_ollama || entry.name.eq_ignore_ascii_case(name),
        PullSpec::Hub(_) => true,
        PullSpec::File(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pull::PullOptions;

    #[test]
    fn a_step_names_the_model_and_counts_its_bytes() {
        let progress = DownloadProgress { step: DownloadStep::Downloading, done: 3, total: Some(10) };
        let expected =
            PullStep { total: Some(10), completed: Some(3), ..PullStep::named("pulling qwen3:8b") };
        assert_eq!(PullStep::of("qwen3:8b", progress), expected);
        assert!(PullStep::success().is_last() && !expected.is_last());
    }

    #[tokio::test]
    async fn a_download_that_fails_ends_with_its_error_and_no_success() {
        let home = tempfile::tempdir().expect("a directory");
        let mut files = ModelService::new(home.path(), PullOptions::default());
        files.go_offline();
        let steps: Vec<_> = files.pull_steps("hf:a/b".parse().expect("a name"), "hf.co/a/b").collect().await;
        let last = steps.last().expect("an end").as_ref().expect_err("an error").to_string();
        assert!(last.contains("needs the network"), "{last}");
    }
}
