//! Reads a request's JSON body: not too large, not too slow, and really JSON.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Request, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;

use crate::error::ApiError;

/// How much of a body that is refused is taken nevertheless, and for how long.
const MOST_UNWANTED: usize = 256 << 20;
const UNWANTED_TIME: Duration = Duration::from_secs(2);

/// What a body may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimits {
    pub(crate) max_mb: usize,
    /// The longest pause between two pieces.
    pub(crate) pause: Duration,
}

impl BodyLimits {
    fn max_bytes(&self) -> usize {
        self.max_mb.saturating_mul(1 << 20)
    }
}

/// The whole body of a request that says it is JSON.
pub(crate) async fn read_json(request: Request<Body>, limits: BodyLimits) -> Result<Bytes, ApiError> {
    let content_type = content_type(request.headers());
    if !is_json(content_type) {
        return Err(ApiError::not_json(content_type));
    }
    let max_bytes = limits.max_bytes();
    let announced = announced_length(request.headers());
    // Whoever asks first whether to send it has nothing under way.
    let is_under_way = !request.headers().contains_key(header::EXPECT);
    let mut body = request.into_body();
    if announced.is_some_and(|length| length > max_bytes) {
        if is_under_way {
            let_finish(&mut body).await;
        }
        return Err(ApiError::too_large(limits.max_mb));
    }
    let Some(first) = next_piece(&mut body, limits.pause).await? else {
        return Ok(Bytes::new());
    };
    // Nearly every body comes in one piece, which needs no copy.
    if announced == Some(first.len()) {
        return Ok(first);
    }
    let mut whole = BytesMut::from(first);
    loop {
        if whole.len() > max_bytes {
            drop(whole);
            let_finish(&mut body).await;
            return Err(ApiError::too_large(limits.max_mb));
        }
        match next_piece(&mut body, limits.pause).await? {
            Some(piece) => whole.extend_from_slice(&piece),
            None => return Ok(whole.freeze()),
        }
    }
}

/// Takes what is still coming of a body that is refused, for a moment. A client in the middle of sending would otherwise find
/// the connection closed, and never read why.
async fn let_finish(body: &mut Body) {
    let reading = async {
        let mut left = MOST_UNWANTED;
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                return;
            }
        }
    };
    // Whoever takes longer has to do without the reason.
    let _ = tokio::time::timeout(UNWANTED_TIME, reading).await;
}

async fn next_piece(body: &mut Body, pause: Duration) -> Result<Option<Bytes>, ApiError> {
    loop {
        let frame = tokio::time::timeout(pause, body.frame()).await.map_err(|_| ApiError::slow_body())?;
        match frame {
            None => return Ok(None),
            Some(Err(error)) => {
                return Err(ApiError::malformed(format!("the request body broke off: {error}")));
            }
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

fn announced_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn content_type(headers: &HeaderMap) -> &str {
    headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// `application/json`, with or without parameters, and its relatives (`application/x+json`).
fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence.strip_prefix("application/").is_some_and(|kind| kind == "json" || kind.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_known_by_its_content_type() {
        for good in
            ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/x+json"]
        {
            assert!(is_json(good), "{good}");
        }
        for bad in ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonp", "text/json+x"]
        {
            assert!(!is_json(bad), "{bad}");
        }
    }
}
