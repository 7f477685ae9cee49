//! Slows down callers that guess keys. Knows no key: only which peer was wrong, how often and when.
//!
//! A peer on the network that has sent too many wrong keys is refused for a while before its next key is checked. Loopback is
//! never refused: behind a proxy all callers come from there, and one who guesses must not lock the owner out. Its wrong keys
//! are answered late instead.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hob_core::Backoff;
use tokio::sync::Semaphore;

use crate::limits::peer_share::PeerKey;

/// Wrong keys without a wait: people mistype, and several programs may have an old key.
const FREE_ATTEMPTS: u32 = 10;

/// Each further wrong key doubles the wait.
const WAITS: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(60) };

/// A peer without a wrong key for this long starts again at zero.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);

/// The size of the table. If it is full, the peer with the oldest wrong key is removed.
const MAX_PEERS: usize = 1024;

/// The delay of the answer to a wrong key from loopback, once there were too many.
const DELAY: Duration = Duration::from_secs(1);
/// Answers that are delayed at once. Further ones are refused without a delay.
const MAX_DELAYED: usize = 32;

/// The wrong keys of each peer.
pub(crate) struct KeyBackoff {
    /// The size of the table, so that a check without entries needs no lock.
    remembered: AtomicUsize,
    /// `None` is loopback.
    peers: Mutex<HashMap<Option<PeerKey>, WrongKeys>>,
    late: Semaphore,
}

struct WrongKeys {
    count: u32,
    last: Instant,
    refused_until: Option<Instant>,
}

impl WrongKeys {
    fn wait(&self) -> Option<Duration> {
        let beyond = self.count.checked_sub(FREE_ATTEMPTS)?;
        Some(WAITS.delay(beyond.saturating_add(1)))
    }
}

impl KeyBackoff {
    pub(crate) fn new() -> Self {
        KeyBackoff {
            remembered: AtomicUsize::new(0),
            peers: Mutex::default(),
            late: Semaphore::new(MAX_DELAYED),
        }
    }

    /// How long this peer's keys are still refused; `None` if they are checked. Without wrong keys, the clock is not read.
    pub(crate) fn refused_for(&self, ip: IpAddr, now: impl FnOnce() -> Instant) -> Option<Duration> {
        if self.remembered.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let until = peers.get(&PeerKey::of(ip))?.refused_until?;
        until.checked_duration_since(now()).filter(|left| !left.is_zero())
    }

    /// Records a wrong key of this peer.
    pub(crate) fn was_wrong(&self, ip: IpAddr, now: Instant) {
        let peer = PeerKey::of(ip);
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peers.retain(|_, wrong| now.saturating_duration_since(wrong.last) < FORGOTTEN_AFTER);
        if peers.len() >= MAX_PEERS && !peers.contains_key(&peer) {
            let oldest = peers.iter().min_by_key(|(_, wrong)| wrong.last).map(|(peer, _)| *peer);
            oldest.map(|oldest| peers.remove(&oldest));
        }
        let wrong = peers.entry(peer).or_insert(WrongKeys { count: 0, last: now, refused_until: None });
        wrong.count = wrong.count.saturating_add(1);
        wrong.last = now;
        if peer.is_some() {
            wrong.refused_until = wrong.wait().map(|wait| now + wait);
        }
        self.remembered.store(peers.len(), Ordering::Relaxed);
    }

    /// Removes this peer's record after a right key. Loopback can be many callers, so its record stays.
    pub(crate) fn was_right(&self, ip: IpAddr) {
        let Some(peer) = PeerKey::of(ip) else { return };
        if self.remembered.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peers.remove(&Some(peer));
        self.remembered.store(peers.len(), Ordering::Relaxed);
    }

    /// Delays the answer to a wrong key from loopback, once there were too many. Returns false if too many answers are delayed
    /// already; then the answer is a refusal.
    pub(crate) async fn hold_back(&self, ip: IpAddr) -> bool {
        let is_guessing = || {
            let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
            peers.get(&None).is_some_and(|wrong| wrong.wait().is_some())
        };
        if PeerKey::of(ip).is_some() || !is_guessing() {
            return true;
        }
        let Ok(_place) = self.late.try_acquire() else { return false };
        tokio::time::sleep(DELAY).await;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: &str = "192.0.2.7";

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn guessing_gets_slower_and_a_right_key_ends_that() {
        let backoff = KeyBackoff::new();
        let start = Instant::now();
        for _ in 0..FREE_ATTEMPTS - 1 {
            backoff.was_wrong(ip(OTHER), start);
            assert_eq!(backoff.refused_for(ip(OTHER), || start), None);
        }
        let mut waits = Vec::new();
        let mut now = start;
        for _ in 0..8 {
            backoff.was_wrong(ip(OTHER), now);
            let wait = backoff.refused_for(ip(OTHER), || now).unwrap();
            waits.push(wait.as_secs());
            now += wait;
            assert_eq!(backoff.refused_for(ip(OTHER), || now), None, "it may try again");
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff.refused_for(ip("192.0.2.8"), || now), None, "no other caller is slowed");
        backoff.was_right(ip(OTHER));
        backoff.was_wrong(ip(OTHER), now);
        assert_eq!(backoff.refused_for(ip(OTHER), || now), None);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_forgotten() {
        let backoff = KeyBackoff::new();
        let start = Instant::now();
        for number in 0..5000u32 {
            backoff.was_wrong(std::net::Ipv4Addr::from_bits(number | 0x0a00_0000).into(), start);
        }
        assert_eq!(backoff.peers.lock().unwrap().len(), MAX_PEERS);
        backoff.was_wrong(ip(OTHER), start + FORGOTTEN_AFTER);
        assert_eq!(backoff.peers.lock().unwrap().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn loopback_is_answered_late_and_never_refused() {
        let backoff = KeyBackoff::new();
        let now = Instant::now();
        let here = ip("127.0.0.1");
        let began = tokio::time::Instant::now();
        assert!(backoff.hold_back(here).await);
        assert_eq!(began.elapsed(), Duration::ZERO);
        for _ in 0..1000 {
            backoff.was_wrong(here, now);
        }
        assert_eq!(backoff.refused_for(here, || now), None);
        assert!(backoff.hold_back(here).await);
        assert_eq!(began.elapsed(), DELAY);
        let held = futures::future::join_all((0..MAX_DELAYED + 8).map(|_| backoff.hold_back(here))).await;
        assert_eq!(held.iter().filter(|usual| !**usual).count(), 8);
    }
}
