//! Whether drafts make answers faster, by the time that steps took. Pure: times are passed in.
//!
//! That depends on both models, on the machine, and most of all on how many answers are in progress: the more tokens a step has
//! anyway, the more each guess adds to its time. So each number of answers is measured for itself, with and without drafts.

use std::time::Duration;

/// The most answers in progress for which drafts are made. A step with more is a full one, which takes longer with every token.
pub(crate) const MAX_DRAFTING: usize = 8;

/// Steps until an average counts.
const LEARNED: u32 = 4;

/// Answers in steps with drafts that decide whether they continue: as many steps for one answer, fewer for several.
const TRIAL: u32 = 16;

/// Steps with drafts until one without them is measured again: a longer text makes all steps slower.
const REFRESH: u32 = 64;

/// Steps without drafts until the next trial, at first and at most. It doubles with every trial that was slower.
const FIRST_PAUSE: u32 = 64;
const LONGEST_PAUSE: u32 = 2048;

/// The probability that a guess needs with all before it. Not a higher one: on a processor, a step with two tokens takes much longer than
/// one with a single token, and one with four hardly longer than that.
const LEAST_PROBABLE: f32 = 0.25;

/// Drafts that were worth it continue with this part of the speed without them, because both are measured with some error.
const CONTINUED: f64 = 0.9;

/// The last samples that an average is of, about.
const REMEMBERED: u32 = 32;

/// A moving average.
#[derive(Debug, Clone, Copy, Default)]
struct Average {
    value: f64,
    samples: u32,
}

impl Average {
    fn add(&mut self, sample: f64) {
        // One step that is slow because another program has the processor must not decide.
        let sample = if self.samples >= LEARNED { sample.min(self.value * 2.0) } else { sample };
        self.samples = (self.samples + 1).min(REMEMBERED);
        self.value += (sample - self.value) / f64::from(self.samples);
    }
}

/// A step over answers in progress, without prompts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct StepTimes {
    /// All of it.
    pub(crate) whole: Duration,
    /// Passes of the draft model.
    pub(crate) rounds: usize,
    /// Tokens that the answers got.
    pub(crate) gained: usize,
}

/// What is done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DraftMode {
    /// The next steps with drafts decide.
    Trial,
    Drafting,
    /// So many more steps without drafts.
    Pause(u32),
}

/// The steps with one number of answers.
#[derive(Debug, Clone, Copy)]
struct StreamCosts {
    mode: DraftMode,
    /// The length of the next pause.
    pause: u32,
    /// Steps with drafts since one without them.
    since_plain: u32,
    /// Seconds of a step without drafts, and with them.
    plain: Average,
    drafted: Average,
    /// Tokens that a step with drafts gave.
    gained: Average,
}

impl Default for StreamCosts {
    fn default() -> Self {
        StreamCosts {
            mode: DraftMode::Trial,
            pause: FIRST_PAUSE,
            since_plain: 0,
            plain: Average::default(),
            drafted: Average::default(),
            gained: Average::default(),
        }
    }
}

impl StreamCosts {
    fn plan(&self) -> Option<f32> {
        match self.mode {
            _ if self.plain.samples < LEARNED => None,
            DraftMode::Pause(_) => None,
            DraftMode::Drafting if self.since_plain >= REFRESH => None,
            DraftMode::Trial | DraftMode::Drafting => Some(LEAST_PROBABLE),
        }
    }

    /// The tokens in a second with drafts, as a part of those without.
    fn speed(&self, streams: f64) -> f64 {
        self.gained.value * self.plain.value / (streams * self.drafted.value).max(f64::MIN_POSITIVE)
    }

    fn learn_plain(&mut self, whole: Duration) {
        self.plain.add(whole.as_secs_f64());
        self.since_plain = 0;
        if let DraftMode::Pause(left) = self.mode {
            self.mode = match left {
                0 | 1 => DraftMode::Trial,
                _ => DraftMode::Pause(left - 1),
            };
        }
    }

    fn learn_drafted(&mut self, streams: f64, step: &StepTimes) {
        self.drafted.add(step.whole.as_secs_f64());
        self.gained.add(step.gained as f64);
        self.since_plain += 1;
        let needed = match self.mode {
            DraftMode::Trial if self.drafted.samples < LEARNED => return,
            DraftMode::Trial if f64::from(self.drafted.samples) * streams < f64::from(TRIAL) => return,
            DraftMode::Trial => 1.0,
            DraftMode::Drafting => CONTINUED,
            DraftMode::Pause(_) => return,
        };
        if self.speed(streams) > needed {
            (self.mode, self.pause) = (DraftMode::Drafting, FIRST_PAUSE);
        } else {
            self.mode = DraftMode::Pause(self.pause);
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            // The next trial is measured for itself.
            (self.drafted, self.gained) = Default::default();
        }
    }
}

/// The times of steps, by the number of answers in progress.
#[derive(Debug, Default)]
pub(crate) struct DraftCosts {
    streams: [StreamCosts; MAX_DRAFTING],
}

impl DraftCosts {
    /// The probability that guesses need in the next step with so many answers; `None` for a step without drafts.
    pub(crate) fn plan(&self, streams: usize) -> Option<f32> {
        self.streams.get(streams.checked_sub(1)?)?.plan()
    }

    /// Learns from a step with so many answers.
    pub(crate) fn learn(&mut self, streams: usize, step: &StepTimes) {
        let Some(costs) = streams.checked_sub(1).and_then(|at| self.streams.get_mut(at)) else { return };
        match step.rounds {
            0 => costs.learn_plain(step.whole),
            _ => costs.learn_drafted(streams as f64, step),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// Two models on a machine: the time of a step of the target is `step` and `token` for each of its tokens.
    struct Pair {
        step: u64,
        token: u64,
        /// A pass of the draft model.
        round: u64,
        /// Guesses of a step, and those of them that are right.
        guesses: usize,
        right: usize,
    }

    impl Pair {
        /// The steps with drafts among so many, and the milliseconds for each token of the answers.
        fn run(&self, costs: &mut DraftCosts, streams: usize, steps: usize) -> (usize, f64) {
            let (mut drafted, mut took, mut gained) = (0, Duration::ZERO, 0);
            for _ in 0..steps {
                let plan = costs.plan(streams);
                drafted += usize::from(plan.is_some());
                let (rounds, guesses, right) = match plan {
                    Some(_) => (self.guesses, self.guesses, self.right),
                    None => (0, 0, 0),
                };
                let read = streams * (1 + guesses);
                let drafting = ms(self.round) * u32::try_from(rounds).expect("few");
                let whole = drafting + ms(self.step + self.token * read as u64);
                let step = StepTimes { whole, rounds, gained: streams * (1 + right) };
                costs.learn(streams, &step);
                took += whole;
                gained += step.gained;
            }
            (drafted, took.as_secs_f64() * 1000.0 / gained as f64)
        }
    }

    #[test]
    fn drafts_continue_where_they_are_faster() {
        // The memory limits a single answer: a step hardly takes longer with more tokens.
        let pair = Pair { step: 100, token: 2, round: 10, guesses: 4, right: 3 };
        let mut costs = DraftCosts::default();
        let (drafted, each) = pair.run(&mut costs, 1, 1000);
        assert!(drafted > 960 && each < 40.0, "{drafted} steps, {each} ms");
    }

    #[test]
    fn drafts_pause_where_they_are_slower_for_longer_and_longer() {
        // Each token takes as long as in a step of its own.
        let pair = Pair { step: 5, token: 95, round: 10, guesses: 4, right: 3 };
        let mut costs = DraftCosts::default();
        let (first, _) = pair.run(&mut costs, 4, 200);
        let (later, each) = pair.run(&mut costs, 4, 10_000);
        assert!((4..=12).contains(&first) && later <= 32, "{first} and {later} steps");
        assert!(each < 96.25 * 1.02, "{each} ms");
    }

    #[test]
    fn each_number_of_answers_is_measured_for_itself() {
        let pair = Pair { step: 40, token: 20, round: 5, guesses: 4, right: 3 };
        let mut costs = DraftCosts::default();
        for streams in [1, MAX_DRAFTING] {
            pair.run(&mut costs, streams, 50);
        }
        let plans = [1, MAX_DRAFTING].map(|streams| costs.plan(streams).is_some());
        assert_eq!(plans, [true, false]);
        assert_eq!([0, MAX_DRAFTING + 1].map(|streams| costs.plan(streams)), [None, None]);
    }

    #[test]
    fn a_draft_that_becomes_useless_is_noticed_and_so_is_the_contrary() {
        let mut pair = Pair { step: 100, token: 2, round: 10, guesses: 4, right: 3 };
        let mut costs = DraftCosts::default();
        pair.run(&mut costs, 1, 100);
        pair.right = 0;
        let (drafted, _) = pair.run(&mut costs, 1, 1000);
        assert!(drafted < 160, "{drafted} steps");
        pair.right = 3;
        let (drafted, _) = pair.run(&mut costs, 1, 4000);
        assert!(drafted > 1500, "{drafted} steps");
    }

    #[test]
    fn one_slow_step_decides_nothing() {
        let pair = Pair { step: 100, token: 2, round: 10, guesses: 4, right: 3 };
        let mut costs = DraftCosts::default();
        pair.run(&mut costs, 1, 30);
        let slow = StepTimes { whole: ms(9000), rounds: 4, gained: 1 };
        costs.learn(1, &slow);
        assert!(costs.plan(1).is_some());
    }
}
