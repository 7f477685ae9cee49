//! Limits the streams of pages that one caller has open: a stream has no end of its own.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::limits::peer_share::PeerKey;

/// Streams of one key, or of one address without a named key. A browser has one for each visible page.
const MAX_LIVE_STREAMS: usize = 16;

/// Whose streams are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum StreamOwner {
    /// A named key or an identity.
    Key(Arc<str>),
    /// `None` for loopback.
    Peer(Option<PeerKey>),
}

/// The open streams of each caller.
#[derive(Default)]
pub(crate) struct LiveStreams {
    open: Mutex<HashMap<StreamOwner, usize>>,
}

/// A stream that counts until this is dropped.
pub(crate) struct LivePlace {
    owner: StreamOwner,
    streams: Arc<LiveStreams>,
}

impl LiveStreams {
    /// `None` if the caller has too many.
    pub(crate) fn open(self: &Arc<Self>, owner: StreamOwner) -> Option<LivePlace> {
        let mut open = self.open.lock();
        let count = open.entry(owner.clone()).or_default();
        if *count >= MAX_LIVE_STREAMS {
            return None;
        }
        *count += 1;
        Some(LivePlace { owner, streams: Arc::clone(self) })
    }
}

impl Drop for LivePlace {
    fn drop(&mut self) {
        let mut open = self.streams.open.lock();
        if let Some(count) = open.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_caller_has_its_own_streams_and_one_that_ends_makes_room() {
        let streams: Arc<LiveStreams> = Arc::default();
        let ana = || StreamOwner::Key("ana".into());
        let mut held: Vec<_> = (0..MAX_LIVE_STREAMS).map(|_| streams.open(ana()).expect("room")).collect();
        assert!(streams.open(ana()).is_none());
        assert!(streams.open(StreamOwner::Key("ben".into())).is_some());
        assert!(streams.open(StreamOwner::Peer(None)).is_some());
        held.pop();
        let last = streams.open(ana());
        assert!(last.is_some());
        drop((held, last));
        assert!(streams.open.lock().is_empty(), "nothing is kept of callers that left");
    }
}
