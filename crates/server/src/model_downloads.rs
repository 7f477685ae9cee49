//! The downloads of models that are in progress, so that every open page shows them. Knows no route.

use std::collections::BTreeMap;
use std::sync::Arc;

use hob_models::PullStep;
use parking_lot::Mutex;
use serde::Serialize;

use crate::pages::changes::{Audience, Changes, Topic};

/// A download in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ModelDownload {
    model: String,
    /// The current step.
    status: String,
    /// The bytes of the current file, and those that are there.
    total: Option<u64>,
    completed: Option<u64>,
}

/// All downloads in progress. The slots for downloads bound their number. Pages learn of the beginning and the end of each, and ask for
/// the progress themselves.
pub(crate) struct ModelDownloads {
    running: Mutex<RunningDownloads>,
    changes: Changes,
}

#[derive(Default)]
struct RunningDownloads {
    by_number: BTreeMap<u64, ModelDownload>,
    last: u64,
}

impl ModelDownloads {
    pub(crate) fn new(changes: Changes) -> Self {
        ModelDownloads { running: Mutex::default(), changes }
    }

    /// Oldest first.
    pub(crate) fn list(&self) -> Vec<ModelDownload> {
        self.running.lock().by_number.values().cloned().collect()
    }

    /// Lists a download until the result is dropped.
    pub(crate) fn begin(self: &Arc<Self>, model: &str) -> ListedDownload {
        let download = ModelDownload {
            model: model.to_owned(),
            status: "starting".to_owned(),
            total: None,
            completed: None,
        };
        let number = {
            let mut running = self.running.lock();
            running.last += 1;
            let number = running.last;
            running.by_number.insert(number, download);
            number
        };
        self.tell();
        ListedDownload { downloads: Arc::clone(self), number }
    }

    fn tell(&self) {
        self.changes.publish(Topic::Downloads, &Audience::Owner);
    }
}

/// A download in the list.
pub(crate) struct ListedDownload {
    downloads: Arc<ModelDownloads>,
    number: u64,
}

impl ListedDownload {
    /// Notes the progress.
    pub(crate) fn note(&self, step: &PullStep) {
        if let Some(download) = self.downloads.running.lock().by_number.get_mut(&self.number) {
            download.status.clone_from(&step.status);
            download.total = step.total;
            download.completed = step.completed;
        }
    }
}

impl Drop for ListedDownload {
    fn drop(&mut self) {
        self.downloads.running.lock().by_number.remove(&self.number);
        self.downloads.tell();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(completed: u64) -> PullStep {
        PullStep { status: "pulling".into(), digest: None, total: Some(10), completed: Some(completed) }
    }

    #[test]
    fn a_download_is_listed_until_its_end_and_pages_learn_of_both() {
        let changes = Changes::new();
        let mut told = changes.subscribe();
        let downloads = Arc::new(ModelDownloads::new(changes));
        let first = downloads.begin("a");
        let second = downloads.begin("b");
        for completed in 0..=5 {
            first.note(&step(completed));
        }
        let expected = |model: &str, status: &str, sizes: Option<(u64, u64)>| ModelDownload {
            model: model.into(),
            status: status.into(),
            total: sizes.map(|(total, _)| total),
            completed: sizes.map(|(_, completed)| completed),
        };
        assert_eq!(
            downloads.list(),
            [expected("a", "pulling", Some((10, 5))), expected("b", "starting", None)]
        );
        drop(second);
        drop(first);
        assert_eq!(downloads.list(), []);
        let mut count = 0;
        while told.try_recv().is_ok() {
            count += 1;
        }
        assert_eq!(count, 4, "two beginnings, two ends");
    }
}
