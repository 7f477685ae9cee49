//! Downloads that break off, and what the next pull continues.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hob_models::{DownloadStep, ModelDirectory, PullError, PullOptions, pull};
use hob_testkit::Reply;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::{NAME, directory, failure, one_file};
use crate::files::{model, names_in};
use crate::hub::{file_requests, hub, options, proper_hub, range_start, ranged, spec};

#[tokio::test]
async fn an_interrupted_download_continues_where_it_stopped() {
    let bytes = model(1);
    let third = bytes.len().div_ceil(3);
    let hub = hub(one_file(), move |request, proper| {
        if !request.path.contains("/resolve/") {
            return proper;
        }
        let start = range_start(request).unwrap_or(0);
        let end = (start + third).min(bytes.len());
        if end == bytes.len() {
            return proper;
        }
        let total = bytes.len();
        let part = &bytes[start..end];
        match start {
            0 => Reply::new(200, "application/octet-stream", part).then_cut(),
            _ => Reply::new(206, "application/octet-stream", part)
                .header("content-range", &format!("bytes {start}-{}/{total}", total - 1))
                .then_cut(),
        }
    })
    .await;
    let (_dir, directory) = directory();
    let pulled = pull(&spec(None), &directory, &options(&hub)).await.unwrap();
    assert_eq!(fs::read(pulled.path).unwrap(), model(1));
    assert_eq!(file_requests(&hub), [0, third, 2 * third]);
}

#[tokio::test]
async fn an_answer_that_ends_too_early_is_continued() {
    let cut = Arc::new(AtomicBool::new(true));
    let hub = hub(one_file(), move |request, proper| {
        let first = request.path.contains("/resolve/") && cut.swap(false, Ordering::SeqCst);
        match first {
            true => Reply::new(200, "application/octet-stream", &model(1)[..1000]),
            false => proper,
        }
    })
    .await;
    let (_dir, directory) = directory();
    pull(&spec(None), &directory, &options(&hub)).await.unwrap();
    assert_eq!(file_requests(&hub), [0, 1000]);
}

/// Breaks a pull off after `bytes` of it, and gives the directory that it leaves.
async fn broken_off(bytes: usize) -> (TempDir, ModelDirectory) {
    let hub = hub(one_file(), move |request, proper| match request.path.contains("/resolve/") {
        true => Reply::new(200, "application/octet-stream", &model(1)[..bytes]).then_silence(),
        false => proper,
    })
    .await;
    let (dir, directory) = directory();
    let cancel = CancellationToken::new();
    let at_the_break = cancel.clone();
    let options = PullOptions {
        cancel,
        progress: Arc::new(move |progress| {
            if progress.step == DownloadStep::Downloading && progress.done > 0 {
                at_the_break.cancel();
            }
        }),
        ..options(&hub)
    };
    let error = pull(&spec(None), &directory, &options).await.unwrap_err();
    assert!(matches!(error, PullError::Cancelled), "{error}");
    hub.hung_up(1).await;
    assert_eq!(directory.list().unwrap(), [], "a half file is never listed");
    (dir, directory)
}

#[tokio::test]
async fn a_cancelled_pull_is_continued_by_the_next() {
    let (_dir, directory) = broken_off(2 << 20).await;
    let hub = proper_hub(one_file()).await;
    let pulled = pull(&spec(None), &directory, &options(&hub)).await.unwrap();
    assert_eq!(fs::read(pulled.path).unwrap(), model(1));
    assert_eq!(names_in(directory.dir()), [NAME]);
    let requests = file_requests(&hub);
    assert!(matches!(requests[..], [(1..)]), "{requests:?}");
}

#[tokio::test]
async fn a_server_without_ranges_sends_everything_again() {
    let (_dir, directory) = broken_off(2 << 20).await;
    let hub = hub(one_file(), |request, proper| match request.path.contains("/resolve/") {
        true => Reply::new(200, "application/octet-stream", model(1)),
        false => proper,
    })
    .await;
    let pulled = pull(&spec(None), &directory, &options(&hub)).await.unwrap();
    assert_eq!(fs::read(pulled.path).unwrap(), model(1));
}

#[tokio::test]
async fn a_changed_model_is_downloaded_from_the_start() {
    let (_dir, directory) = broken_off(2 << 20).await;
    let hub = proper_hub(vec![(NAME, model(2))]).await;
    let pulled = pull(&spec(None), &directory, &options(&hub)).await.unwrap();
    assert_eq!(fs::read(pulled.path).unwrap(), model(2));
    assert_eq!(file_requests(&hub), [0]);
    assert_eq!(names_in(directory.dir()), [NAME], "the part of the old version is gone");
}

#[tokio::test]
async fn a_damaged_part_is_deleted() {
    let (_dir, directory) = broken_off(2 << 20).await;
    let part = directory.dir().join(&names_in(directory.dir())[0]);
    let length = fs::metadata(&part).unwrap().len() as usize;
    fs::write(&part, vec![0; length]).unwrap();
    let hub = proper_hub(one_file()).await;
    let pulled = pull(&spec(None), &directory, &options(&hub)).await.unwrap();
    assert_eq!(fs::read(pulled.path).unwrap(), model(1));
    // The last write before the break may end after it, so the part may have grown since it was measured.
    let [resumed, anew] = file_requests(&hub)[..] else { panic!("it was asked for twice") };
    assert!(resumed >= length, "{resumed} of {length}");
    assert_eq!(anew, 0);
}

#[tokio::test]
async fn a_part_longer_than_the_file_is_downloaded_from_the_start() {
    let (_dir, directory) = broken_off(2 << 20).await;
    let part = directory.dir().join(&names_in(directory.dir())[0]);
    fs::write(&part, vec![7; model(1).len() + 1]).unwrap();
    let hub = proper_hub(one_file()).await;
    let pulled = pull(&spec(None), &directory, &options(&hub)).await.unwrap();
    assert_eq!(fs::read(pulled.path).unwrap(), model(1));
}

#[tokio::test]
async fn a_file_that_changes_between_list_and_download_is_an_error() {
    for start in [0, 1000] {
        let hub = hub(one_file(), move |request, proper| {
            if !request.path.contains("/resolve/") {
                return proper;
            }
            let longer = [&model(1)[..], b"more"].concat();
            match range_start(request) {
                None if start > 0 => Reply::new(200, "application/octet-stream", &longer[..start]).then_cut(),
                _ => ranged(request, &longer),
            }
        })
        .await;
        let error = failure(&hub).await;
        assert!(matches!(error, PullError::Changed { .. }), "{error}");
    }
}

#[tokio::test]
async fn another_range_than_requested_is_refused() {
    let hub = hub(one_file(), move |request, proper| {
        match (request.path.contains("/resolve/"), range_start(request)) {
            (false, _) => proper,
            (true, None) => Reply::new(200, "application/octet-stream", &model(1)[..1000]).then_cut(),
            (true, Some(_)) => {
                let total = model(1).len();
                Reply::new(206, "application/octet-stream", &model(1)[500..])
                    .header("content-range", &format!("bytes 500-{}/{total}", total - 1))
            }
        }
    })
    .await;
    let error = failure(&hub).await;
    assert!(error.to_string().contains("another part"), "{error}");
}

#[tokio::test]
async fn a_hub_that_refuses_every_range_is_asked_once_more_and_given_up() {
    let (_dir, directory) = broken_off(2 << 20).await;
    let refusing = hub(one_file(), |request, proper| match request.path.contains("/resolve/") {
        true => Reply::new(416, "text/plain", ""),
        false => proper,
    })
    .await;
    let error = pull(&spec(None), &directory, &options(&refusing)).await.unwrap_err();
    assert!(error.to_string().contains("answered 416"), "{error}");
    assert!(error.to_string().contains("not even from its start"), "{error}");
    let requests = file_requests(&refusing);
    assert!(matches!(requests[..], [(1..), 0]), "{requests:?}");
    assert_eq!(names_in(directory.dir()), Vec::<String>::new(), "the part is deleted");
}

#[tokio::test]
async fn a_hub_that_begins_again_and_again_is_given_up() {
    let begun = Arc::new(AtomicBool::new(false));
    let hub = hub(one_file(), move |request, proper| {
        if !request.path.contains("/resolve/") {
            return proper;
        }
        // One byte more than a start, and then the start again.
        let total = model(1).len();
        let start = range_start(request).unwrap_or(0);
        match start > 0 && begun.swap(true, Ordering::SeqCst) {
            true => {
                begun.store(false, Ordering::SeqCst);
                Reply::new(206, "application/octet-stream", &model(1)[start..=start])
                    .header("content-range", &format!("bytes {start}-{}/{total}", total - 1))
                    .then_cut()
            }
            false => Reply::new(200, "application/octet-stream", &model(1)[..1000]).then_cut(),
        }
    })
    .await;
    let error = failure(&hub).await;
    assert!(matches!(error, PullError::Unreachable { .. }), "{error}");
}
