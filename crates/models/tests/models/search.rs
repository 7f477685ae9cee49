//! Searching the hub.

use hob_models::pull::{DownloadPolicy, FoundRepository, search};
use hob_models::{PullError, PullOptions};
use hob_testkit::{FakeServer, Reply};
use serde_json::json;

use crate::hub::options;

/// An answer as the hub's documentation describes it.
fn results() -> Reply {
    let found = json!([
        {
            "_id": "66e9", "id": "Qwen/Qwen3-8B-GGUF", "modelId": "Qwen/Qwen3-8B-GGUF", "likes": 100, "private": false,
            "downloads": 250_000, "tags": ["gguf", "text-generation", "license:apache-2.0", "region:us"],
            "pipeline_tag": "text-generation", "createdAt": "2025-05-03T06:01:32.000Z"
        },
        { "id": "someone/qwen3-mine", "tags": ["gguf"] },
        { "id": "../../etc", "downloads": 1, "tags": [] },
    ]);
    Reply::json(200, found.to_string())
}

#[tokio::test]
async fn repositories_are_found_with_downloads_and_licence() {
    let hub = FakeServer::start(|_| results()).await;
    let found = search("qwen3 8b&x=1", 20, &options(&hub)).await.unwrap();
    let expected = [
        FoundRepository {
            repo: "Qwen/Qwen3-8B-GGUF".into(),
            downloads: Some(250_000),
            license: Some("apache-2.0".into()),
        },
        FoundRepository { repo: "someone/qwen3-mine".into(), downloads: None, license: None },
    ];
    assert_eq!(found, expected);
    let asked: Vec<String> = hub.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(
        asked,
        ["/api/models?search=qwen3+8b%26x%3D1&filter=gguf&sort=downloads&direction=-1&limit=20"]
    );
}

#[tokio::test]
async fn a_hub_that_fails_says_why() {
    let say = |status, body: &'static str| async move {
        let hub = FakeServer::start(move |_| Reply::json(status, body)).await;
        search("qwen3", 5, &options(&hub)).await.unwrap_err().to_string()
    };
    assert!(say(200, "<html>").await.contains("Is it a model hub?"));
    for status in [401, 403, 404] {
        assert!(say(status, "{}").await.contains("it has no search, or refuses HF_TOKEN"), "{status}");
    }
    assert!(say(503, r#"{"error":"overloaded"}"#).await.contains("503 for 'qwen3': overloaded"));
}

#[tokio::test]
async fn offline_nothing_is_searched() {
    let hub = FakeServer::start(|_| results()).await;
    let offline = PullOptions { network: DownloadPolicy::Offline, ..options(&hub) };
    let error = search("qwen3", 5, &offline).await.unwrap_err();
    assert!(matches!(error, PullError::Offline { .. }), "{error}");
    assert_eq!(hub.requests(), []);
}
