//! Pulling from a hub, and everything that can go wrong with it.

mod continued;
mod failures;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use hob_models::pull::DownloadPolicy;
use hob_models::{
    DownloadProgress, DownloadStep, ModelDirectory, PullError, PullOptions, PullSpec, catalogue, pull,
};
use hob_testkit::{FakeServer, Hold, Reply};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::files::{model, names_in, real_model, shard};
use crate::hub::{Files, REPO, file_requests, hub, listing, options, proper_hub, ranged, spec};

const NAME: &str = "tiny-Q4_K_M.gguf";

fn directory() -> (TempDir, ModelDirectory) {
    let dir = tempfile::tempdir().unwrap();
    let directory = ModelDirectory::new(dir.path().join("models"));
    (dir, directory)
}

fn one_file() -> Files {
    vec![(NAME, model(1))]
}

/// The error of a pull that fails, which leaves nothing that looks like a model.
async fn failure(hub: &FakeServer) -> PullError {
    let (_dir, directory) = directory();
    let error = pull(&spec(None), &directory, &options(hub)).await.unwrap_err();
    assert_eq!(directory.list().unwrap(), []);
    error
}

#[tokio::test]
async fn a_model_is_pulled_checked_and_listed() {
    let hub = proper_hub(one_file()).await;
    let (_dir, directory) = directory();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let recorder = Arc::clone(&seen);
    let options = PullOptions {
        progress: Arc::new(move |progress| recorder.lock().unwrap().push(progress)),
        ..options(&hub)
    };
    let pulled = pull(&spec(None), &directory, &options).await.unwrap();

    assert_eq!(pulled.id, "tiny-Q4_K_M");
    assert_eq!(pulled.problem, None);
    assert_eq!(fs::read(&pulled.path).unwrap(), model(1));
    assert_eq!(directory.list().unwrap(), [pulled]);
    assert_eq!(names_in(directory.dir()), [NAME]);
    let seen = seen.lock().unwrap();
    let total = Some(model(1).len() as u64);
    assert_eq!(seen.first().map(|progress| progress.step), Some(DownloadStep::Listing));
    assert_eq!(
        seen.last(),
        Some(&DownloadProgress { step: DownloadStep::Downloading, done: model(1).len() as u64, total })
    );
    let downloaded: Vec<u64> = seen
        .iter()
        .filter(|progress| progress.step == DownloadStep::Downloading)
        .map(|progress| progress.done)
        .collect();
    assert!(downloaded.is_sorted() && downloaded.len() >= 4, "{downloaded:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn the_models_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let hub = proper_hub(one_file()).await;
    let (_dir, directory) = directory();
    pull(&spec(None), &directory, &options(&hub)).await.unwrap();
    let mode = fs::metadata(directory.dir()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[tokio::test]
async fn the_real_model_is_pulled_from_a_hub() {
    let bytes = fs::read(real_model()).unwrap();
    let hub = proper_hub(vec![("SmolLM2.gguf", bytes)]).await;
    let (_dir, directory) = directory();
    let pulled = pull(&spec(None), &directory, &options(&hub)).await.unwrap();
    assert_eq!(pulled.header.unwrap().quantization, Some("Q4_1"));
}

#[tokio::test]
async fn an_existing_model_is_not_downloaded_again() {
    let hub = proper_hub(one_file()).await;
    let (_dir, directory) = directory();
    let first = pull(&spec(None), &directory, &options(&hub)).await.unwrap();
    let second = pull(&spec(None), &directory, &options(&hub)).await.unwrap();
    assert_eq!(first, second);
    assert_eq!(file_requests(&hub), [0]);
}

#[tokio::test]
async fn the_token_is_sent_to_the_hub_only() {
    let store_of_files = FakeServer::start(|request| ranged(request, &model(1))).await;
    let elsewhere = store_of_files.url();
    let hub = hub(one_file(), move |request, proper| match request.path.contains("/resolve/") {
        true => Reply::new(302, "text/plain", "").header("location", &format!("{elsewhere}/blob")),
        false => proper,
    })
    .await;
    let (_dir, directory) = directory();
    let options = PullOptions { token: Some("s3cret".to_owned().into()), ..options(&hub) };
    pull(&spec(None), &directory, &options).await.unwrap();
    let requests = hub.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert_eq!(request.header("authorization"), Some("Bearer s3cret"));
    }
    let requests = store_of_files.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].header("authorization"), None);
    assert_eq!(requests[0].header("referer"), None);
    assert!(!format!("{options:?}").contains("s3cret"));
}

#[tokio::test]
async fn offline_sends_no_request() {
    let hub = proper_hub(one_file()).await;
    let (_dir, directory) = directory();
    let options = PullOptions {
        network: DownloadPolicy::Offline,
        pip: vec![vec!["/nonexistent".to_owned()]],
        ..options(&hub)
    };
    let mut specs: Vec<PullSpec> = catalogue().map(PullSpec::Catalogue).collect();
    specs.push(spec(None));
    for spec in specs {
        let error = pull(&spec, &directory, &options).await.unwrap_err();
        assert!(matches!(error, PullError::Offline { .. }), "{spec:?}: {error}");
    }
    assert_eq!(hub.requests(), []);
}

#[tokio::test]
async fn the_choice_is_the_users_when_there_is_one() {
    let files = || vec![("m-Q2_K.gguf", model(1)), ("m-Q8_0.gguf", model(2))];
    let hub = proper_hub(files()).await;
    let error = failure(&hub).await.to_string();
    assert!(error.contains("hf:owner/repo:NAME. It has: m-Q2_K, m-Q8_0"), "{error}");
    let (_dir, directory) = directory();
    let error = pull(&spec(Some("Q5_K")), &directory, &options(&hub)).await.unwrap_err();
    assert!(error.to_string().contains("no file for 'Q5_K'"), "{error}");
    let pulled = pull(&spec(Some("q8_0")), &directory, &options(&hub)).await.unwrap();
    assert_eq!(pulled.id, "m-Q8_0");
    assert_eq!(fs::read(pulled.path).unwrap(), model(2));
}

#[tokio::test]
async fn a_model_is_listed_when_all_parts_are_complete() {
    const FIRST: &str = "Q4_0/big-Q4_0-00001-of-00002.gguf";
    const SECOND: &str = "Q4_0/big-Q4_0-00002-of-00002.gguf";
    let files = || vec![(FIRST, shard(1, 2)), (SECOND, shard(2, 2))];
    let missing = hub(files(), |request, proper| match request.path.contains("00002-of") {
        true => Reply::json(403, "{}"),
        false => proper,
    })
    .await;
    let (_dir, directory) = directory();
    pull(&spec(None), &directory, &options(&missing)).await.unwrap_err();
    assert_eq!(directory.list().unwrap(), []);

    let hub = proper_hub(files()).await;
    let pulled = pull(&spec(None), &directory, &options(&hub)).await.unwrap();
    assert_eq!(pulled.id, "big-Q4_0");
    assert_eq!(pulled.problem, None);
    assert_eq!(pulled.files.len(), 2);
    assert_eq!(file_requests(&hub), [0], "the first part was there");
}

#[tokio::test]
async fn another_model_of_the_same_name_is_never_overwritten() {
    let (_dir, directory) = directory();
    let ours = proper_hub(one_file()).await;
    pull(&spec(None), &directory, &options(&ours)).await.unwrap();
    let theirs = proper_hub(vec![(NAME, model(2))]).await;
    let error = pull(&spec(None), &directory, &options(&theirs)).await.unwrap_err();
    assert!(matches!(error, PullError::NameTaken { .. }), "{error}");
    assert_eq!(file_requests(&theirs), [] as [usize; 0]);
    assert_eq!(fs::read(directory.dir().join(NAME)).unwrap(), model(1));
}

#[tokio::test]
async fn a_broken_model_is_repaired_by_pulling_it_again() {
    let (_dir, directory) = directory();
    fs::create_dir(directory.dir()).unwrap();
    fs::write(directory.dir().join(NAME), &model(1)[..5000]).unwrap();
    let hub = proper_hub(one_file()).await;
    let pulled = pull(&spec(None), &directory, &options(&hub)).await.unwrap();
    assert_eq!(fs::read(pulled.path).unwrap(), model(1));
}

#[tokio::test]
async fn two_pulls_of_the_same_model_download_it_once() {
    let hold = Hold::new();
    let (bytes, gate) = (model(1), hold.clone());
    let hub = hub(one_file(), move |request, proper| match request.path.contains("/resolve/") {
        true => Reply::new(200, "application/octet-stream", &bytes[..1000]).then_held(&gate, &bytes[1000..]),
        false => proper,
    })
    .await;
    let (_dir, directory) = directory();
    // The second one reports that it waits, which lets the first continue.
    let waited = CancellationToken::new();
    let told = waited.clone();
    let options = PullOptions {
        progress: Arc::new(move |progress| {
            if progress.step == DownloadStep::Waiting {
                told.cancel();
                hold.release();
            }
        }),
        ..options(&hub)
    };
    let wanted = spec(None);
    let (first, second) =
        tokio::join!(pull(&wanted, &directory, &options), pull(&wanted, &directory, &options));
    assert_eq!(first.unwrap(), second.unwrap());
    assert!(waited.is_cancelled());
    assert_eq!(file_requests(&hub), [0]);
}

#[tokio::test]
async fn a_model_that_is_being_pulled_cannot_be_removed() {
    let hub = hub(one_file(), |request, proper| match request.path.contains("/resolve/") {
        true => Reply::new(200, "application/octet-stream", &model(1)[..2 << 20]).then_silence(),
        false => proper,
    })
    .await;
    let (_dir, directory) = directory();
    let cancel = CancellationToken::new();
    let (at_work, directory_at_work) = (cancel.clone(), directory.clone());
    let refused = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&refused);
    let options = PullOptions {
        cancel,
        progress: Arc::new(move |progress| {
            if progress.step == DownloadStep::Downloading && progress.done > 0 {
                let error = directory_at_work.remove("tiny-Q4_K_M").unwrap_err();
                told.store(error.to_string().contains("is being pulled"), Ordering::SeqCst);
                at_work.cancel();
            }
        }),
        ..options(&hub)
    };
    pull(&spec(None), &directory, &options).await.unwrap_err();
    assert!(refused.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_list_in_several_pages_is_read_to_its_end() {
    let next = format!("/api/models/{REPO}/tree/main?recursive=1&cursor=2");
    let next_path = next.clone();
    let hub = hub(one_file(), move |request, proper| {
        if request.path == next_path {
            return listing(&one_file());
        }
        match request.path.contains("/api/") {
            true => Reply::json(200, "[]").header("link", &format!("<{next}>; rel=\"next\"")),
            false => proper,
        }
    })
    .await;
    let (_dir, directory) = directory();
    pull(&spec(None), &directory, &options(&hub)).await.unwrap();
}

#[tokio::test]
async fn without_a_checksum_size_and_header_are_checked() {
    let hub = hub(one_file(), |request, proper| match request.path.contains("/api/") {
        true => {
            let listed =
                serde_json::json!([{"type": "file", "path": NAME, "size": model(1).len(), "oid": "abc"}]);
            Reply::json(200, listed.to_string())
        }
        false => proper,
    })
    .await;
    let (_dir, directory) = directory();
    let pulled = pull(&spec(None), &directory, &options(&hub)).await.unwrap();
    assert_eq!(fs::read(pulled.path).unwrap(), model(1));
}

#[tokio::test]
async fn a_model_of_the_list_is_stored_under_its_own_name() {
    let entry = catalogue().find(|entry| entry.name == "llama-3.2-1b-instruct").unwrap();
    let repo = "bartowski/Llama-3.2-1B-Instruct-GGUF";
    let hub = FakeServer::start(move |request| match request.path.as_str() {
        path if path == format!("/api/models/{repo}/tree/main?recursive=1") => {
            listing(&vec![("Llama-3.2-1B-Instruct-Q4_K_M.gguf", model(1)), ("x-Q8_0.gguf", model(2))])
        }
        path if path == format!("/{repo}/resolve/main/Llama-3.2-1B-Instruct-Q4_K_M.gguf") => {
            ranged(request, &model(1))
        }
        _ => Reply::json(404, "{}"),
    })
    .await;
    let (_dir, directory) = directory();
    let pulled = pull(&PullSpec::Catalogue(entry), &directory, &options(&hub)).await.unwrap();
    assert_eq!(pulled.id, "llama-3.2-1b-instruct");
    assert_eq!(directory.find("llama3.2:1b").unwrap().as_ref(), Some(&pulled));

    let offline = PullOptions { network: DownloadPolicy::Offline, ..options(&hub) };
    let again = pull(&PullSpec::Catalogue(entry), &directory, &offline).await.unwrap();
    assert_eq!(pulled, again, "what is there needs no network");
    directory.remove("llama3.2:1b").unwrap();
    assert_eq!(directory.list().unwrap(), []);
}
