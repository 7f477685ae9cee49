//! Limits the memory for large request bodies. Small bodies are not counted: the limit of connections bounds them.
//!
//! A body is charged for the bytes that have arrived, not for its announced length, because announcing costs nothing. Capacity
//! for one of the largest bodies is reserved: one body at a time can finish with it, so that bodies that all wait for more
//! capacity do not deadlock. The announced lengths of one peer are charged to that peer's share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{ApiError, ApiResult};
use crate::limits::peer_share::{PEER_SHARE_DIVISOR, PeerKey};

/// Bodies up to this size are not counted.
pub(crate) const SMALL_BODY: usize = 1 << 20;

/// How many bodies of the largest size fit.
const MAX_LARGEST_BODIES: usize = 16;

/// The unit of the permits, so that the largest body fits into a semaphore's number.
const UNIT: usize = 1 << 10;

/// A growing body acquires this much at a time.
const GROWTH_STEP: usize = 1 << 20;

/// The capacity for large bodies.
pub(crate) struct BodyLimit {
    largest: usize,
    units: Arc<Semaphore>,
    /// One permit: the capacity of one of the largest bodies, for a body that could not finish otherwise.
    reserve: Arc<Semaphore>,
    /// The share of each peer that is sending a large body. An entry lives as long as a permit of it.
    shares: Mutex<HashMap<PeerKey, Weak<Semaphore>>>,
    max_wait: Duration,
}

/// The capacity that one request holds until this is dropped. A small body holds none.
#[derive(Default)]
pub(crate) struct BodyPermit {
    units: Option<OwnedSemaphorePermit>,
    /// If present, the rest of the body is charged to the reserve.
    reserve: Option<OwnedSemaphorePermit>,
    share: Option<PeerPermit>,
}

struct PeerPermit {
    taken: OwnedSemaphorePermit,
    /// Keeps the peer's entry in the table.
    _whole: Arc<Semaphore>,
}

impl BodyLimit {
    /// For bodies of at most `largest` bytes; `max_wait` is the longest wait.
    pub(crate) fn new(largest: usize, max_wait: Duration) -> Self {
        let units = units(largest).saturating_mul(MAX_LARGEST_BODIES - 1).min(Semaphore::MAX_PERMITS);
        BodyLimit {
            largest,
            units: Arc::new(Semaphore::new(units)),
            reserve: Arc::new(Semaphore::new(1)),
            shares: Mutex::default(),
            max_wait,
        }
    }

    /// Registers a body of this length; without a length the largest is assumed. Waits until the peer's share has enough left.
    pub(crate) async fn begin(&self, peer: Option<PeerKey>, bytes: Option<usize>) -> ApiResult<BodyPermit> {
        let bytes = bytes.unwrap_or(self.largest);
        let Some(peer) = peer.filter(|_| bytes > SMALL_BODY) else { return Ok(BodyPermit::default()) };
        let whole = self.share_of(peer);
        let wanted = u32::try_from(units(bytes)).unwrap_or(u32::MAX);
        let waiting = Arc::clone(&whole).acquire_many_owned(wanted);
        match tokio::time::timeout(self.max_wait, waiting).await {
            Ok(Ok(taken)) => {
                Ok(BodyPermit { share: Some(PeerPermit { taken, _whole: whole }), ..BodyPermit::default() })
            }
            Ok(Err(_)) | Err(_) => Err(ApiError::peer_body_limit_reached(
                self.max_wait.as_secs_f32(),
                MAX_LARGEST_BODIES / PEER_SHARE_DIVISOR,
            )),
        }
    }

    /// Acquires capacity for the `bytes` that have arrived, first come first served.
    pub(crate) async fn grow(&self, permit: &mut BodyPermit, bytes: usize) -> ApiResult<()> {
        let has = permit.units.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if bytes <= SMALL_BODY || permit.reserve.is_some() || units(bytes) <= has {
            return Ok(());
        }
        let target = units(bytes.next_multiple_of(GROWTH_STEP).min(self.largest).max(bytes));
        let wanted = u32::try_from(target - has).unwrap_or(u32::MAX);
        let more = Arc::clone(&self.units).acquire_many_owned(wanted);
        let last = Arc::clone(&self.reserve).acquire_owned();
        let waiting = async {
            tokio::select! {
                biased;
                more = more => more.map(|more| match &mut permit.units {
                    Some(units) => units.merge(more),
                    none => *none = Some(more),
                }),
                last = last => last.map(|last| permit.reserve = Some(last)),
            }
        };
        match tokio::time::timeout(self.max_wait, waiting).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => {
                Err(ApiError::body_limit_reached(self.max_wait.as_secs_f32(), MAX_LARGEST_BODIES))
            }
        }
    }

    fn share_of(&self, peer: PeerKey) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(&peer).and_then(Weak::upgrade) {
            return share;
        }
        shares.retain(|_, share| share.strong_count() > 0);
        let size = units(self.largest)
            .saturating_mul(MAX_LARGEST_BODIES / PEER_SHARE_DIVISOR)
            .min(Semaphore::MAX_PERMITS);
        let share = Arc::new(Semaphore::new(size));
        shares.insert(peer, Arc::downgrade(&share));
        share
    }
}

impl BodyPermit {
    /// Releases what a body of this size does not need.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let needed = units(bytes);
        let surplus = |permit: &mut OwnedSemaphorePermit| {
            drop(permit.split(permit.num_permits().saturating_sub(needed)));
        };
        if let Some(permit) = &mut self.units {
            surplus(permit);
        }
        if let Some(share) = &mut self.share {
            surplus(&mut share.taken);
        }
    }
}

fn units(bytes: usize) -> usize {
    bytes.div_ceil(UNIT)
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

    use super::*;

    const LARGEST: usize = 2 << 20;

    fn room() -> BodyLimit {
        BodyLimit::new(LARGEST, Duration::from_secs(30))
    }

    /// A body from loopback of which this much has arrived.
    async fn come(room: &BodyLimit, bytes: usize) -> Result<BodyPermit, ApiError> {
        let mut permit = room.begin(None, Some(LARGEST)).await?;
        room.grow(&mut permit, bytes).await?;
        Ok(permit)
    }

    fn code(error: ApiError) -> (u16, bool) {
        let response = error.into_response();
        (response.status().as_u16(), response.headers().contains_key("retry-after"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_body_waits_for_capacity_until_the_timeout() {
        let room = room();
        let mut permits = Vec::new();
        for _ in 0..MAX_LARGEST_BODIES {
            permits.push(come(&room, LARGEST).await.unwrap());
        }
        assert!(come(&room, SMALL_BODY).await.is_ok(), "small ones pass");
        assert_eq!(code(come(&room, SMALL_BODY + 1).await.err().unwrap()), (503, true));

        let (taken, ()) = tokio::join!(come(&room, LARGEST), async { drop(permits.pop()) });
        assert!(taken.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_pays_for_what_has_come_and_not_for_what_it_announces() {
        let room = room();
        let mut announced = Vec::new();
        for _ in 0..1000 {
            announced.push(come(&room, SMALL_BODY).await.unwrap());
        }
        assert!(come(&room, LARGEST).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_that_all_wait_for_the_rest_of_their_room_end_one_after_the_other() {
        let room = BodyLimit::new(4 << 20, Duration::from_secs(30));
        // Twenty bodies at three quarters use everything but the reserve, and all of them need more.
        let mut half = Vec::new();
        for _ in 0..20 {
            let mut permit = BodyPermit::default();
            room.grow(&mut permit, 3 << 20).await.unwrap();
            half.push(permit);
        }
        assert_eq!(room.units.available_permits(), 0);
        let ended = futures::future::join_all(half.into_iter().map(|mut permit| {
            let room = &room;
            async move { room.grow(&mut permit, 4 << 20).await.is_ok() }
        }));
        assert!(ended.await.into_iter().all(|ended| ended));
    }

    #[tokio::test(start_paused = true)]
    async fn one_peer_has_a_quarter_of_the_room_and_leaves_the_rest_to_others() {
        let room = room();
        let peer = |text: &str| PeerKey::of(text.parse().unwrap());
        let mut taken = Vec::new();
        for _ in 0..MAX_LARGEST_BODIES / PEER_SHARE_DIVISOR {
            taken.push(room.begin(peer("192.0.2.1"), Some(LARGEST)).await.unwrap());
        }
        assert_eq!(code(room.begin(peer("192.0.2.1"), Some(LARGEST)).await.err().unwrap()), (429, true));
        assert!(room.begin(peer("192.0.2.1"), Some(SMALL_BODY)).await.is_ok(), "small ones pass");
        assert!(room.begin(peer("192.0.2.2"), Some(LARGEST)).await.is_ok(), "others have their own");
        assert!(room.begin(None, Some(LARGEST)).await.is_ok());
        taken.pop();
        assert!(room.begin(peer("192.0.2.1"), None).await.is_ok());
        drop(taken);
        let _new = room.begin(peer("192.0.2.3"), None).await;
        assert_eq!(room.shares.lock().unwrap().len(), 1, "nothing is remembered of those who are done");
    }

    #[tokio::test(start_paused = true)]
    async fn what_turned_out_smaller_leaves_the_rest_to_others() {
        let room = BodyLimit::new(LARGEST, Duration::ZERO);
        let mut permits = Vec::new();
        for _ in 0..MAX_LARGEST_BODIES - 1 {
            let mut permit = come(&room, LARGEST).await.unwrap();
            permit.shrink_to(LARGEST / 2);
            permits.push(permit);
        }
        for _ in 0..MAX_LARGEST_BODIES / 2 {
            permits.push(come(&room, LARGEST).await.unwrap());
        }
        assert!(come(&room, LARGEST).await.is_err());
        drop(permits);
        assert_eq!(room.units.available_permits(), units(LARGEST) * (MAX_LARGEST_BODIES - 1));
    }
}
