//! The queue for memory: requests for a model that is not loaded wait together, and the models take turns. Pure: it decides, the
//! model cache acts.
//!
//! The models wait in the order of their first request. A loaded model whose memory is needed may go on for a short turn, so that
//! a burst of requests for it does not load it again and again. After that, its new requests wait at the end of the queue.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hob_core::DeviceShare;

/// How long a model continues while its memory is needed.
const TURN_TIME: Duration = Duration::from_secs(10);

/// Requests that a model admits while its memory is needed.
const TURN_REQUESTS: usize = 32;

/// Requests that wait for memory, for all models together.
const MAX_WAITING: usize = 1024;

/// How long an idle model is kept for the next request of the same caller: as long as loading it took, within these bounds.
const LEAST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Requests that wait for the same model.
#[derive(Debug)]
pub(crate) struct Group<M, W> {
    pub(crate) id: String,
    pub(crate) model: M,
    /// The memory that the model needs to begin with.
    pub(crate) bytes: u64,
    pub(crate) waiters: Vec<W>,
}

/// What a request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueuePlace {
    /// Requests before it, and itself.
    pub(crate) position: usize,
    pub(crate) wait: Duration,
}

/// The queue is full; the expected time until there is room.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QueueFull(pub(crate) Duration);

/// The waiting requests, by model.
#[derive(Debug)]
pub(crate) struct LoadQueue<M, W> {
    groups: VecDeque<Group<M, W>>,
    /// Requests for one model.
    most_of_model: usize,
}

impl<M, W> LoadQueue<M, W> {
    pub(crate) fn new(most_of_model: usize) -> Self {
        LoadQueue { groups: VecDeque::new(), most_of_model }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Adds a request to the group of its model, or a group at the end. The newest request knows best what the model needs.
    pub(crate) fn enter(&mut self, request: Group<M, W>, pace: &Pace) -> Result<QueuePlace, QueueFull> {
        let waiting: usize = self.groups.iter().map(|group| group.waiters.len()).sum();
        let known = self.groups.iter().position(|group| group.id == request.id);
        let at = known.unwrap_or(self.groups.len());
        let ahead: usize = self.groups.iter().take(at).map(|group| group.waiters.len()).sum();
        let of_model = known.map_or(0, |at| self.groups[at].waiters.len());
        let groups = self.groups.iter().take(at).map(|group| (group.bytes, group.waiters.len()));
        let wait = pace.wait(groups.chain([(request.bytes, 0)]));
        if waiting >= MAX_WAITING || of_model >= self.most_of_model {
            return Err(QueueFull(wait));
        }
        match known {
            Some(at) => {
                let group = &mut self.groups[at];
                group.waiters.extend(request.waiters);
                (group.model, group.bytes) = (request.model, request.bytes);
            }
            None => self.groups.push_back(request),
        }
        Ok(QueuePlace { position: ahead + of_model + 1, wait })
    }

    /// Removes requests whose caller has disconnected.
    pub(crate) fn retain(&mut self, stays: impl Fn(&W) -> bool) {
        self.groups.iter_mut().for_each(|group| group.waiters.retain(&stays));
        self.groups.retain(|group| !group.waiters.is_empty());
    }

    pub(crate) fn first(&self) -> Option<&Group<M, W>> {
        self.groups.front()
    }

    pub(crate) fn pop(&mut self) -> Option<Group<M, W>> {
        self.groups.pop_front()
    }
}

/// The turn of a loaded model.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Since when its memory is needed, and the requests that it admitted since.
    closing: Option<(Instant, usize)>,
}

impl Turn {
    /// Its memory is needed.
    pub(crate) fn close(&mut self, now: Instant) {
        self.closing.get_or_insert((now, 0));
    }

    pub(crate) fn reopen(&mut self) {
        self.closing = None;
    }

    /// Whether a new request may join. Counts it.
    pub(crate) fn admit(&mut self, now: Instant) -> bool {
        match &mut self.closing {
            None => true,
            Some((since, admitted)) => {
                *admitted += 1;
                *admitted <= TURN_REQUESTS && now.duration_since(*since) < TURN_TIME
            }
        }
    }

    /// Until when it stays in memory although it is idle.
    fn end_of_pause(&self, last_used: Instant, load_time: Duration) -> Instant {
        let end = last_used + load_time.clamp(LEAST_PAUSE, LONGEST_PAUSE);
        match self.closing {
            Some((_, admitted)) if admitted >= TURN_REQUESTS => last_used,
            Some((since, _)) => end.min(since + TURN_TIME),
            None => end,
        }
    }
}

/// A model in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resident<'a> {
    pub(crate) id: &'a str,
    /// Bytes of the main memory.
    pub(crate) bytes: u64,
    /// Its part of each graphics card.
    pub(crate) cards: &'a [DeviceShare],
    pub(crate) users: usize,
    pub(crate) last_used: Instant,
    pub(crate) loaded_at: Instant,
    pub(crate) load_time: Duration,
    pub(crate) turn: &'a Turn,
}

impl Resident<'_> {
    fn end_of_pause(&self) -> Instant {
        self.turn.end_of_pause(self.last_used, self.load_time)
    }
}

/// How a model gets its memory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// At once, if these are unloaded.
    Now(Vec<String>),
    /// When these are idle. Some of them may be unloaded at `recheck` at the earliest.
    Later { closing: Vec<String>, recheck: Option<Instant> },
}

impl Room {
    /// When all of these have been unloaded.
    pub(crate) fn without(residents: &[&Resident<'_>], now: Instant) -> Self {
        let (mut leaving, mut closing, mut recheck) = (Vec::new(), Vec::new(), None::<Instant>);
        for resident in residents {
            let end = resident.end_of_pause();
            if resident.users == 0 && end <= now {
                leaving.push(resident.id.to_owned());
                continue;
            }
            closing.push(resident.id.to_owned());
            if resident.users == 0 {
                recheck = Some(recheck.map_or(end, |earlier| earlier.min(end)));
            }
        }
        if closing.is_empty() { Room::Now(leaving) } else { Room::Later { closing, recheck } }
    }
}

/// The idle models in the order in which they leave: the least recently used ones first, and last those that are kept for the next
/// request of their caller.
pub(crate) fn idle_models<'a, 'b>(residents: &'b [Resident<'a>], now: Instant) -> Vec<&'b Resident<'a>> {
    let mut idle: Vec<&Resident<'_>> = residents.iter().filter(|resident| resident.users == 0).collect();
    idle.sort_by_key(|resident| (resident.end_of_pause() > now, resident.last_used));
    idle
}

/// Finds main memory for a model: idle models leave first, the least recently used ones before others; then those that were loaded
/// longest ago.
pub(crate) fn make_room(residents: &[Resident<'_>], budget: u64, bytes: u64, now: Instant) -> Room {
    let mut used = residents.iter().fold(bytes, |sum, resident| sum.saturating_add(resident.bytes));
    let mut busy: Vec<&Resident<'_>> = residents.iter().filter(|resident| resident.users > 0).collect();
    busy.sort_by_key(|resident| resident.loaded_at);
    let mut leaving = Vec::new();
    for resident in idle_models(residents, now).into_iter().chain(busy) {
        if used <= budget {
            break;
        }
        used = used.saturating_sub(resident.bytes);
        leaving.push(resident);
    }
    Room::without(&leaving, now)
}

/// How fast this machine loads and answers, as measured. The latest measurements count most.
#[derive(Debug)]
pub(crate) struct Pace {
    bytes_per_second: AtomicU64,
    answer_milliseconds: AtomicU64,
}

/// No estimate is longer.
const MAX_LOAD_SECONDS: f64 = 3600.0;

/// Answers that a loaded model gives at a time, for an estimate.
const ANSWERS_AT_A_TIME: usize = 8;

impl Default for Pace {
    fn default() -> Self {
        Pace { bytes_per_second: AtomicU64::new(500_000_000), answer_milliseconds: AtomicU64::new(2000) }
    }
}

impl Pace {
    pub(crate) fn loaded(&self, bytes: u64, took: Duration) {
        let rate = bytes as f64 / took.as_secs_f64().max(1e-3);
        learn(&self.bytes_per_second, rate as u64);
    }

    pub(crate) fn answered(&self, took: Duration) {
        learn(&self.answer_milliseconds, u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
    }

    /// The expected time of a request in the queue of a loaded model.
    pub(crate) fn answers(&self, position: usize, at_a_time: usize) -> Duration {
        let rounds = position.div_ceil(at_a_time.max(1)) as u64;
        Duration::from_millis(self.answer_milliseconds.load(Ordering::Relaxed).saturating_mul(rounds))
    }

    fn load_time(&self, bytes: u64) -> Duration {
        let rate = self.bytes_per_second.load(Ordering::Relaxed).max(1);
        Duration::from_secs_f64((bytes as f64 / rate as f64).min(MAX_LOAD_SECONDS))
    }

    /// The expected time for groups of requests, each with the size of its model and its number, one after the other.
    fn wait(&self, groups: impl Iterator<Item = (u64, usize)>) -> Duration {
        groups
            .map(|(bytes, requests)| self.load_time(bytes) + self.answers(requests, ANSWERS_AT_A_TIME))
            .fold(Duration::ZERO, Duration::saturating_add)
    }
}

/// A moving average.
fn learn(average: &AtomicU64, measured: u64) {
    const WEIGHT: u64 = 4;
    let before = average.load(Ordering::Relaxed);
    let after = before / WEIGHT * (WEIGHT - 1) + measured / WEIGHT;
    average.store(after.max(1), Ordering::Relaxed);
}

/// Whole seconds for a header: at least one, at most ten minutes.
pub(crate) fn seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).clamp(1, 600)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn request(id: &str, waiter: u32) -> Group<(), u32> {
        Group { id: id.to_owned(), model: (), bytes: 1_000_000_000, waiters: vec![waiter] }
    }

    fn resident<'a>(
        id: &'a str,
        users: usize,
        used: Instant,
        loaded: Instant,
        turn: &'a Turn,
    ) -> Resident<'a> {
        let load_time = Duration::from_millis(100);
        Resident { id, bytes: 10, cards: &[], users, last_used: used, loaded_at: loaded, load_time, turn }
    }

    #[test]
    fn requests_of_a_model_wait_together_and_models_in_order() {
        let (mut queue, pace) = (LoadQueue::new(10), Pace::default());
        let mut enter = |id: &str, waiter| {
            let place = queue.enter(request(id, waiter), &pace).expect("room");
            (place.position, place.wait.as_secs())
        };
        // Two seconds to load each, and two for up to eight answers.
        assert_eq!(enter("a", 1), (1, 2));
        assert_eq!(enter("b", 2), (2, 6));
        assert_eq!(enter("a", 3), (2, 2));
        assert_eq!(enter("b", 4), (4, 6));
        queue.retain(|waiter| *waiter != 2);
        let order: Vec<(String, Vec<u32>)> =
            std::iter::from_fn(|| queue.pop()).map(|group| (group.id, group.waiters)).collect();
        assert_eq!(order, [("a".to_owned(), vec![1, 3]), ("b".to_owned(), vec![4])]);
    }

    #[test]
    fn the_newest_request_says_what_its_model_needs() {
        let (mut queue, pace) = (LoadQueue::new(10), Pace::default());
        for (waiter, bytes) in [(1, 20), (2, 10)] {
            queue.enter(Group { bytes, ..request("a", waiter) }, &pace).expect("room");
        }
        let group = queue.pop().expect("a group");
        assert_eq!((group.bytes, group.waiters), (10, vec![1, 2]));
    }

    #[test]
    fn the_queue_has_a_limit_and_says_how_long() {
        let (mut queue, pace) = (LoadQueue::new(2), Pace::default());
        for waiter in 0..2 {
            queue.enter(request("a", waiter), &pace).expect("room");
        }
        assert_eq!(queue.enter(request("a", 2), &pace), Err(QueueFull(2 * SECOND)));
        assert!(queue.enter(request("b", 3), &pace).is_ok());
        let models = (0..MAX_WAITING).map(|model| queue.enter(request(&model.to_string(), 0), &pace));
        assert_eq!(models.filter(Result::is_ok).count(), MAX_WAITING - 3);
    }

    #[test]
    fn the_least_recently_used_idle_model_leaves_first() {
        let (start, turn) = (Instant::now(), Turn::default());
        let now = start + 60 * SECOND;
        let models = [
            resident("busy", 1, start, start, &turn),
            resident("recent", 0, start + 30 * SECOND, start, &turn),
            resident("old", 0, start + 10 * SECOND, start, &turn),
        ];
        assert_eq!(make_room(&models, 40, 10, now), Room::Now(vec![]));
        assert_eq!(make_room(&models, 30, 10, now), Room::Now(vec!["old".to_owned()]));
        assert_eq!(make_room(&models, 20, 10, now), Room::Now(vec!["old".to_owned(), "recent".to_owned()]));
        let Room::Later { closing, recheck } = make_room(&models, 10, 10, now) else { panic!("no room") };
        assert_eq!((closing, recheck), (vec!["busy".to_owned()], None));
    }

    #[test]
    fn an_idle_model_is_kept_for_the_next_request_of_its_caller() {
        let (start, turn) = (Instant::now(), Turn::default());
        let models = [resident("a", 0, start, start, &turn), resident("b", 1, start, start + SECOND, &turn)];
        let pause = Duration::from_millis(100);
        let later = Room::Later { closing: vec!["a".to_owned()], recheck: Some(start + pause) };
        assert_eq!(make_room(&models, 20, 10, start), later);
        assert_eq!(make_room(&models, 20, 10, start + pause), Room::Now(vec!["a".to_owned()]));
    }

    #[test]
    fn a_turn_ends_after_a_number_of_requests_or_a_time() {
        let start = Instant::now();
        let mut turn = Turn::default();
        assert!((0..1000).all(|_| turn.admit(start)));
        turn.close(start);
        turn.close(start + SECOND);
        assert_eq!((0..1000).filter(|_| turn.admit(start)).count(), TURN_REQUESTS);
        turn.reopen();
        turn.close(start);
        assert!(turn.admit(start + TURN_TIME - SECOND) && !turn.admit(start + TURN_TIME));
        // No pause is longer than the turn.
        assert_eq!(turn.end_of_pause(start + TURN_TIME - SECOND / 2, SECOND), start + TURN_TIME);
    }

    #[test]
    fn estimates_follow_the_measurements() {
        let pace = Pace::default();
        for _ in 0..50 {
            pace.loaded(1_000_000_000, 10 * SECOND);
            pace.answered(Duration::from_millis(500));
        }
        let wait = pace.wait([(1_000_000_000, 16)].into_iter()).as_secs_f64();
        assert!((10.9..11.6).contains(&wait), "{wait}");
        assert_eq!(seconds(Duration::from_millis(1001)), 2);
        assert_eq!((seconds(Duration::ZERO), seconds(Duration::MAX)), (1, 600));
    }
}
