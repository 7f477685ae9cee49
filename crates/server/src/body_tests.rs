use axum::http::StatusCode;
use axum::response::IntoResponse;
use futures::stream::{self, StreamExt};
use tokio::time::{Instant, sleep};

use super::*;

fn bodies(max_body_mb: usize) -> Bodies {
    Bodies::new(&ServerConfig { max_body_mb, ..ServerConfig::default() })
}

/// A body in pieces, each after a pause.
fn trickling(pieces: usize, piece: &'static [u8], pause: Duration) -> Request<Body> {
    let pieces = stream::iter(0..pieces).then(move |_| async move {
        sleep(pause).await;
        Ok::<_, std::io::Error>(Bytes::from_static(piece))
    });
    Request::post("/")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from_stream(pieces))
        .unwrap()
}

async fn message(error: ApiError) -> (StatusCode, String) {
    let response = error.into_response();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_body_that_trickles_is_waited_for_and_not_for_ever() {
    let bodies = bodies(64);
    let pause = bodies.pause / 2;
    let slow = read_json(trickling(15, b"x", pause), &bodies).await.unwrap();
    assert_eq!(&*slow, b"x".repeat(15));

    let before = Instant::now();
    let endless = read_json(trickling(1_000_000, b"x", pause), &bodies).await.err().unwrap();
    let took = before.elapsed();
    let expected = pause + bodies.pause * BODY_PAUSES;
    assert!((expected..expected + Duration::from_secs(1)).contains(&took), "{took:?}");
    let (status, told) = message(endless).await;
    assert_eq!(status, StatusCode::REQUEST_TIMEOUT);
    assert!(told.contains("it was not whole after 600 s, which is 10 times [server] body_timeout"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_body_of_unknown_length_takes_room_when_it_gets_large_and_keeps_what_it_needs() {
    const PIECE: &[u8] = &[b'x'; 600 << 10];
    let bodies = bodies(2);
    let small = read_json(trickling(1, PIECE, Duration::ZERO), &bodies).await.unwrap();
    assert!(small.place.is_none());
    let mut large = Vec::new();
    // While it is read, each counts as one of the largest: 17 of 1,800 KiB and one of 2 MiB fit into 32 MiB.
    for _ in 0..20 {
        let body = read_json(trickling(3, PIECE, Duration::ZERO), &bodies).await;
        large.extend(body.ok());
    }
    assert_eq!(large.len(), 18);
    let refused = read_json(trickling(3, PIECE, Duration::ZERO), &bodies).await.err().unwrap();
    assert_eq!(message(refused).await.0, StatusCode::SERVICE_UNAVAILABLE);
    drop(large);
    assert!(read_json(trickling(3, PIECE, Duration::ZERO), &bodies).await.is_ok());
}

#[test]
fn json_is_known_by_its_content_type() {
    for good in
        ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/x+json"]
    {
        assert!(is_json(good), "{good}");
    }
    for bad in ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonp", "text/json+x"] {
        assert!(!is_json(bad), "{bad}");
    }
}
