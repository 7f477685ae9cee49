//! Answers with many vectors. Their memory is counted with that of large bodies, and they are written while they are sent: as text,
//! a number takes three times as much. Knows no wire format.

use std::convert::Infallible;
use std::iter;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use memchr::memmem;
use serde::Serialize;

use crate::error::ApiResult;
use crate::json::push_json;
use crate::limits::body_limit::{BodyPermit, SMALL_BODY};
use crate::limits::peer_share::PeerKey;
use crate::limits::read_body::BodyReader;

/// The memory of `count` vectors, all as long as the first of those that are made.
pub(crate) fn memory_of(count: usize, made: &[Vec<f32>]) -> usize {
    let length = made.first().map_or(0, Vec::len);
    count.saturating_mul(length).saturating_mul(size_of::<f32>())
}

/// Waits for this much memory. `None` if it is little, and not counted. Release the body of the request before: a request that
/// kept it while it waits for more could wait for another that does the same.
pub(crate) async fn room(
    bodies: &BodyReader,
    peer: Option<PeerKey>,
    bytes: usize,
) -> ApiResult<Option<BodyPermit>> {
    match bytes <= SMALL_BODY {
        true => Ok(None),
        // Boxed, because only large answers need it.
        false => Box::pin(bodies.hold(peer, bytes)).await.map(Some),
    }
}

/// Sends `around`, which has an empty list of the name `list`, with the vectors in this list. `write` writes one of them, with its
/// index, when those before it have been sent. Then it is freed; the permit is held until the end.
pub(crate) fn in_pieces(
    around: &impl Serialize,
    list: &str,
    vectors: Vec<Vec<f32>>,
    write: impl Fn(usize, Vec<f32>, &mut Vec<u8>) + Send + 'static,
    permit: BodyPermit,
) -> Response {
    let mut head = Vec::new();
    push_json(&mut head, around);
    // Not within a text, where the quotes would be escaped.
    let name = format!("\"{list}\":[");
    let inside = memmem::find(&head, name.as_bytes()).map_or(head.len(), |at| at + name.len());
    let tail = head.split_off(inside);
    let written = vectors.into_iter().enumerate().map(move |(index, vector)| {
        let mut piece = Vec::new();
        if index > 0 {
            piece.push(b',');
        }
        write(index, vector, &mut piece);
        piece
    });
    let pieces = iter::once(head).chain(written).chain(iter::once(tail)).map(move |piece| {
        let _held = &permit;
        Ok::<_, Infallible>(Bytes::from(piece))
    });
    let content_type = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (content_type, Body::from_stream(stream::iter(pieces))).into_response()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hob_config::ServerConfig;
    use http_body_util::BodyExt;
    use serde_json::json;

    use super::*;
    use crate::error::ApiError;

    #[tokio::test]
    async fn the_pieces_are_one_json_text() {
        let around = json!({ "model": "\"list\":[", "list": [], "rest": [] });
        let vectors = vec![vec![0.5], vec![1.0, 2.0]];
        let write = |index, vector: Vec<f32>, out: &mut Vec<u8>| push_json(out, &json!([index, vector]));
        let response = in_pieces(&around, "list", vectors, write, BodyPermit::default());
        assert_eq!(response.headers()["content-type"], "application/json");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let expected = r#"{"model":"\"list\":[","list":[[0,[0.5]],[1,[1.0,2.0]]],"rest":[]}"#;
        assert_eq!(String::from_utf8_lossy(&body), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn large_answers_are_counted_until_they_are_sent() {
        let config =
            ServerConfig { max_body_mb: 2, queue_timeout: Duration::ZERO, ..ServerConfig::default() };
        let bodies = BodyReader::new(&config);
        let first = [vec![0.0; 512]];
        let answer = async || {
            let permit = room(&bodies, None, memory_of(1024, &first)).await?.unwrap_or_default();
            let write = |_, _, _: &mut Vec<u8>| {};
            Ok::<_, ApiError>(in_pieces(&json!([]), "list", Vec::new(), write, permit))
        };
        let mut unsent = Vec::new();
        while let Ok(response) = answer().await {
            unsent.push(response);
            assert!(unsent.len() <= 16, "sixteen of the largest fit");
        }
        assert_eq!(unsent.len(), 16);
        let small = room(&bodies, None, memory_of(512, &first)).await.unwrap();
        assert!(small.is_none(), "small ones are not counted");
        unsent.pop();
        assert!(answer().await.is_ok());
    }
}
