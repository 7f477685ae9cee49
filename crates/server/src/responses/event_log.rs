//! The events of a response in the background, and the clients that follow them. A client gets small copies, so that slow clients do
//! not multiply a long log.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use futures::stream::{self, Stream};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::answer::MAX_SILENCE;

/// Bytes of the events of one response. The events of a longer one cannot be read; the response can.
const MAX_LOG_BYTES: usize = 16 << 20;

/// Bytes that a client gets at a time.
const PIECE_BYTES: usize = 64 << 10;

/// What a client gets that would hear nothing for too long.
const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// The events of a response, while it runs and after its end.
pub(super) struct EventLog {
    written: Mutex<Written>,
    /// Changes with every event, and at the end.
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct Written {
    bytes: Vec<u8>,
    /// Where each event ends. Its place in the list is its sequence number.
    ends: Vec<usize>,
    /// The events were too long, or are not kept any more.
    is_gone: bool,
    ended: Option<Instant>,
}

impl Written {
    /// Adds whole events. Comments between them are not kept.
    fn add(&mut self, events: &[u8]) {
        if self.is_gone || self.bytes.len() + events.len() > MAX_LOG_BYTES {
            self.discard();
            return;
        }
        let mut rest = events;
        while let Some(end) = rest.windows(2).position(|pair| pair == b"\n\n") {
            let (event, after) = rest.split_at(end + 2);
            rest = after;
            if !event.starts_with(b":") {
                self.bytes.extend_from_slice(event);
                self.ends.push(self.bytes.len());
            }
        }
    }

    fn discard(&mut self) {
        (self.bytes, self.ends, self.is_gone) = (Vec::new(), Vec::new(), true);
    }

    /// Where the event of this number begins, once the one before it is there.
    fn start_of(&self, event: usize) -> Option<usize> {
        match event.checked_sub(1) {
            None => Some(0),
            Some(before) => self.ends.get(before).copied(),
        }
    }
}

impl EventLog {
    pub(super) fn new() -> Self {
        EventLog { written: Mutex::default(), changed: watch::Sender::new(()) }
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, events: &[u8]) {
        self.written().add(events);
        self.changed.send_replace(());
    }

    pub(super) fn end(&self) {
        self.written().ended.get_or_insert_with(Instant::now);
        self.changed.send_replace(());
    }

    pub(super) fn ended(&self) -> Option<Instant> {
        self.written().ended
    }

    pub(super) async fn until_end(&self) {
        let mut changed = self.changed.subscribe();
        while self.ended().is_none() && changed.changed().await.is_ok() {}
    }

    /// Frees the events, also if a slow client still reads them.
    pub(super) fn discard(&self) {
        self.written().discard();
        self.changed.send_replace(());
    }

    /// The events from the one of this number on, as they come.
    pub(super) fn follow(
        self: Arc<Self>,
        first: usize,
    ) -> impl Stream<Item = Result<Bytes, EventsGone>> + Send + 'static {
        let changed = self.changed.subscribe();
        let follower = Follower { log: self, changed, next: first, position: None, is_over: false };
        stream::unfold(follower, |mut follower| async move {
            let piece = follower.next_piece().await?;
            Some((piece, follower))
        })
    }
}

/// The events were too long, or are not kept any more.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EventsGone {
    /// The number of the next event that the client does not have.
    pub(super) next: usize,
    /// Whether the client has a part of it.
    pub(super) is_within_event: bool,
}

/// A client that reads the events of a response.
struct Follower {
    log: Arc<EventLog>,
    changed: watch::Receiver<()>,
    /// The number of the next event.
    next: usize,
    /// Where the next piece begins, if it begins within the event `next`; `None` if it begins at its start, or that event is not there.
    position: Option<usize>,
    is_over: bool,
}

impl Follower {
    /// Bytes that this client does not have yet; `None` after the last ones.
    async fn next_piece(&mut self) -> Option<Result<Bytes, EventsGone>> {
        while !self.is_over {
            self.changed.mark_unchanged();
            if let Some(piece) = self.ready_piece() {
                return Some(piece);
            }
            if self.is_over {
                break;
            }
            match timeout(MAX_SILENCE, self.changed.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => break,
                // Only whole events are logged, so a client waits only between two of them.
                Err(_) => return Some(Ok(Bytes::from_static(KEEP_ALIVE))),
            }
        }
        None
    }

    fn ready_piece(&mut self) -> Option<Result<Bytes, EventsGone>> {
        let written = self.log.written();
        if written.is_gone {
            self.is_over = true;
            return Some(Err(EventsGone { next: self.next, is_within_event: self.position.is_some() }));
        }
        let has_ended = written.ended.is_some();
        let start = self.position.or_else(|| written.start_of(self.next));
        let rest = start.and_then(|start| written.bytes.get(start..)).unwrap_or_default();
        let piece = rest.get(..PIECE_BYTES).unwrap_or(rest);
        self.is_over = has_ended && piece.len() == rest.len();
        if piece.is_empty() {
            return None;
        }
        let end = start.unwrap_or(0) + piece.len();
        self.next = written.ends.partition_point(|event| *event <= end);
        let is_between = written.start_of(self.next) == Some(end);
        self.position = (!is_between).then_some(end);
        Some(Ok(Bytes::copy_from_slice(piece)))
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;

    async fn pieces(log: &Arc<EventLog>, first: usize) -> Vec<Result<Bytes, EventsGone>> {
        Arc::clone(log).follow(first).collect().await
    }

    async fn text(log: &Arc<EventLog>, first: usize) -> String {
        let pieces: Vec<Bytes> = pieces(log, first).await.into_iter().map(Result::unwrap).collect();
        String::from_utf8(pieces.concat()).unwrap()
    }

    #[tokio::test]
    async fn events_are_read_from_any_number_and_comments_are_not_kept() {
        let log = Arc::new(EventLog::new());
        log.add(b"event: a\ndata: {}\n\n: hob STEP {}\n\nevent: b\ndata: {}\n\n");
        log.add(b": hob STEP {}\n\n");
        log.add(b"event: c\ndata: {}\n\n");
        log.end();
        assert_eq!(text(&log, 0).await, "event: a\ndata: {}\n\nevent: b\ndata: {}\n\nevent: c\ndata: {}\n\n");
        assert_eq!(text(&log, 2).await, "event: c\ndata: {}\n\n");
        assert_eq!([text(&log, 3).await, text(&log, 9).await], ["", ""]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_waits_for_an_event_hears_that_the_connection_lives() {
        let log = Arc::new(EventLog::new());
        log.add(b"event: a\n\n");
        let mut pieces = std::pin::pin!(Arc::clone(&log).follow(0));
        assert_eq!(pieces.next().await.unwrap().unwrap(), "event: a\n\n");
        for _ in 0..2 {
            assert_eq!(pieces.next().await.unwrap().unwrap(), KEEP_ALIVE);
        }
        log.add(b"event: b\n\n");
        log.end();
        assert_eq!(pieces.next().await.unwrap().unwrap(), "event: b\n\n");
        assert!(pieces.next().await.is_none());
    }

    #[tokio::test]
    async fn a_long_event_comes_in_small_pieces() {
        let log = Arc::new(EventLog::new());
        let event = format!("event: a\ndata: \"{}\"\n\n", "x".repeat(3 * PIECE_BYTES));
        log.add(event.as_bytes());
        log.end();
        assert_eq!(text(&log, 0).await, event);
        let longest = pieces(&log, 0).await.iter().map(|piece| piece.as_ref().unwrap().len()).max();
        assert_eq!(longest, Some(PIECE_BYTES));
    }

    #[tokio::test]
    async fn events_that_are_too_long_are_not_kept() {
        let log = Arc::new(EventLog::new());
        let event = format!("event: a\ndata: \"{}\"\n\n", "x".repeat(MAX_LOG_BYTES / 2));
        log.add(event.as_bytes());
        let mut before = Box::pin(Arc::clone(&log).follow(0));
        assert!(before.next().await.unwrap().is_ok());
        log.add(event.as_bytes());
        log.add(b"event: b\ndata: {}\n\n");
        assert_eq!(pieces(&log, 0).await, [Err(EventsGone { next: 0, is_within_event: false })]);
        assert_eq!(before.next().await, Some(Err(EventsGone { next: 0, is_within_event: true })));
        assert_eq!(before.next().await, None);
        assert_eq!(log.written().bytes.capacity(), 0);
    }
}
