//! A pull that is killed without warning, and the one that takes it up.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use hob_models::{DownloadStep, ModelDirectory, PullOptions, pull};
use hob_testkit::{Reply, test_process};

use crate::files::{model, names_in};
use crate::hub::{file_requests, hub, options, proper_hub, spec};

/// The environment of the process that is killed.
const STORE: &str = "HOB_KILLED_STORE";
const HUB: &str = "HOB_KILLED_HUB";

#[tokio::test]
#[ignore = "the process that the test below starts and kills"]
async fn a_process_that_pulls_until_it_is_killed() {
    let directory = ModelDirectory::new(std::env::var(STORE).unwrap());
    let options = PullOptions {
        hub: std::env::var(HUB).unwrap(),
        progress: Arc::new(|progress| {
            if progress.step == DownloadStep::Downloading {
                // Its reader may be gone: then the kill follows.
                let _ = writeln!(std::io::stdout(), "\nhas {}", progress.done);
            }
        }),
        ..PullOptions::default()
    };
    let _ = pull(&spec(None), &directory, &options).await;
}

#[tokio::test]
async fn after_a_kill_the_next_pull_continues_and_completes() {
    let half = model(1).len() / 2;
    let stalling =
        hub(vec![("m.gguf", model(1))], move |request, proper| match request.path.contains("/resolve/") {
            true => Reply::new(200, "application/octet-stream", &model(1)[..half]).then_silence(),
            false => proper,
        })
        .await;
    let dir = tempfile::tempdir().unwrap();
    let directory = ModelDirectory::new(dir.path());

    let (url, at) = (stalling.url(), dir.path().to_owned());
    let killed = tokio::task::spawn_blocking(move || pull_and_kill(&url, &at));
    let had = killed.await.unwrap();
    assert!(had > 0);
    assert_eq!(directory.list().unwrap(), [], "a half file is never listed");
    let left = names_in(dir.path());
    assert!(left.len() == 1 && left[0].ends_with(".part"), "{left:?}");

    let hub = proper_hub(vec![("m.gguf", model(1))]).await;
    let pulled = pull(&spec(None), &directory, &options(&hub)).await.unwrap();
    assert_eq!(std::fs::read(pulled.path).unwrap(), model(1));
    assert_eq!(names_in(dir.path()), ["m.gguf"]);
    let requests = file_requests(&hub);
    assert!(matches!(requests[..], [(1..)]), "{requests:?}");
}

/// Starts the pull in another process and kills it when it has made progress. Returns its progress.
fn pull_and_kill(hub: &str, directory: &Path) -> u64 {
    let mut child = test_process("killed::a_process_that_pulls_until_it_is_killed")
        .args(["--nocapture", "--test-threads=1"])
        .env(STORE, directory)
        .env(HUB, hub)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let had = lines
        .by_ref()
        .map(|line| line.unwrap())
        .filter_map(|line| line.strip_prefix("has ")?.parse().ok())
        .find(|bytes: &u64| *bytes >= 1 << 20);
    child.kill().unwrap();
    child.wait().unwrap();
    had.expect("the pull got somewhere")
}
