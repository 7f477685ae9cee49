//! A circuit breaker for one host, as a pure state machine. Time is passed in; it knows no host and no network.
//!
//! Closed: requests pass. Open: no request passes until a pause is over. Then one trial request passes: the first
//! response closes the breaker, and a failure opens it again for twice as long, up to a limit. Only a complete answer
//! resets the count of failures: until then, the next failure opens the breaker again. A new host starts with a
//! trial, so that no request depends on a host that never answered.

use std::time::Duration;

use hob_core::Backoff;
use hob_core::backoff::BackoffDelays;
use tokio::time::Instant;

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerOptions {
    /// The number of soft failures in a row that open it.
    pub failures: u32,
    /// How long it stays open.
    pub pauses: Backoff,
}

impl Default for BreakerOptions {
    fn default() -> Self {
        BreakerOptions { failures: 3, pauses: Backoff::default() }
    }
}

/// What the end of a request says about its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The host works.
    None,
    /// Nothing about the host can be concluded.
    Inconclusive,
    /// The host failed. Several in a row open the breaker.
    Soft,
    /// The host is not reachable: the breaker opens at once.
    Hard,
}

/// Whether the next request may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BreakerState {
    Closed,
    /// One trial request may pass.
    HalfOpen,
    /// No request passes before this time.
    Open {
        until: Instant,
    },
}

/// A request that the breaker let pass. It reports its end with this value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attempt {
    /// How often the breaker had opened when the request started. Reports from before the latest opening are ignored.
    opened: u64,
    on_trial: bool,
    /// Whether the breaker was closed when the request started.
    trusted: bool,
}

impl Attempt {
    /// Whether the host can be used without a check.
    pub(super) fn is_trusted(self) -> bool {
        self.trusted
    }
}

/// Whether a report changed the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BreakerChange {
    None,
    Opened { pause: Duration },
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    Open { until: Instant },
    Trial { since: Instant },
}

#[derive(Debug)]
pub(super) struct CircuitBreaker {
    options: BreakerOptions,
    state: State,
    /// In a row, since the last complete answer.
    failures: u32,
    /// The pauses since the last complete answer.
    pauses: BackoffDelays,
    opened: u64,
}

impl CircuitBreaker {
    pub(super) fn new(options: BreakerOptions, now: Instant) -> Self {
        CircuitBreaker {
            options,
            state: State::Open { until: now },
            failures: 0,
            pauses: options.pauses.delays(),
            opened: 0,
        }
    }

    pub(super) fn state_at(&self, now: Instant) -> BreakerState {
        match self.state {
            State::Closed => BreakerState::Closed,
            State::Open { until } if until <= now => BreakerState::HalfOpen,
            State::Open { until } => BreakerState::Open { until },
            State::Trial { since } => BreakerState::Open { until: since },
        }
    }

    /// Lets a request pass in any state: when the breakers of all hosts are open, one host is tried nevertheless.
    pub(super) fn begin(&mut self, now: Instant) -> Attempt {
        let state = self.state_at(now);
        if state == BreakerState::HalfOpen {
            self.state = State::Trial { since: now };
        }
        Attempt {
            opened: self.opened,
            on_trial: state == BreakerState::HalfOpen,
            trusted: state == BreakerState::Closed,
        }
    }

    /// The host responded, with a list or the start of an answer. This ends a trial and does not reset the failures.
    pub(super) fn responded(&mut self, attempt: Attempt) -> BreakerChange {
        if attempt.opened != self.opened || self.state == State::Closed {
            return BreakerChange::None;
        }
        self.state = State::Closed;
        BreakerChange::Closed
    }

    /// The host gave a complete answer.
    pub(super) fn succeeded(&mut self, attempt: Attempt) -> BreakerChange {
        if attempt.opened == self.opened {
            self.failures = 0;
            self.pauses.reset();
        }
        self.responded(attempt)
    }

    pub(super) fn failed(&mut self, attempt: Attempt, failure: Failure, now: Instant) -> BreakerChange {
        if attempt.opened != self.opened {
            return BreakerChange::None;
        }
        match (self.state, failure) {
            // A host that rejects a request works.
            (_, Failure::None) => self.succeeded(attempt),
            (_, Failure::Inconclusive) => {
                self.abandoned(attempt, now);
                BreakerChange::None
            }
            (State::Closed, Failure::Soft) if self.failures + 1 < self.options.failures => {
                self.failures += 1;
                BreakerChange::None
            }
            (State::Closed, _) => self.open(now),
            (State::Trial { .. }, _) if attempt.on_trial => self.open(now),
            // The request was sent although the breaker was open, so its failure changes nothing.
            (State::Trial { .. } | State::Open { .. }, _) => BreakerChange::None,
        }
    }

    /// The caller left, which says nothing about the host. Another request may try at once.
    pub(super) fn abandoned(&mut self, attempt: Attempt, now: Instant) {
        let is_trial = matches!(self.state, State::Trial { .. }) && attempt.on_trial;
        if is_trial && attempt.opened == self.opened {
            self.state = State::Open { until: now };
        }
    }

    fn open(&mut self, now: Instant) -> BreakerChange {
        let pause = self.pauses.next_delay();
        self.failures = self.options.failures;
        self.opened += 1;
        self.state = State::Open { until: now + pause };
        BreakerChange::Opened { pause }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: BreakerOptions = BreakerOptions {
        failures: 3,
        pauses: Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(5) },
    };

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn trusted(now: Instant) -> CircuitBreaker {
        let mut breaker = CircuitBreaker::new(OPTIONS, now);
        let attempt = breaker.begin(now);
        assert_eq!(breaker.succeeded(attempt), BreakerChange::Closed);
        breaker
    }

    #[test]
    fn an_unknown_host_is_tried_by_one_request() {
        let now = Instant::now();
        let mut breaker = CircuitBreaker::new(OPTIONS, now);
        assert_eq!(breaker.state_at(now), BreakerState::HalfOpen);
        let first = breaker.begin(now);
        assert!(!first.is_trusted());
        assert_eq!(breaker.state_at(now), BreakerState::Open { until: now });
        assert_eq!(breaker.succeeded(first), BreakerChange::Closed);
        assert_eq!(breaker.state_at(now), BreakerState::Closed);
        assert!(breaker.begin(now).is_trusted());
    }

    #[test]
    fn blows_in_a_row_open_it_and_a_success_between_them_forgives() {
        let now = Instant::now();
        let mut breaker = trusted(now);
        let attempt = breaker.begin(now);
        for failure in [Failure::Soft, Failure::Soft] {
            assert_eq!(breaker.failed(attempt, failure, now), BreakerChange::None);
        }
        assert_eq!(breaker.succeeded(attempt), BreakerChange::None);
        for _ in 0..2 {
            assert_eq!(breaker.failed(attempt, Failure::Soft, now), BreakerChange::None);
        }
        assert_eq!(
            breaker.failed(attempt, Failure::None, now),
            BreakerChange::None,
            "a refusal is an answer too"
        );
        for _ in 0..2 {
            assert_eq!(breaker.failed(attempt, Failure::Soft, now), BreakerChange::None);
        }
        assert_eq!(breaker.failed(attempt, Failure::Soft, now), BreakerChange::Opened { pause: seconds(1) });
        assert_eq!(breaker.state_at(now), BreakerState::Open { until: now + seconds(1) });
    }

    #[test]
    fn a_lost_host_is_skipped_at_once() {
        let now = Instant::now();
        let mut breaker = trusted(now);
        let attempt = breaker.begin(now);
        assert_eq!(breaker.failed(attempt, Failure::Hard, now), BreakerChange::Opened { pause: seconds(1) });
    }

    #[test]
    fn each_trial_in_vain_doubles_the_pause_up_to_a_bound() {
        let mut now = Instant::now();
        let mut breaker = trusted(now);
        let attempt = breaker.begin(now);
        breaker.failed(attempt, Failure::Hard, now);
        let mut pauses = Vec::new();
        for pause in [1, 2, 4, 5] {
            now += seconds(pause);
            assert_eq!(breaker.state_at(now), BreakerState::HalfOpen);
            let trial = breaker.begin(now);
            match breaker.failed(trial, Failure::Soft, now) {
                BreakerChange::Opened { pause } => pauses.push(pause.as_secs()),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(pauses, [2, 4, 5, 5]);
        now += seconds(5);
        let trial = breaker.begin(now);
        assert_eq!(breaker.succeeded(trial), BreakerChange::Closed);
        let attempt = breaker.begin(now);
        assert_eq!(
            breaker.failed(attempt, Failure::Hard, now),
            BreakerChange::Opened { pause: seconds(1) },
            "forgiven"
        );
    }

    #[test]
    fn a_sign_of_life_ends_a_trial_and_forgives_nothing() {
        let mut now = Instant::now();
        let mut breaker = trusted(now);
        let attempt = breaker.begin(now);
        for _ in 0..2 {
            breaker.failed(attempt, Failure::Soft, now);
            assert_eq!(breaker.responded(attempt), BreakerChange::None);
        }
        assert_eq!(breaker.failed(attempt, Failure::Soft, now), BreakerChange::Opened { pause: seconds(1) });
        for (pause, next) in [(1, 2), (2, 4), (4, 5)] {
            now += seconds(pause);
            let trial = breaker.begin(now);
            assert_eq!(breaker.responded(trial), BreakerChange::Closed);
            assert_eq!(breaker.state_at(now), BreakerState::Closed);
            assert_eq!(
                breaker.failed(trial, Failure::Soft, now),
                BreakerChange::Opened { pause: seconds(next) },
                "it has answered nothing since"
            );
        }
        now += seconds(5);
        let trial = breaker.begin(now);
        breaker.responded(trial);
        breaker.succeeded(trial);
        assert_eq!(breaker.failed(trial, Failure::Soft, now), BreakerChange::None, "a whole answer forgives");
    }

    #[test]
    fn results_of_earlier_requests_do_not_count() {
        let now = Instant::now();
        let mut breaker = trusted(now);
        let (slow, quick) = (breaker.begin(now), breaker.begin(now));
        breaker.failed(quick, Failure::Hard, now);
        assert_eq!(breaker.failed(slow, Failure::Hard, now), BreakerChange::None);
        assert_eq!(breaker.succeeded(slow), BreakerChange::None);
        assert_eq!(breaker.state_at(now), BreakerState::Open { until: now + seconds(1) });
    }

    #[test]
    fn a_caller_that_disconnects_during_the_trial_passes_it_on() {
        let now = Instant::now();
        let mut breaker = CircuitBreaker::new(OPTIONS, now);
        let trial = breaker.begin(now);
        breaker.abandoned(trial, now);
        assert_eq!(breaker.state_at(now), BreakerState::HalfOpen);
        // Leaving a healthy host changes nothing.
        let mut breaker = trusted(now);
        let attempt = breaker.begin(now);
        breaker.abandoned(attempt, now);
        assert_eq!(breaker.state_at(now), BreakerState::Closed);
    }

    #[test]
    fn a_shut_host_that_answers_all_the_same_is_open_to_everybody_again() {
        let now = Instant::now();
        let mut breaker = trusted(now);
        let attempt = breaker.begin(now);
        breaker.failed(attempt, Failure::Hard, now);
        let forced = breaker.begin(now);
        assert!(!forced.is_trusted());
        assert_eq!(
            breaker.failed(forced, Failure::Hard, now),
            BreakerChange::None,
            "the pause stays as it is"
        );
        assert_eq!(breaker.state_at(now), BreakerState::Open { until: now + seconds(1) });
        let forced = breaker.begin(now);
        assert_eq!(breaker.succeeded(forced), BreakerChange::Closed);
    }
}
