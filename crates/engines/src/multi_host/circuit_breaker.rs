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
pub struct Pace {
    /// Blows in a row that open it.
    pub blows: u32,
    /// How long it stays open.
    pub pauses: Backoff,
}

impl Default for Pace {
    fn default() -> Self {
        Pace { blows: 3, pauses: Backoff::default() }
    }
}

/// What a request's end says of its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Harm {
    /// Nothing is wrong with the host.
    None,
    /// It says nothing of the host, good or bad.
    Unknown,
    /// It failed; a few of these in a row open the breaker.
    Blow,
    /// It is not there: the breaker opens at once.
    Gone,
}

/// What a breaker says to the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Closed,
    /// One request may try.
    Due,
    /// Not before this time.
    Shut {
        until: Instant,
    },
}

/// What a request was let through with, and reports its end with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket {
    /// How often the breaker had opened by then: what began before it opened last is old news.
    opened: u64,
    on_trial: bool,
    /// Whether the host was relied on when the ticket was given.
    proven: bool,
}

impl Ticket {
    /// Whether the host has to be heard before it is asked.
    pub(super) fn is_proven(self) -> bool {
        self.proven
    }
}

/// Whether a report changed what the breaker says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
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
pub(super) struct Breaker {
    pace: Pace,
    state: State,
    /// In a row, since the last whole answer.
    blows: u32,
    /// Since the last whole answer.
    pauses: BackoffDelays,
    opened: u64,
}

impl Breaker {
    pub(super) fn new(pace: Pace, now: Instant) -> Self {
        Breaker { pace, state: State::Open { until: now }, blows: 0, pauses: pace.pauses.delays(), opened: 0 }
    }

    pub(super) fn standing(&self, now: Instant) -> Standing {
        match self.state {
            State::Closed => Standing::Closed,
            State::Open { until } if until <= now => Standing::Due,
            State::Open { until } => Standing::Shut { until },
            State::Trial { since } => Standing::Shut { until: since },
        }
    }

    /// Lets a request through, whatever the standing is: where all hosts are shut, one is asked all the same.
    pub(super) fn begin(&mut self, now: Instant) -> Ticket {
        let standing = self.standing(now);
        if standing == Standing::Due {
            self.state = State::Trial { since: now };
        }
        Ticket {
            opened: self.opened,
            on_trial: standing == Standing::Due,
            proven: standing == Standing::Closed,
        }
    }

    /// The host gave a sign of life, as a list or the beginning of an answer. That ends a trial and forgives nothing.
    pub(super) fn heard(&mut self, ticket: Ticket) -> Change {
        if ticket.opened != self.opened || self.state == State::Closed {
            return Change::None;
        }
        self.state = State::Closed;
        Change::Closed
    }

    /// The host gave a whole answer.
    pub(super) fn succeeded(&mut self, ticket: Ticket) -> Change {
        if ticket.opened == self.opened {
            self.blows = 0;
            self.pauses.reset();
        }
        self.heard(ticket)
    }

    pub(super) fn failed(&mut self, ticket: Ticket, harm: Harm, now: Instant) -> Change {
        if ticket.opened != self.opened {
            return Change::None;
        }
        match (self.state, harm) {
            // Who refuses properly is there.
            (_, Harm::None) => self.succeeded(ticket),
            (_, Harm::Unknown) => {
                self.abandoned(ticket, now);
                Change::None
            }
            (State::Closed, Harm::Blow) if self.blows + 1 < self.pace.blows => {
                self.blows += 1;
                Change::None
            }
            (State::Closed, _) => self.open(now),
            (State::Trial { .. }, _) if ticket.on_trial => self.open(now),
            // Asked for want of a better one; it was shut already.
            (State::Trial { .. } | State::Open { .. }, _) => Change::None,
        }
    }

    /// The caller left, which says nothing of the host. Somebody else may try at once.
    pub(super) fn abandoned(&mut self, ticket: Ticket, now: Instant) {
        let is_trial = matches!(self.state, State::Trial { .. }) && ticket.on_trial;
        if is_trial && ticket.opened == self.opened {
            self.state = State::Open { until: now };
        }
    }

    fn open(&mut self, now: Instant) -> Change {
        let pause = self.pauses.next_delay();
        self.blows = self.pace.blows;
        self.opened += 1;
        self.state = State::Open { until: now + pause };
        Change::Opened { pause }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace =
        Pace { blows: 3, pauses: Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(5) } };

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn proven(now: Instant) -> Breaker {
        let mut breaker = Breaker::new(PACE, now);
        let ticket = breaker.begin(now);
        assert_eq!(breaker.succeeded(ticket), Change::Closed);
        breaker
    }

    #[test]
    fn a_host_that_nobody_has_heard_of_is_tried_by_one_request() {
        let now = Instant::now();
        let mut breaker = Breaker::new(PACE, now);
        assert_eq!(breaker.standing(now), Standing::Due);
        let first = breaker.begin(now);
        assert!(!first.is_proven());
        assert_eq!(breaker.standing(now), Standing::Shut { until: now });
        assert_eq!(breaker.succeeded(first), Change::Closed);
        assert_eq!(breaker.standing(now), Standing::Closed);
        assert!(breaker.begin(now).is_proven());
    }

    #[test]
    fn blows_in_a_row_open_it_and_a_success_between_them_forgives() {
        let now = Instant::now();
        let mut breaker = proven(now);
        let ticket = breaker.begin(now);
        for harm in [Harm::Blow, Harm::Blow] {
            assert_eq!(breaker.failed(ticket, harm, now), Change::None);
        }
        assert_eq!(breaker.succeeded(ticket), Change::None);
        for _ in 0..2 {
            assert_eq!(breaker.failed(ticket, Harm::Blow, now), Change::None);
        }
        assert_eq!(breaker.failed(ticket, Harm::None, now), Change::None, "a refusal is an answer too");
        for _ in 0..2 {
            assert_eq!(breaker.failed(ticket, Harm::Blow, now), Change::None);
        }
        assert_eq!(breaker.failed(ticket, Harm::Blow, now), Change::Opened { pause: seconds(1) });
        assert_eq!(breaker.standing(now), Standing::Shut { until: now + seconds(1) });
    }

    #[test]
    fn a_host_that_is_gone_is_shut_out_at_once() {
        let now = Instant::now();
        let mut breaker = proven(now);
        let ticket = breaker.begin(now);
        assert_eq!(breaker.failed(ticket, Harm::Gone, now), Change::Opened { pause: seconds(1) });
    }

    #[test]
    fn each_trial_in_vain_doubles_the_pause_up_to_a_bound() {
        let mut now = Instant::now();
        let mut breaker = proven(now);
        let ticket = breaker.begin(now);
        breaker.failed(ticket, Harm::Gone, now);
        let mut pauses = Vec::new();
        for pause in [1, 2, 4, 5] {
            now += seconds(pause);
            assert_eq!(breaker.standing(now), Standing::Due);
            let trial = breaker.begin(now);
            match breaker.failed(trial, Harm::Blow, now) {
                Change::Opened { pause } => pauses.push(pause.as_secs()),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(pauses, [2, 4, 5, 5]);
        now += seconds(5);
        let trial = breaker.begin(now);
        assert_eq!(breaker.succeeded(trial), Change::Closed);
        let ticket = breaker.begin(now);
        assert_eq!(breaker.failed(ticket, Harm::Gone, now), Change::Opened { pause: seconds(1) }, "forgiven");
    }

    #[test]
    fn a_sign_of_life_ends_a_trial_and_forgives_nothing() {
        let mut now = Instant::now();
        let mut breaker = proven(now);
        let ticket = breaker.begin(now);
        for _ in 0..2 {
            breaker.failed(ticket, Harm::Blow, now);
            assert_eq!(breaker.heard(ticket), Change::None);
        }
        assert_eq!(breaker.failed(ticket, Harm::Blow, now), Change::Opened { pause: seconds(1) });
        for (pause, next) in [(1, 2), (2, 4), (4, 5)] {
            now += seconds(pause);
            let trial = breaker.begin(now);
            assert_eq!(breaker.heard(trial), Change::Closed);
            assert_eq!(breaker.standing(now), Standing::Closed);
            assert_eq!(
                breaker.failed(trial, Harm::Blow, now),
                Change::Opened { pause: seconds(next) },
                "it has answered nothing since"
            );
        }
        now += seconds(5);
        let trial = breaker.begin(now);
        breaker.heard(trial);
        breaker.succeeded(trial);
        assert_eq!(breaker.failed(trial, Harm::Blow, now), Change::None, "a whole answer forgives");
    }

    #[test]
    fn what_began_before_it_opened_is_old_news() {
        let now = Instant::now();
        let mut breaker = proven(now);
        let (slow, quick) = (breaker.begin(now), breaker.begin(now));
        breaker.failed(quick, Harm::Gone, now);
        assert_eq!(breaker.failed(slow, Harm::Gone, now), Change::None);
        assert_eq!(breaker.succeeded(slow), Change::None);
        assert_eq!(breaker.standing(now), Standing::Shut { until: now + seconds(1) });
    }

    #[test]
    fn a_caller_who_leaves_during_the_trial_hands_it_to_the_next() {
        let now = Instant::now();
        let mut breaker = Breaker::new(PACE, now);
        let trial = breaker.begin(now);
        breaker.abandoned(trial, now);
        assert_eq!(breaker.standing(now), Standing::Due);
        // One who leaves a healthy host changes nothing.
        let mut breaker = proven(now);
        let ticket = breaker.begin(now);
        breaker.abandoned(ticket, now);
        assert_eq!(breaker.standing(now), Standing::Closed);
    }

    #[test]
    fn a_shut_host_that_answers_all_the_same_is_open_to_everybody_again() {
        let now = Instant::now();
        let mut breaker = proven(now);
        let ticket = breaker.begin(now);
        breaker.failed(ticket, Harm::Gone, now);
        let forced = breaker.begin(now);
        assert!(!forced.is_proven());
        assert_eq!(breaker.failed(forced, Harm::Gone, now), Change::None, "the pause stays as it is");
        assert_eq!(breaker.standing(now), Standing::Shut { until: now + seconds(1) });
        let forced = breaker.begin(now);
        assert_eq!(breaker.succeeded(forced), Change::Closed);
    }
}
