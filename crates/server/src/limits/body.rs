//! Reads a request's JSON body: not too large, not too slow, and really JSON.

use std::ops::Deref;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Request, header};
use bytes::{Bytes, BytesMut};
use hob_config::ServerConfig;
use http_body_util::BodyExt;
use tokio::time::Instant;

use crate::blocking_pool::BlockingPool;
use crate::error::ApiError;
use crate::limits::body_limit::{BodyLimit, BodyPermit, SMALL_BODY};
use crate::limits::peer_share::PeerKey;
use crate::request_context::RequestContext;

/// How much of a body that is refused is taken nevertheless, and for how long.
const MAX_DISCARDED: usize = 256 << 20;
const MAX_DISCARD_TIME: Duration = Duration::from_secs(2);

/// The whole of a body may take so many times as long as the longest pause.
const MAX_PAUSES: u32 = 10;

/// Bytes a second that a body comes with on average, once it has taken as long as the longest pause.
const MIN_BYTES_PER_SECOND: usize = 1 << 10;

/// What bodies may be.
pub(crate) struct BodyReader {
    max_mb: usize,
    max_bytes: usize,
    /// The longest pause between two pieces.
    max_pause: Duration,
    limit: BodyLimit,
}

impl BodyReader {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        BodyReader {
            max_mb: config.max_body_mb,
            max_bytes: config.max_body_bytes(),
            max_pause: config.body_timeout,
            limit: BodyLimit::new(config.max_body_bytes(), config.queue_timeout),
        }
    }

    /// Lets a body of this length begin, if it may be that long.
    async fn begin(&self, peer: Option<PeerKey>, length: usize) -> Result<BodyPermit, ApiError> {
        match length > self.max_bytes {
            true => Err(ApiError::too_large(self.max_mb)),
            false => self.limit.begin(peer, Some(length)).await,
        }
    }
}

/// A body, and the room it takes. Whoever goes on with what was in it keeps the room as long.
pub(crate) struct JsonBody {
    pub(crate) bytes: Bytes,
    pub(crate) permit: BodyPermit,
}

impl Deref for JsonBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Does `work` on a body: on a large one, such as one with pictures in it, where it holds nobody else up.
pub(crate) async fn process<T: Send + 'static>(
    body: Bytes,
    pool: &BlockingPool,
    work: impl FnOnce(&[u8]) -> T + Send + 'static,
) -> T {
    match body.len() {
        ..=SMALL_BODY => work(&body),
        _ => Box::pin(pool.run(move || work(&body))).await,
    }
}

/// Turns a request away that does not say it is JSON. Asked also of those that have no body: a web page of somebody else's can
/// send a plain form, or nothing, without asking the browser's leave first, but no JSON.
pub(crate) fn require_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let content_type = content_type(headers);
    if is_json(content_type) { Ok(()) } else { Err(ApiError::not_json(content_type)) }
}

/// The whole body of a request that says it is JSON.
pub(crate) async fn read_json(request: Request<Body>, bodies: &BodyReader) -> Result<JsonBody, ApiError> {
    require_json(request.headers())?;
    let announced = announced_length(request.headers());
    // Whoever asks first whether to send it has nothing under way.
    let is_under_way = !request.headers().contains_key(header::EXPECT);
    let peer = RequestContext::peer_key(request.extensions());
    let mut body = request.into_body();
    let mut permit = BodyPermit::default();
    if let Some(length) = announced.filter(|length| *length > SMALL_BODY) {
        // Boxed, as all that few bodies need: those that come in one piece should not pay for it.
        match Box::pin(bodies.begin(peer, length)).await {
            Ok(begun) => permit = begun,
            Err(error) => {
                if is_under_way {
                    Box::pin(discard_rest(&mut body)).await;
                }
                return Err(error);
            }
        }
    }
    let first_within = Deadline { at: later(Instant::now(), bodies.max_pause), late: ApiError::body_stalled };
    let Some(first) = next_piece(&mut body, first_within).await? else {
        return Ok(JsonBody { bytes: Bytes::new(), permit });
    };
    // Nearly every body comes in one piece, which needs no copy.
    if announced == Some(first.len()) && first.len() <= SMALL_BODY {
        return Ok(JsonBody { bytes: first, permit });
    }
    let whole = bodies.max_pause.saturating_mul(MAX_PAUSES);
    let arrival = Arrival { peer, is_announced: announced.is_some(), first, permit };
    match tokio::time::timeout(whole, Box::pin(gather(&mut body, arrival, bodies))).await {
        Ok(read) => read,
        Err(_) => Err(ApiError::body_timeout(whole.as_secs_f32(), MAX_PAUSES)),
    }
}

/// A body of which the first piece has come.
struct Arrival {
    peer: Option<PeerKey>,
    /// Whether its length is known, and so its part of the peer's share taken.
    is_announced: bool,
    first: Bytes,
    permit: BodyPermit,
}

/// A body that comes in pieces.
async fn gather(body: &mut Body, arrival: Arrival, bodies: &BodyReader) -> Result<JsonBody, ApiError> {
    let began = Instant::now();
    let Arrival { peer, mut is_announced, first, mut permit } = arrival;
    let mut whole = BytesMut::from(first);
    loop {
        if whole.len() > bodies.max_bytes {
            drop(whole);
            discard_rest(body).await;
            return Err(ApiError::too_large(bodies.max_mb));
        }
        if whole.len() > SMALL_BODY {
            let room = async {
                if !is_announced {
                    // How long it gets nobody said, so it may be the longest.
                    permit = bodies.limit.begin(peer, None).await?;
                    is_announced = true;
                }
                bodies.limit.grow(&mut permit, whole.len()).await
            };
            if let Err(error) = room.await {
                drop(whole);
                discard_rest(body).await;
                return Err(error);
            }
        }
        match next_piece(body, deadline(began, whole.len(), bodies.max_pause)).await? {
            Some(piece) => whole.extend_from_slice(&piece),
            None => {
                permit.shrink_to(whole.len());
                return Ok(JsonBody { bytes: whole.freeze(), permit });
            }
        }
    }
}

/// When the next piece has to be there, and what is said if it is not.
struct Deadline {
    at: Instant,
    late: fn() -> ApiError,
}

/// For the next piece of a body of which so much has come: after a pause that is not too long, and soon enough for the average.
fn deadline(began: Instant, come: usize, pause: Duration) -> Deadline {
    let by_pause = Deadline { at: later(Instant::now(), pause), late: ApiError::body_stalled };
    let earned = Duration::from_millis((come.saturating_mul(1000) / MIN_BYTES_PER_SECOND) as u64);
    let by_rate = Deadline {
        at: later(began, pause.saturating_add(earned)),
        late: || ApiError::body_too_slow(MIN_BYTES_PER_SECOND),
    };
    if by_rate.at < by_pause.at { by_rate } else { by_pause }
}

/// A time so far away that no clock has it is as good as a year from now.
fn later(from: Instant, by: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    from.checked_add(by).unwrap_or(from + YEAR)
}

/// Takes what is still coming of a body that is refused, for a moment. A client in the middle of sending would otherwise find
/// the connection closed, and never read why.
async fn discard_rest(body: &mut Body) {
    let reading = async {
        let mut left = MAX_DISCARDED;
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                return;
            }
        }
    };
    // Whoever takes longer has to do without the reason.
    let _ = tokio::time::timeout(MAX_DISCARD_TIME, reading).await;
}

async fn next_piece(body: &mut Body, within: Deadline) -> Result<Option<Bytes>, ApiError> {
    loop {
        let frame = tokio::time::timeout_at(within.at, body.frame()).await.map_err(|_| (within.late)())?;
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
