//! How much of large request bodies may be in the house at once. Small ones pass without a look: there may be as many of those
//! as there are connections.
//!
//! A body pays for what has come of it, not for what it announces: announcing costs a caller nothing. So that bodies which all
//! wait for the rest of their room do not wait for each other for ever, room for one of the largest is kept apart: one body at a
//! time may end with that. What one peer has announced counts against a share of its own, which hurts nobody else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;
use crate::limits::peer_share::{PEER_SHARE_DIVISOR, PeerKey};

/// Up to this size a body is small.
pub(crate) const SMALL_BODY: usize = 1 << 20;

/// So many of the largest bodies fit.
const MAX_LARGEST_BODIES: usize = 16;

/// What room is counted in, so that even the largest body is a number that the semaphore takes.
const UNIT: usize = 1 << 10;

/// A body that grows takes so much at a time, so that it does not ask for every piece.
const GROWTH_STEP: usize = 1 << 20;

/// The room for large bodies.
pub(crate) struct BodyLimit {
    largest: usize,
    units: Arc<Semaphore>,
    /// One permit: the room of one of the largest, for the body that could not end otherwise.
    reserve: Arc<Semaphore>,
    /// Peers that send something large at this moment. A share is there as long as somebody has a part of it.
    shares: Mutex<HashMap<PeerKey, Weak<Semaphore>>>,
    max_wait: Duration,
}

/// The room that one request takes, until it is dropped. A small one takes none.
#[derive(Default)]
pub(crate) struct BodyPermit {
    units: Option<OwnedSemaphorePermit>,
    /// Whatever else the body needs comes out of the reserve.
    reserve: Option<OwnedSemaphorePermit>,
    share: Option<PeerPermit>,
}

struct PeerPermit {
    taken: OwnedSemaphorePermit,
    /// Keeps the peer's share in the table.
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

    /// Lets a body begin that is going to have so many bytes; the longest possible where nobody said. It waits until those before
    /// it leave enough of the peer's share.
    pub(crate) async fn begin(
        &self,
        peer: Option<PeerKey>,
        bytes: Option<usize>,
    ) -> Result<BodyPermit, ApiError> {
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

    /// Room for so many bytes of a body that have come, first come first served.
    pub(crate) async fn grow(&self, permit: &mut BodyPermit, bytes: usize) -> Result<(), ApiError> {
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
    /// Gives back what a body of so many bytes does not need.
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

    /// A body of somebody on this machine that has come so far.
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
    async fn a_large_body_waits_for_room_and_no_longer_than_told() {
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
        // Twenty of three quarters take all there is but the reserve, and all of them want more.
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
