//! `GET /v1/events`: what Hob does, as server-sent events. For the owner only, because it shows the texts of all callers.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, UNIX_EPOCH};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::FutureExt;
use hob_core::{PublishedEvent, Subscription};
use http_body::Frame;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Interval;

use crate::error::ApiResult;
use crate::request_context::RequestContext;
use crate::state::SharedState;
use crate::stream_key::CheckedKey;

/// Events that wait for a slow reader. Further ones are counted and reported.
const MAX_QUEUED_EVENTS: usize = 256;

/// The interval of comments that show that the connection is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

pub(crate) async fn watch(State(state): SharedState, request: Request) -> ApiResult<Response> {
    RequestContext::check_owner(request.extensions(), "/v1/events")?;
    let (sender, receiver) = mpsc::channel(MAX_QUEUED_EVENTS);
    let missed = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&missed);
    let subscription = state.system.bus().subscribe(move |happening| {
        if sender.try_send(event(happening)).is_err() {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    let events = EventStream {
        key: CheckedKey::of(request.extensions(), state.keys.as_ref()),
        receiver,
        missed,
        heartbeat: tokio::time::interval(HEARTBEAT),
        stopping: state.stopping.clone().cancelled_owned().boxed(),
        _subscription: subscription,
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    Ok((headers, Body::new(events)).into_response())
}

fn event(happening: &PublishedEvent) -> Bytes {
    let at = happening.at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let name = happening.event.name();
    let data = json!({ "event": name, "at": at, "run": &*happening.run, "data": happening.event.data() });
    format!("event: {name}\ndata: {data}\n\n").into()
}

/// The body. It ends when the reader leaves, its key changes, or the server stops.
struct EventStream {
    /// `None` without a named key.
    key: Option<CheckedKey>,
    receiver: mpsc::Receiver<Bytes>,
    missed: Arc<AtomicU64>,
    heartbeat: Interval,
    stopping: futures::future::BoxFuture<'static, ()>,
    _subscription: Subscription,
}

impl http_body::Body for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if this.stopping.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        let missed = this.missed.swap(0, Ordering::Relaxed);
        if missed > 0 {
            let comment = format!(": {missed} events were skipped because this client reads too slowly\n\n");
            return Poll::Ready(Some(Ok(Frame::data(comment.into()))));
        }
        let next = match this.receiver.poll_recv(context) {
            Poll::Ready(event) => event,
            Poll::Pending => {
                ready!(this.heartbeat.poll_tick(context));
                Some(Bytes::from_static(b": alive\n\n"))
            }
        };
        // Before each event, because it shows texts that the key may no longer read.
        let goes_on = this.key.as_ref().is_none_or(CheckedKey::is_unchanged);
        Poll::Ready(next.filter(|_| goes_on).map(|bytes| Ok(Frame::data(bytes))))
    }
}
