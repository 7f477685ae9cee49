//! How much of large request bodies may be in the house at once. Small ones pass without a look: there may be as many of those
//! as there are connections.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;

/// Up to this size a body is small.
pub(crate) const SMALL: usize = 1 << 20;

/// So many of the largest bodies fit.
pub(crate) const LARGEST_AT_ONCE: usize = 16;

/// What room is counted in, so that even the largest body is a number that the semaphore takes.
const UNIT: usize = 1 << 10;

/// The room for large bodies.
pub(crate) struct Room {
    units: Arc<Semaphore>,
    patience: Duration,
}

/// The room that one request takes, until it is dropped. A small one takes none.
#[derive(Default)]
pub(crate) struct Place(Option<OwnedSemaphorePermit>);

impl Room {
    /// For bodies of at most `largest` bytes; `patience` is the longest wait.
    pub(crate) fn new(largest: usize, patience: Duration) -> Self {
        let units = units(largest).saturating_mul(LARGEST_AT_ONCE).min(Semaphore::MAX_PERMITS);
        Room { units: Arc::new(Semaphore::new(units)), patience }
    }

    /// Room for a body of so many bytes, first come first served.
    pub(crate) async fn take(&self, bytes: usize) -> Result<Place, ApiError> {
        if bytes <= SMALL {
            return Ok(Place::default());
        }
        let wanted = u32::try_from(units(bytes)).unwrap_or(u32::MAX);
        let waiting = Arc::clone(&self.units).acquire_many_owned(wanted);
        match tokio::time::timeout(self.patience, waiting).await {
            Ok(Ok(permit)) => Ok(Place(Some(permit))),
            Ok(Err(_)) | Err(_) => Err(ApiError::no_room(self.patience.as_secs_f32())),
        }
    }
}

impl Place {
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Gives back what a body of so many bytes does not need.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        if let Some(permit) = &mut self.0 {
            drop(permit.split(permit.num_permits().saturating_sub(units(bytes))));
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

    fn room() -> Room {
        Room::new(LARGEST, Duration::from_secs(30))
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_body_waits_for_room_and_no_longer_than_told() {
        let room = room();
        let mut places = Vec::new();
        for _ in 0..LARGEST_AT_ONCE {
            places.push(room.take(LARGEST).await.unwrap());
        }
        assert!(room.take(SMALL).await.is_ok(), "small ones pass");
        let refused = room.take(SMALL + 1).await.err().unwrap().into_response();
        assert_eq!(
            (refused.status().as_u16(), &refused.headers()["retry-after"]),
            (503, &"5".parse().unwrap())
        );

        let (taken, ()) = tokio::join!(room.take(LARGEST), async { drop(places.pop()) });
        assert!(taken.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn what_turned_out_smaller_leaves_the_rest_to_others() {
        let room = Room::new(LARGEST, Duration::ZERO);
        let mut places = Vec::new();
        for _ in 0..LARGEST_AT_ONCE {
            let mut place = room.take(LARGEST).await.unwrap();
            place.shrink_to(LARGEST / 2);
            places.push(place);
        }
        for _ in 0..LARGEST_AT_ONCE / 2 {
            places.push(room.take(LARGEST).await.unwrap());
        }
        assert!(room.take(LARGEST).await.is_err());
        drop(places);
        assert_eq!(room.units.available_permits(), units(LARGEST) * LARGEST_AT_ONCE);
    }
}
