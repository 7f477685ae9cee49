//! Reads the JSON body of a request, within limits of size and time.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Request, header};
use bytes::{Bytes, BytesMut};
use hob_config::ServerConfig;
use http_body_util::BodyExt;
use tokio::time::Instant;

use crate::blocking_pool::BlockingPool;
use crate::content_type::{check_content_type, content_type};
use crate::error::{ApiError, ApiResult};
use crate::limits::body_limit::{BodyLimit, BodyPermit, SMALL_BODY};
use crate::limits::peer_share::PeerKey;
use crate::request_context::RequestContext;

/// How much of a refused body is still read, and for how long.
const MAX_DISCARDED: usize = 256 << 20;
const MAX_DISCARD_TIME: Duration = Duration::from_secs(2);

/// A whole body can take this many times the longest pause.
const MAX_PAUSES: u32 = 10;

/// The minimum average rate of a body, after the longest pause has passed once.
const MIN_BYTES_PER_SECOND: usize = 1 << 10;

/// The limits for bodies.
pub(crate) struct BodyReader {
    max_mb: usize,
    max_bytes: usize,
    /// The longest pause between two pieces, `[server] body_timeout`.
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

    /// Registers a body of this length, if it is not too large.
    async fn begin(&self, peer: Option<PeerKey>, length: usize) -> ApiResult<BodyPermit> {
        match length > self.max_bytes {
            true => Err(ApiError::too_large(self.max_mb)),
            false => self.limit.begin(peer, Some(length)).await,
        }
    }

    /// Waits for capacity for large stored data, which an answer is made of or a request continues. It counts like a request body.
    pub(crate) async fn hold(&self, peer: Option<PeerKey>, bytes: usize) -> ApiResult<BodyPermit> {
        let bytes = bytes.min(self.max_bytes);
        let mut permit = self.limit.begin(peer, Some(bytes)).await?;
        self.limit.grow(&mut permit, bytes).await?;
        Ok(permit)
    }
}

/// The bytes of an answer that `render` makes of stored data, which blocks. A large answer is counted with the large bodies as long as it is
/// in memory, so it is made again when there is room for it.
pub(crate) async fn rendered(
    pool: &BlockingPool,
    bodies: &BodyReader,
    peer: Option<PeerKey>,
    render: impl Fn() -> ApiResult<Vec<u8>> + Send + Sync + 'static,
) -> ApiResult<Bytes> {
    let render = Arc::new(render);
    let again = Arc::clone(&render);
    let body = pool.run(move || render()).await?;
    if body.len() <= SMALL_BODY {
        return Ok(body.into());
    }
    let bytes = body.len();
    drop(body);
    let permit = bodies.hold(peer, bytes).await?;
    let body = pool.run(move || again()).await?;
    Ok(counted(body, permit))
}

/// Bytes that are counted as long as any part of them is in memory.
pub(crate) fn counted(bytes: Vec<u8>, permit: BodyPermit) -> Bytes {
    struct Counted {
        bytes: Vec<u8>,
        #[expect(dead_code, reason = "held for its drop")]
        permit: BodyPermit,
    }

    impl AsRef<[u8]> for Counted {
        fn as_ref(&self) -> &[u8] {
            &self.bytes
        }
    }

    Bytes::from_owner(Counted { bytes, permit })
}

/// A body with its permit. Keep the permit as long as the contents of the body are in use.
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

/// Runs `work` on a body. Work on a large body runs in the pool, so that it does not block a worker thread.
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

/// Reads the whole body of a JSON request.
pub(crate) async fn read_json(request: Request<Body>, bodies: &BodyReader) -> ApiResult<JsonBody> {
    check_content_type(request.uri().path(), request.headers())?;
    read_whole(request, bodies).await
}

/// Reads the whole body of a request, whatever it is. Foreign web pages can send such requests, and are refused by their `Origin` before.
pub(crate) async fn read_bytes(request: Request<Body>, bodies: &BodyReader) -> ApiResult<JsonBody> {
    read_whole(request, bodies).await
}

/// Reads the whole body of a form with a file in it, and its content type. Foreign web pages can send forms, and are refused by
/// their `Origin` before.
pub(crate) async fn read_form(request: Request<Body>, bodies: &BodyReader) -> ApiResult<(String, JsonBody)> {
    let content_type = content_type(request.headers()).to_owned();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("multipart/form-data") {
        return Err(ApiError::not_form(&content_type));
    }
    Ok((content_type, read_whole(request, bodies).await?))
}

/// Reads the whole body of a request that is a file. Foreign web pages can send files, and are refused by their `Origin` before.
pub(crate) async fn read_file(request: Request<Body>, bodies: &BodyReader) -> ApiResult<JsonBody> {
    read_whole(request, bodies).await
}

async fn read_whole(request: Request<Body>, bodies: &BodyReader) -> ApiResult<JsonBody> {
    let announced = announced_length(request.headers());
    // A client that sends `Expect` has not started to send the body.
    let is_under_way = !request.headers().contains_key(header::EXPECT);
    let peer = RequestContext::peer_key(request.extensions());
    let mut body = request.into_body();
    let mut permit = BodyPermit::default();
    if let Some(length) = announced.filter(|length| *length > SMALL_BODY) {
        // Boxed, because only large bodies need it.
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
    // Nearly every body arrives in one piece and needs no copy.
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

/// A body whose first piece has arrived.
struct Arrival {
    peer: Option<PeerKey>,
    /// Whether its length is known and its part of the peer's share is taken.
    is_announced: bool,
    first: Bytes,
    permit: BodyPermit,
}

/// Reads a body that arrives in several pieces.
async fn gather(body: &mut Body, arrival: Arrival, bodies: &BodyReader) -> ApiResult<JsonBody> {
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
                    // Its length is unknown, so the largest is assumed.
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

/// The time limit for the next piece, and the error if it passes.
struct Deadline {
    at: Instant,
    late: fn() -> ApiError,
}

/// The limit for the next piece when `come` bytes have arrived: the longest pause, or the minimum average rate if that is
/// sooner.
fn deadline(began: Instant, come: usize, pause: Duration) -> Deadline {
    let by_pause = Deadline { at: later(Instant::now(), pause), late: ApiError::body_stalled };
    let earned = Duration::from_millis((come.saturating_mul(1000) / MIN_BYTES_PER_SECOND) as u64);
    let by_rate = Deadline {
        at: later(began, pause.saturating_add(earned)),
        late: || ApiError::body_too_slow(MIN_BYTES_PER_SECOND),
    };
    if by_rate.at < by_pause.at { by_rate } else { by_pause }
}

/// `from` plus `by`. A time that the clock cannot represent becomes a year.
fn later(from: Instant, by: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    from.checked_add(by).unwrap_or(from + YEAR)
}

/// Reads on for a moment after a body was refused. A client that is still sending would otherwise find the connection closed and
/// never read the error.
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
    // A client that takes longer does not get the error.
    let _ = tokio::time::timeout(MAX_DISCARD_TIME, reading).await;
}

async fn next_piece(body: &mut Body, within: Deadline) -> ApiResult<Option<Bytes>> {
    loop {
        let frame = tokio::time::timeout_at(within.at, body.frame()).await.map_err(|_| (within.late)())?;
        match frame {
            None => return Ok(None),
            Some(Err(error)) => {
                return Err(ApiError::malformed(format!("the request body is incomplete: {error}")));
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

#[cfg(test)]
#[path = "read_body_tests.rs"]
mod tests;
