//! Reads a request's JSON body: not too large, not too slow, and really JSON.

use std::ops::Deref;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Request, header};
use bytes::{Bytes, BytesMut};
use hob_config::ServerConfig;
use http_body_util::BodyExt;

use crate::error::ApiError;
use crate::room::{Place, Room, SMALL};

/// How much of a body that is refused is taken nevertheless, and for how long.
const MOST_UNWANTED: usize = 256 << 20;
const UNWANTED_TIME: Duration = Duration::from_secs(2);

/// The whole of a body may take so many times as long as the longest pause.
pub(crate) const BODY_PAUSES: u32 = 10;

/// What bodies may be.
pub(crate) struct Bodies {
    max_mb: usize,
    max_bytes: usize,
    /// The longest pause between two pieces.
    pause: Duration,
    room: Room,
}

impl Bodies {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        Bodies {
            max_mb: config.max_body_mb,
            max_bytes: config.max_body_bytes(),
            pause: config.body_timeout,
            room: Room::new(config.max_body_bytes(), config.queue_timeout),
        }
    }

    /// Room for a body of this length, if it may be that long.
    async fn room_for(&self, length: usize) -> Result<Place, ApiError> {
        match length > self.max_bytes {
            true => Err(ApiError::too_large(self.max_mb)),
            false => self.room.take(length).await,
        }
    }
}

/// A body, and the room it takes. Whoever goes on with what was in it keeps the room as long.
pub(crate) struct JsonBody {
    pub(crate) bytes: Bytes,
    pub(crate) place: Place,
}

impl Deref for JsonBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The whole body of a request that says it is JSON.
pub(crate) async fn read_json(request: Request<Body>, bodies: &Bodies) -> Result<JsonBody, ApiError> {
    let content_type = content_type(request.headers());
    if !is_json(content_type) {
        return Err(ApiError::not_json(content_type));
    }
    let announced = announced_length(request.headers());
    // Whoever asks first whether to send it has nothing under way.
    let is_under_way = !request.headers().contains_key(header::EXPECT);
    let mut body = request.into_body();
    let mut place = Place::default();
    if let Some(length) = announced.filter(|length| *length > SMALL) {
        // Boxed, as all that few bodies need: those that come in one piece should not pay for it.
        match Box::pin(bodies.room_for(length)).await {
            Ok(taken) => place = taken,
            Err(error) => {
                if is_under_way {
                    Box::pin(let_finish(&mut body)).await;
                }
                return Err(error);
            }
        }
    }
    let Some(first) = next_piece(&mut body, bodies.pause).await? else {
        return Ok(JsonBody { bytes: Bytes::new(), place });
    };
    // Nearly every body comes in one piece, which needs no copy.
    if announced == Some(first.len()) {
        return Ok(JsonBody { bytes: first, place });
    }
    let whole = bodies.pause.saturating_mul(BODY_PAUSES);
    match tokio::time::timeout(whole, Box::pin(gather(&mut body, first, place, bodies))).await {
        Ok(read) => read,
        Err(_) => Err(ApiError::endless_body(whole.as_secs_f32())),
    }
}

/// A body that comes in pieces.
async fn gather(
    body: &mut Body,
    first: Bytes,
    mut place: Place,
    bodies: &Bodies,
) -> Result<JsonBody, ApiError> {
    let mut whole = BytesMut::from(first);
    loop {
        if whole.len() > bodies.max_bytes {
            drop(whole);
            let_finish(body).await;
            return Err(ApiError::too_large(bodies.max_mb));
        }
        if whole.len() > SMALL && place.is_none() {
            // How long it gets nobody said, so it may be the longest.
            place = match bodies.room_for(bodies.max_bytes).await {
                Ok(taken) => taken,
                Err(error) => {
                    drop(whole);
                    let_finish(body).await;
                    return Err(error);
                }
            };
        }
        match next_piece(body, bodies.pause).await? {
            Some(piece) => whole.extend_from_slice(&piece),
            None => {
                place.shrink_to(whole.len());
                return Ok(JsonBody { bytes: whole.freeze(), place });
            }
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
#[path = "body_tests.rs"]
mod tests;
