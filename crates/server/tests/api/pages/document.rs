//! `POST /pages/document`: the text of a file for a question.

use hob_config::ServerConfig;
use serde_json::{Value, json};

use crate::admin::openapi::{assert_fits, document_of};
use crate::fixtures::{loopback_config, scripted};
use crate::key_fixtures::message;
use crate::support::TestServer;

async fn read(server: &TestServer, name: &str, bytes: impl Into<Vec<u8>>) -> (u16, Value) {
    let url = server.url(&format!("/pages/document?name={name}"));
    let response = server.client.post(url).body(bytes.into()).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn a_file_is_read_as_the_memory_reads_it() {
    let server = scripted(loopback_config()).await;
    let document = document_of(&server).await;
    let (status, page) =
        read(&server, "gate.html", "<p>The <b>code</b> is 4711.</p><script>x</script>").await;
    assert_eq!(status, 200, "{page}");
    assert_fits(&document, "ReadDocument", &page);
    assert_eq!(page, json!({ "name": "gate.html", "text": "The code is 4711.", "truncated": false }));
    let (status, plain) = read(&server, "notes.txt", "Größe").await;
    assert_eq!((status, &plain["text"]), (200, &json!("Größe")));
    let (status, long) = read(&server, "long.txt", "word ".repeat(300_000)).await;
    assert_eq!((status, &long["truncated"]), (200, &json!(true)));
    assert!(long["text"].as_str().unwrap().len() <= 1 << 20);
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_refused_in_a_sentence() {
    let server = scripted(ServerConfig { max_body_mb: 1, ..loopback_config() }).await;
    let (status, refused) = read(&server, "a.bin", [0_u8, 159, 146, 150, 0, 1, 2, 3].repeat(50)).await;
    assert_eq!((status, message(&refused)), (415, "a.bin: the file is binary, not text"));
    let (status, refused) = read(&server, "a.docx", "not a document").await;
    assert_eq!(status, 415, "{refused}");
    assert!(message(&refused).starts_with("a.docx: the file is broken"), "{refused}");
    let (status, refused) = read(&server, "large.txt", "x".repeat((1 << 20) + 1)).await;
    assert_eq!(status, 413, "{refused}");
    let url = server.url("/pages/document");
    let response = server.client.post(url).body("text").send().await.unwrap();
    assert_eq!(response.status(), 400);
}
