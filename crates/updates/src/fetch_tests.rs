//! Servers of releases, good and bad ones.

use hob_testkit::{FakeServer, Reply};

use super::*;

/// Long enough for every answer, and never waited for.
const PATIENCE: Duration = Duration::from_secs(60);

async fn fetch(server: &FakeServer) -> Result<LatestRelease, UpdateError> {
    let address = ReleaseAddress::parse(&format!("{}/releases", server.url())).expect("an address");
    latest_release(&address, PATIENCE).await
}

async fn failure(reply: Reply) -> String {
    let server = FakeServer::replying(reply).await;
    let error = fetch(&server).await.expect_err("no release");
    error.to_string().replace(&server.url(), "SERVER")
}

#[tokio::test]
async fn a_release_is_read_from_its_server() {
    let server = FakeServer::replying(Reply::json(
        200,
        r#"{"version": "0.2.0", "date": "2026-11-20", "notes": "- New.", "files": ["install.sh"]}"#,
    ))
    .await;
    let release = fetch(&server).await.expect("a release");
    let expected = LatestRelease {
        version: "0.2.0".parse().expect("a version"),
        date: "2026-11-20".to_owned(),
        notes: "- New.".to_owned(),
        files: vec!["install.sh".to_owned()],
    };
    assert_eq!(release, expected);
    let [request] = &server.requests()[..] else { panic!("one request") };
    assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/releases/latest.json"));
}

#[tokio::test]
async fn a_release_is_read_from_a_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let address =
        ReleaseAddress::parse(&format!("file://{}", directory.path().display())).expect("an address");
    let missing = latest_release(&address, PATIENCE).await.expect_err("no file");
    assert!(matches!(missing, UpdateError::Unreachable { .. }), "{missing}");
    let file = directory.path().join(FILE);
    std::fs::write(&file, r#"{"version": "0.2.0"}"#).expect("a file");
    let release = latest_release(&address, PATIENCE).await.expect("a release");
    assert_eq!(release.version.to_string(), "0.2.0");
    std::fs::write(&file, vec![b' '; MAX_BYTES + 1]).expect("a file");
    let huge = latest_release(&address, PATIENCE).await.expect_err("too much");
    assert!(matches!(huge, UpdateError::TooLarge { .. }), "{huge}");
}

#[tokio::test]
async fn answers_that_are_no_release_are_errors() {
    let place = "SERVER/releases/latest.json";
    let missing = failure(Reply::new(404, "text/html", "<h1>no</h1>")).await;
    assert_eq!(missing, format!("{place} answered 404. Check that it is the address of a release"));
    let page = failure(Reply::new(200, "text/html", "<html>")).await;
    assert!(page.starts_with(&format!("{place} is no list of a release: ")), "{page}");
    let huge = failure(Reply::json(200, vec![b' '; MAX_BYTES + 1]).in_packets_of(64 << 10)).await;
    assert_eq!(huge, format!("{place} is larger than {MAX_BYTES} bytes, so it is no list of a release"));
    let cut = failure(Reply::json(200, r#"{"version""#).then_cut()).await;
    assert!(cut.starts_with(&format!("cannot read {place}: ")), "{cut}");
}

#[tokio::test]
async fn a_server_that_is_silent_is_given_up() {
    let server = FakeServer::replying(Reply::silence()).await;
    let address = ReleaseAddress::parse(&server.url()).expect("an address");
    let error = latest_release(&address, Duration::from_millis(50)).await.expect_err("no answer");
    assert!(matches!(error, UpdateError::Timeout { .. }), "{error}");
}

#[tokio::test]
async fn a_redirect_does_not_reach_this_machine_or_its_network() {
    for (target, reason) in [
        ("http://example.org/latest.json", "it is not https"),
        ("https://127.0.0.1/latest.json", "it is not public"),
        ("https://[::1]/latest.json", "it is not public"),
        ("https://169.254.169.254/", "it is not public"),
        ("https://0x7f.1/", "it is not public"),
        ("file:///etc/passwd", "it is not https"),
        ("https://", "it is no address"),
    ] {
        let error = failure(Reply::json(302, "").header("location", target)).await;
        assert!(error.ends_with(&format!("which is not followed: {reason}")), "{target}: {error}");
    }
    // A name, which is resolved before it is refused.
    let error = failure(Reply::json(302, "").header("location", "https://localhost:1/")).await;
    assert!(error.contains("not public"), "{error}");
}
