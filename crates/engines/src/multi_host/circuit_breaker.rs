//! Whether a host is worth asking: a circuit breaker as a pure state machine. Time is passed in; it knows no host and no network.
//!
//! Closed, requests pass. Open, none does until a pause is over. Then one request is let through on trial: a sign of life
//! closes the breaker, a failure opens it again for twice as long, up to a bound. Only a whole answer forgives: until there
//! is one, the next failure opens it again. A host that nobody has heard of yet starts on trial, so that it is heard before
//! it is relied on.

use std::time::Duration;

use hob_core::Backoff;
use hob_core::backoff::BackoffDelays;
use tokio::time::Instant;

/// How patient a breaker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerOptions {
    /// Blows in a row that open it.
    pub failures: u32,
    /// How long it stays open.
    pub pauses: Backoff,
}

impl Default for BreakerOptions {
    fn default() -> Self {
        BreakerOptions { failures: 3, pauses: Backoff::default() }
    }
}

/// What a request's end says of its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// Nothing is wrong with the host.
    None,
    /// It says nothing of the host, good or bad.
    Inconclusive,
    /// It failed; a few of these in a row open the breaker.
    Soft,
    /// It is not there: the breaker opens at once.
    Hard,
}

/// What a breaker says to the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BreakerState {
    Closed,
    /// One request may try.
    HalfOpen,
    /// Not before this time.
    Open {
        until: Instant,
    },
}

/// What a request was let through with, and reports its end with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attempt {
    /// How often the breaker had opened by then: what began before it opened last is old news.
    opened: u64,
    on_trial: bool,
    /// Whether the host was relied on when the ticket was given.
    proven: bool,
}

impl Attempt {
    /// Whether the host has to be heard before it is asked.
    pub(super) fn is_proven(self) -> bool {
        self.proven
    }
}

/// Whether a report changed what the breaker says.
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
    /// In a row, since the last whole answer.
    failures: u32,
    /// Since the last whole answer.
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

    /// Lets a request through, whatever the standing is: where all hosts are shut, one is asked all the same.
    pub(super) fn begin(&mut self, now: Instant) -> Attempt {
        let state = self.state_at(now);
        if state == BreakerState::HalfOpen {
            self.state = State::Trial { since: now };
        }
        Attempt {
            opened: self.opened,
            on_trial: state == BreakerState::HalfOpen,
            proven: state == BreakerState::Closed,
        }
    }

    /// The host gave a sign of life, as a list or the beginning of an answer. That ends a trial and forgives nothing.
    pub(super) fn heard(&mut self, attempt: Attempt) -> BreakerChange {
        if attempt.opened != self.opened || self.state == State::Closed {
            return BreakerChange::None;
        }
        self.state = State::Closed;
        BreakerChange::Closed
    }

    /// The host gave a whole answer.
    pub(super) fn succeeded(&mut self, attempt: Attempt) -> BreakerChange {
        if attempt.opened == self.opened {
            self.failures = 0;
            self.pauses.reset();
        }
        self.heard(attempt)
    }

    pub(super) fn failed(&mut self, attempt: Attempt, failure: Failure, now: Instant) -> BreakerChange {
        if attempt.opened != self.opened {
            return BreakerChange::None;
        }
        match (self.state, failure) {
            // Who refuses properly is there.
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
            // Asked for want of a better one; it was shut already.
            (State::Trial { .. } | State::Open { .. }, _) => BreakerChange::None,
        }
    }

    /// The caller left, which says nothing of the host. Somebody else may try at once.
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

    fn proven(now: Instant) -> CircuitBreaker {
        let mut breaker = CircuitBreaker::new(OPTIONS, now);
        let attempt = breaker.begin(now);
        assert_eq!(breaker.succeeded(attempt), BreakerChange::Closed);
        breaker
    }

    #[test]
    fn a_host_that_nobody_has_heard_of_is_tried_by_one_request() {
        let now = Instant::now();
        let mut breaker = CircuitBreaker::new(OPTIONS, now);
        assert_eq!(breaker.state_at(now), BreakerState::HalfOpen);
        let first = breaker.begin(now);
        assert!(!first.is_proven());
        assert_eq!(breaker.state_at(now), BreakerState::Open { until: now });
        assert_eq!(breaker.succeeded(first), BreakerChange::Closed);
        assert_eq!(breaker.state_at(now), BreakerState::Closed);
        assert!(breaker.begin(now).is_proven());
    }

    #[test]
    fn blows_in_a_row_open_it_and_a_success_between_them_forgives() {
        let now = Instant::now();
        let mut breaker = proven(now);
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
    fn a_host_that_is_gone_is_shut_out_at_once() {
        let now = Instant::now();
        let mut breaker = proven(now);
        let attempt = breaker.begin(now);
        assert_eq!(breaker.failed(attempt, Failure::Hard, now), BreakerChange::Opened { pause: seconds(1) });
    }

    #[test]
    fn each_trial_in_vain_doubles_the_pause_up_to_a_bound() {
        let mut now = Instant::now();
        let mut breaker = proven(now);
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
        let mut breaker = proven(now);
        let attempt = breaker.begin(now);
        for _ in 0..2 {
            breaker.failed(attempt, Failure::Soft, now);
            assert_eq!(breaker.heard(attempt), BreakerChange::None);
        }
        assert_eq!(breaker.failed(attempt, Failure::Soft, now), BreakerChange::Opened { pause: seconds(1) });
        for (pause, next) in [(1, 2), (2, 4), (4, 5)] {
            now += seconds(pause);
            let trial = breaker.begin(now);
            assert_eq!(breaker.heard(trial), BreakerChange::Closed);
            assert_eq!(breaker.state_at(now), BreakerState::Closed);
            assert_eq!(
                breaker.failed(trial, Failure::Soft, now),
                BreakerChange::Opened { pause: seconds(next) },
                "it has answered nothing since"
            );
        }
        now += seconds(5);
        let trial = breaker.begin(now);
        breaker.heard(trial);
        breaker.succeeded(trial);
        assert_eq!(breaker.failed(trial, Failure::Soft, now), BreakerChange::None, "a whole answer forgives");
    }

    #[test]
    fn what_began_before_it_opened_is_old_news() {
        let now = Instant::now();
        let mut breaker = proven(now);
        let (slow, quick) = (breaker.begin(now), breaker.begin(now));
        breaker.failed(quick, Failure::Hard, now);
        assert_eq!(breaker.failed(slow, Failure::Hard, now), BreakerChange::None);
        assert_eq!(breaker.succeeded(slow), BreakerChange::None);
        assert_eq!(breaker.state_at(now), BreakerState::Open { until: now + seconds(1) });
    }

    #[test]
    fn a_caller_who_leaves_during_the_trial_hands_it_to_the_next() {
        let now = Instant::now();
        let mut breaker = CircuitBreaker::new(OPTIONS, now);
        let trial = breaker.begin(now);
        breaker.abandoned(trial, now);
        assert_eq!(breaker.state_at(now), BreakerState::HalfOpen);
        // One who leaves a healthy host changes nothing.
        let mut breaker = proven(now);
        let attempt = breaker.begin(now);
        breaker.abandoned(attempt, now);
        assert_eq!(breaker.state_at(now), BreakerState::Closed);
    }

    #[test]
    fn a_shut_host_that_answers_all_the_same_is_open_to_everybody_again() {
        let now = Instant::now();
        let mut breaker = proven(now);
        let attempt = breaker.begin(now);
        breaker.failed(attempt, Failure::Hard, now);
        let forced = breaker.begin(now);
        assert!(!forced.is_proven());
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
