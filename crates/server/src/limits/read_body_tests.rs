use axum::http::StatusCode;
use axum::response::IntoResponse;
use futures::stream::{self, StreamExt};
use tokio::time::{Instant, sleep};

use super::*;

fn bodies(max_body_mb: usize) -> BodyReader {
    BodyReader::new(&ServerConfig { max_body_mb, ..ServerConfig::default() })
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
async fn a_body_that_comes_slowly_is_waited_for_and_not_for_ever() {
    const KIBIBYTE: &[u8] = &[b'x'; 1 << 10];
    let bodies = bodies(64);
    let pause = bodies.max_pause / 2;
    // Pauses of any kind are fine as long as it is over soon.
    let slow = read_json(trickling(2, b"x", pause), &bodies).await.unwrap();
    assert_eq!(&*slow, b"xx");
    let fast_enough = read_json(trickling(300, KIBIBYTE, Duration::from_secs(1)), &bodies).await.unwrap();
    assert_eq!(fast_enough.len(), 300 << 10);

    let before = Instant::now();
    let endless =
        read_json(trickling(1_000_000, KIBIBYTE, Duration::from_secs(1)), &bodies).await.err().unwrap();
    let took = before.elapsed();
    let expected = bodies.max_pause * MAX_PAUSES;
    assert!((expected..expected + Duration::from_secs(2)).contains(&took), "{took:?}");
    let (status, told) = message(endless).await;
    assert_eq!(status, StatusCode::REQUEST_TIMEOUT);
    assert!(
        told.contains("it was not complete after 600 s, which is 10 times [server] body_timeout"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_that_comes_byte_by_byte_is_given_up() {
    let bodies = bodies(64);
    let before = Instant::now();
    let trickling =
        read_json(trickling(1_000_000, b"x", Duration::from_secs(1)), &bodies).await.err().unwrap();
    let took = before.elapsed();
    assert!((bodies.max_pause..bodies.max_pause * 2).contains(&took), "{took:?}");
    let (status, told) = message(trickling).await;
    assert_eq!(status, StatusCode::REQUEST_TIMEOUT);
    assert!(told.contains("it must arrive at 1024 bytes per second on average"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_body_of_unknown_length_takes_room_as_it_grows_and_keeps_what_it_needs() {
    const PIECE: &[u8] = &[b'x'; 600 << 10];
    let bodies = bodies(2);
    let mut read = Vec::new();
    // 17 of 1,800 KiB fit into the 32 MiB that there are: 16 into the 30 MiB for all, and one into the reserve.
    for _ in 0..20 {
        let body = read_json(trickling(3, PIECE, Duration::ZERO), &bodies).await;
        read.extend(body.ok());
    }
    assert_eq!(read.len(), 17);
    let refused = read_json(trickling(3, PIECE, Duration::ZERO), &bodies).await.err().unwrap();
    assert_eq!(message(refused).await.0, StatusCode::SERVICE_UNAVAILABLE);
    let small = read_json(trickling(1, PIECE, Duration::ZERO), &bodies).await;
    assert!(small.is_ok(), "small ones need none");
    drop(read);
    assert!(read_json(trickling(3, PIECE, Duration::ZERO), &bodies).await.is_ok());
}
