//! A model hub on a real socket.

use std::sync::Arc;
use std::time::Duration;

use hob_models::pull::{DownloadRetry, HubSpec};
use hob_models::{PullOptions, PullSpec};
use hob_testkit::{FakeServer, Recorded, Reply};

use crate::files::sha256;

pub const REPO: &str = "owner/repo";

/// The files of the one repository it has.
pub type Files = Vec<(&'static str, Vec<u8>)>;

/// A hub that does everything right.
pub async fn proper_hub(files: Files) -> FakeServer {
    hub(files, |_, proper| proper).await
}

/// A hub whose answers `twist` may change, knowing the proper one.
pub async fn hub(
    files: Files,
    twist: impl Fn(&Recorded, Reply) -> Reply + Send + Sync + 'static,
) -> FakeServer {
    let files = Arc::new(files);
    FakeServer::start(move |request| twist(request, answer(&files, request))).await
}

fn answer(files: &Files, request: &Recorded) -> Reply {
    if request.path == format!("/api/models/{REPO}/tree/main?recursive=1") {
        return listing(files);
    }
    let path = request.path.strip_prefix(&format!("/{REPO}/resolve/main/"));
    match path.and_then(|path| files.iter().find(|(name, _)| *name == path)) {
        Some((_, bytes)) => ranged(request, bytes),
        None => Reply::json(404, r#"{"error":"Repository not found"}"#),
    }
}

pub fn listing(files: &Files) -> Reply {
    let entry = |(path, bytes): &(&str, Vec<u8>)| {
        serde_json::json!({
            "type": "file", "path": path, "size": bytes.len(), "oid": "0123abcd",
            "lfs": {"oid": sha256(bytes), "size": bytes.len(), "pointerSize": 134},
        })
    };
    let mut entries: Vec<_> = files.iter().map(entry).collect();
    entries.push(serde_json::json!({"type": "directory", "path": "folder", "size": 0, "oid": "x"}));
    entries.push(serde_json::json!({"type": "file", "path": "README.md", "size": 5, "oid": "y"}));
    Reply::json(200, serde_json::to_vec(&entries).unwrap())
}

/// A file, or what of it was asked for.
pub fn ranged(request: &Recorded, bytes: &[u8]) -> Reply {
    let total = bytes.len();
    match range_start(request) {
        Some(start) if start < total => Reply::new(206, "application/octet-stream", &bytes[start..])
            .header("content-range", &format!("bytes {start}-{}/{total}", total - 1)),
        Some(_) => Reply::new(416, "text/plain", "").header("content-range", &format!("bytes */{total}")),
        None => Reply::new(200, "application/octet-stream", bytes),
    }
}

pub fn range_start(request: &Recorded) -> Option<usize> {
    let range = request.header("range")?.strip_prefix("bytes=")?;
    range.strip_suffix('-')?.parse().ok()
}

/// Requests for files, by where they began.
pub fn file_requests(hub: &FakeServer) -> Vec<usize> {
    let requests = hub.requests();
    let files = requests.iter().filter(|request| request.path.contains("/resolve/"));
    files.map(|request| range_start(request).unwrap_or(0)).collect()
}

pub fn options(hub: &FakeServer) -> PullOptions {
    PullOptions {
        hub: hub.url(),
        retry: DownloadRetry { attempts: 3, pause: Duration::from_millis(1) },
        ..PullOptions::default()
    }
}

pub fn spec(wanted: Option<&str>) -> PullSpec {
    PullSpec::Hub(HubSpec { repo: REPO.to_owned(), wanted: wanted.map(str::to_owned) })
}
