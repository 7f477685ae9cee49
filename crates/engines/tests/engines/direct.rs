//! The client for engines on this machine: it reuses connections, and only those that can be reused.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt;
use hob_core::{Engine, EngineError, GenerateRequest, Message, Role};
use hob_engines::{Endpoint, EndpointOptions, OpenAiCompat, Resend, Style};
use hob_testkit::{Closing, ClosingServer, free_port};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

const MODELS: &str = r#"{"object":"list","data":[{"id":"m","object":"model"}]}"#;

/// An engine that answers each request and reports when a connection ends.
struct Peer {
    engine: OpenAiCompat,
    connections: Arc<AtomicUsize>,
    ended: mpsc::Receiver<()>,
}

/// What the engine does with a connection after an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Keep,
    Close,
}

async fn peer(after: After) -> Peer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let (tell, ended) = mpsc::channel(16);
    let counter = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::Relaxed);
            let tell = tell.clone();
            tokio::spawn(async move {
                serve(socket, after).await;
                let _ = tell.send(()).await;
            });
        }
    });
    Peer { engine: engine_at(format!("http://{address}")), connections, ended }
}

async fn serve(mut socket: TcpStream, after: After) {
    loop {
        let mut request = vec![0; 64 << 10];
        match socket.read(&mut request).await {
            Ok(0) | Err(_) => return,
            Ok(read) => request.truncate(read),
        }
        let answer = if request.starts_with(b"GET") { whole() } else { stream() };
        if socket.write_all(answer.as_bytes()).await.is_err() || after == After::Close {
            return;
        }
    }
}

fn whole() -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{MODELS}",
        MODELS.len()
    )
}

fn stream() -> String {
    let mut answer =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
    for event in [
        r#"{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ] {
        let event = format!("data: {event}\n\n");
        answer.push_str(&format!("{:x}\r\n{event}\r\n", event.len()));
    }
    answer + "0\r\n\r\n"
}

fn question() -> GenerateRequest {
    GenerateRequest {
        model: "m".into(),
        messages: vec![Message::new(Role::User, "Hello?")],
        ..GenerateRequest::default()
    }
}

#[tokio::test]
async fn one_connection_serves_answers_and_streams_one_after_the_other() {
    let peer = peer(After::Keep).await;
    for _ in 0..3 {
        assert_eq!(peer.engine.list_models().await.unwrap().len(), 1);
        let deltas = peer.engine.stream(&question()).await.unwrap().deltas;
        let pieces: Vec<_> = deltas.collect().await;
        assert!(pieces.iter().all(Result::is_ok), "{pieces:?}");
    }
    assert_eq!(peer.connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn an_engine_that_closed_an_idle_connection_is_asked_on_a_new_one() {
    let mut peer = peer(After::Close).await;
    for asked in 1..=3 {
        assert_eq!(peer.engine.list_models().await.unwrap().len(), 1);
        peer.ended.recv().await.unwrap();
        assert_eq!(peer.connections.load(Ordering::Relaxed), asked);
    }
}

fn engine_at(url: String) -> OpenAiCompat {
    engine_with(url, Resend::Unanswered)
}

fn engine_with(url: String, resend: Resend) -> OpenAiCompat {
    let options = EndpointOptions { resend, ..EndpointOptions::new("vllm", url) };
    OpenAiCompat::new(Style::VLLM, Endpoint::new(options).unwrap())
}

#[tokio::test]
async fn a_request_that_meets_the_end_of_an_idle_connection_is_sent_on_a_new_one() {
    for (closing, resend) in [(Closing::Unread, Resend::Never), (Closing::Read, Resend::Unanswered)] {
        let server = ClosingServer::start(closing, MODELS).await;
        let engine = engine_with(server.url(), resend);
        let mut asked = 0;
        while asked < 50 {
            let begun = Instant::now();
            let models = engine.list_models().await;
            // On a busy machine the connection may end so late that the engine could have worked on the request.
            if models.is_err() && begun.elapsed() >= Duration::from_secs(2) {
                continue;
            }
            asked += 1;
            assert_eq!(models.map(|models| models.len()).map_err(|error| error.to_string()), Ok(1));
            // Each new connection is kept, and closed when the next request comes.
            assert_eq!(server.connections(), asked, "{closing:?}");
        }
    }
}

#[tokio::test]
async fn a_request_that_may_have_been_paid_for_or_was_answered_in_part_is_not_sent_again() {
    for (closing, resend) in [(Closing::Read, Resend::Never), (Closing::AfterBytes, Resend::Unanswered)] {
        let server = ClosingServer::start(closing, MODELS).await;
        let engine = engine_with(server.url(), resend);
        assert!(engine.list_models().await.is_ok());
        let error = engine.list_models().await.unwrap_err();
        assert!(matches!(error, EngineError::Interrupted { .. }), "{closing:?}: {error}");
        assert_eq!(server.connections(), 1, "{closing:?}");
    }
}

/// The engine answers the first request of its only connection, reads the second, and is gone.
#[tokio::test]
async fn a_request_that_was_read_by_an_engine_that_is_gone_counts_as_sent() {
    // No other test gets this port when the listener is gone.
    let listener = TcpListener::bind(("127.0.0.1", free_port())).await.unwrap();
    let engine = engine_at(format!("http://{}", listener.local_addr().unwrap()));
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        drop(listener);
        let mut request = vec![0; 64 << 10];
        assert!(socket.read(&mut request).await.unwrap() > 0);
        socket.write_all(whole().as_bytes()).await.unwrap();
        assert!(socket.read(&mut request).await.unwrap() > 0);
    });
    assert!(engine.list_models().await.is_ok());
    let error = engine.list_models().await.unwrap_err();
    assert!(matches!(error, EngineError::Interrupted { .. }), "{error}");
}

#[tokio::test]
async fn a_stream_that_is_dropped_in_its_middle_closes_its_connection() {
    let mut peer = peer(After::Keep).await;
    let mut deltas = peer.engine.stream(&question()).await.unwrap().deltas;
    assert!(deltas.next().await.unwrap().is_ok());
    drop(deltas);
    peer.ended.recv().await.unwrap();
    assert_eq!(peer.engine.list_models().await.unwrap().len(), 1);
    assert_eq!(peer.connections.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn bytes_after_an_answer_without_a_body_are_ignored() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let planted = whole().replace("\"m\"", "\"planted\"");
        for answer in ["HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n".to_owned() + &planted, whole()] {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            assert!(socket.read(&mut request).await.unwrap() > 0);
            socket.write_all(answer.as_bytes()).await.unwrap();
            // Kept open, like a connection that can be reused.
            tokio::spawn(async move { socket.read(&mut request).await });
        }
    });
    let engine = engine_at(format!("http://{address}"));
    assert!(engine.list_models().await.is_err());
    assert_eq!(engine.list_models().await.unwrap()[0].id, "m");
}

#[tokio::test]
async fn endless_informational_responses_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        while socket.write_all(&b"HTTP/1.1 100\n\n".repeat(1000)).await.is_ok() {}
    });
    let error = engine_at(format!("http://{address}")).list_models().await.unwrap_err();
    assert!(error.to_string().contains("too long"), "{error}");
}
