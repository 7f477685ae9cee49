//! Hubs that refuse, fail, are silent, or send what is no model.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hob_models::pull::DownloadRetry;
use hob_models::{PullError, PullOptions, pull};
use hob_testkit::{FakeServer, Reply};

use super::{NAME, directory, failure, one_file};
use crate::files::{model, names_in};
use crate::hub::{file_requests, hub, listing, options, proper_hub, ranged, spec};

#[tokio::test]
async fn damaged_content_is_deleted_and_reported() {
    let hub = hub(one_file(), |request, proper| match request.path.contains("/resolve/") {
        true => Reply::new(200, "application/octet-stream", vec![0; model(1).len()]),
        false => proper,
    })
    .await;
    let (_dir, directory) = directory();
    let error = pull(&spec(None), &directory, &options(&hub)).await.unwrap_err();
    assert!(matches!(error, PullError::Checksum { .. }), "{error}");
    assert!(error.to_string().contains("do not trust the source"), "{error}");
    assert_eq!(names_in(directory.dir()), Vec::<String>::new());
    assert_eq!(file_requests(&hub), [0]);
}

#[tokio::test]
async fn a_file_that_is_not_a_model_is_not_kept_even_with_a_correct_checksum() {
    let cut = model(1)[..model(1).len() - 100].to_vec();
    for (bytes, reason) in [(b"hello".to_vec(), "not a GGUF file"), (cut, "is incomplete: 100 of its")] {
        let hub = proper_hub(vec![(NAME, bytes)]).await;
        let (_dir, directory) = directory();
        let error = pull(&spec(None), &directory, &options(&hub)).await.unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
        assert_eq!(names_in(directory.dir()), Vec::<String>::new());
    }
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    let cases = [
        (Reply::json(404, "{}"), "there is no repository 'owner/repo'"),
        (Reply::json(401, "{}"), "needs a token (HF_TOKEN)"),
        (Reply::json(403, "{}"), "is gated"),
        (Reply::json(401, "{}").header("x-error-code", "GatedRepo"), "/owner/repo, then set HF_TOKEN"),
        (Reply::json(401, "{}").header("x-error-code", "RepoNotFound"), "there is no repository"),
        (Reply::json(500, r#"{"error":"on fire"}"#), "answered 500 for 'owner/repo': on fire"),
        (Reply::new(502, "text/html", "<html>"), "answered 502 for 'owner/repo'"),
        (Reply::json(200, "[{]"), "Is it a model hub?"),
        (Reply::new(200, "text/html", "<html>"), "Is it a model hub?"),
        (Reply::json(200, vec![b' '; 9 << 20]), "larger than 8 MiB"),
        (Reply::json(200, "[]"), "no GGUF file at all"),
    ];
    for (reply, expected) in cases {
        let hub = FakeServer::replying(reply).await;
        let error = failure(&hub).await.to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn a_gated_file_in_an_open_repository_is_reported() {
    let hub = hub(one_file(), |request, proper| match request.path.contains("/resolve/") {
        true => Reply::json(403, "{}"),
        false => proper,
    })
    .await;
    let error = failure(&hub).await;
    assert!(matches!(error, PullError::Gated { .. }), "{error}");
    assert_eq!(file_requests(&hub), [0], "asking again would not help");
}

#[tokio::test]
async fn a_failing_hub_is_retried_and_then_given_up() {
    let trouble = |times: usize| {
        let asked = AtomicUsize::new(0);
        hub(one_file(), move |request, proper| {
            let is_file = request.path.contains("/resolve/");
            match is_file && asked.fetch_add(1, Ordering::SeqCst) < times {
                true => Reply::json(503, "{}"),
                false => proper,
            }
        })
    };
    let (_dir, directory) = directory();
    let passing = trouble(3).await;
    pull(&spec(None), &directory, &options(&passing)).await.unwrap();
    let lasting = trouble(4).await;
    let error = failure(&lasting).await;
    assert!(matches!(error, PullError::Refused { status: 503, .. }), "{error}");
}

#[tokio::test]
async fn a_silent_hub_is_given_up() {
    let (_dir, directory) = directory();
    let mut timeout = Duration::from_secs(1);
    loop {
        let hub = hub(one_file(), |request, proper| match request.path.contains("/resolve/") {
            true => Reply::silence(),
            false => proper,
        })
        .await;
        let retry = DownloadRetry { attempts: 1, pause: Duration::ZERO };
        let options = PullOptions { timeout, retry, ..options(&hub) };
        let error = pull(&spec(None), &directory, &options).await.unwrap_err();
        assert!(error.to_string().contains("sent nothing for too long"), "{error}");
        let asked = file_requests(&hub).len();
        assert!(asked <= 2, "{asked} attempts");
        // On a busy machine the time may be up before a request arrives, or already for the list of files.
        if asked == 2 {
            return;
        }
        timeout *= 2;
    }
}

#[tokio::test]
async fn a_missing_hub_is_named() {
    let hub = proper_hub(one_file()).await;
    let options = options(&hub);
    drop(hub);
    let (_dir, directory) = directory();
    let error = pull(&spec(None), &directory, &options).await.unwrap_err();
    assert!(matches!(error, PullError::Unreachable { .. }), "{error}");
    for bad in ["", "nonsense", "ftp://x", "http://"] {
        let options = PullOptions { hub: bad.to_owned(), ..PullOptions::default() };
        let error = pull(&spec(None), &directory, &options).await.unwrap_err();
        assert!(matches!(error, PullError::BadHub { .. }), "{bad}: {error}");
    }
}

#[tokio::test]
async fn endless_redirects_end() {
    let hub = hub(one_file(), |request, proper| match request.path.contains("/resolve/") {
        true => Reply::new(302, "text/plain", "").header("location", &request.path),
        false => proper,
    })
    .await;
    let error = failure(&hub).await;
    assert!(error.to_string().contains("too many redirects"), "{error}");
}

#[tokio::test]
async fn a_hub_cannot_write_outside_the_store() {
    for name in ["../../evil.gguf", "..\\evil.gguf", ".hidden.gguf", "a\nb.gguf", "c:evil.gguf"] {
        let hub = FakeServer::start(move |request| match request.path.contains("/api/") {
            true => listing(&vec![(name, model(1))]),
            false => ranged(request, &model(1)),
        })
        .await;
        let (dir, directory) = directory();
        match pull(&spec(None), &directory, &options(&hub)).await {
            // Folders of the repository are left out, so this one is harmless.
            Ok(pulled) => assert_eq!(pulled.path, directory.dir().join("evil.gguf"), "{name}"),
            Err(error) => assert!(matches!(error, PullError::BadName { .. }), "{name}: {error}"),
        }
        assert_eq!(names_in(dir.path()), ["models"]);
    }
}
