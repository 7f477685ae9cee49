//! What must be true after all faults. Each check returns what is wrong.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use serde_json::Value;

use super::cluster::Life;
use super::engine::{Call, mark_of};
use super::faults::Outage;
use super::load::{Answered, Exchange};
use super::messages;

/// Calls that may wait in a process for the database, as documented for `hob_telemetry_dropped_total`.
const TELEMETRY_QUEUE: usize = 8192;

/// A question is answered and its answer sent within this time, also on a busy machine.
const ANSWER_TIME: Duration = Duration::from_secs(15);

/// Everything that is known about the calls of a test.
pub struct Evidence {
    pub calls: Vec<Call>,
    pub lives: Vec<Life>,
    /// When the database was away.
    pub outages: Vec<Outage>,
}

impl Evidence {
    fn was_killed(&self, call: &Call) -> bool {
        self.lives[call.process].killed.is_some()
    }

    /// Whether its process was killed before the answer could be sent.
    fn was_cut_off(&self, call: &Call) -> bool {
        self.lives[call.process].killed.is_some_and(|killed| killed <= call.began + ANSWER_TIME)
    }

    /// Whether the database went away before the answer to the question could be sent, or was away when it began.
    fn met_outage(&self, call: &Call) -> bool {
        self.outages
            .iter()
            .any(|(stopped, started)| *stopped <= call.began + ANSWER_TIME && call.began <= *started)
    }

    fn calls_about(&self, subject: &str) -> Vec<&Call> {
        self.calls.iter().filter(|call| call.subject == subject).collect()
    }

    /// A request may fail only if its replica did not live from its start to its end.
    pub fn failed_requests(&self, exchanges: &[Exchange]) -> (usize, Vec<String>) {
        let (mut excused, mut wrong) = (0, Vec::new());
        for exchange in exchanges {
            let Some(failure) = &exchange.failure else { continue };
            let lived = |life: &Life| {
                Some(&life.address) == exchange.replica.as_ref()
                    && life.began <= exchange.began
                    && life.killed.is_none_or(|killed| killed > exchange.ended)
            };
            if exchange.replica.is_none() || self.lives.iter().any(lived) {
                wrong.push(format!("{} at {:?}: {failure}", exchange.what, exchange.replica));
            } else {
                excused += 1;
            }
        }
        (excused, wrong)
    }

    /// The runs of a task against the calls for it: every call belongs to one run, and a run without a result was interrupted with
    /// its process.
    pub fn runs(&self, task: &TaskRuns) -> Vec<String> {
        let TaskRuns { subject, runs } = task;
        let mut wrong = Vec::new();
        let slots: BTreeSet<&str> = runs.iter().filter_map(|run| run["slot"].as_str()).collect();
        if slots.len() != runs.len() {
            wrong.push(format!("{subject} has two runs for a slot: {runs:?}"));
        }
        let mut results = BTreeSet::new();
        let mut interrupted = 0;
        for run in runs {
            match (run["outcome"].as_str(), run["result"].as_str().and_then(|text| mark_of(text, subject))) {
                (Some("succeeded"), Some(mark)) => {
                    if !results.insert(mark) {
                        wrong.push(format!("{subject} has the result {mark} twice"));
                    }
                }
                (Some("interrupted"), _) => interrupted += 1,
                _ => wrong.push(format!("{subject} has a run that did not succeed: {run}")),
            }
        }
        let calls = self.calls_about(subject);
        let without_result: Vec<&&Call> = calls.iter().filter(|call| !results.contains(&call.mark)).collect();
        if results.len() + without_result.len() != calls.len() || without_result.len() > interrupted {
            wrong.push(format!("{subject} ran {} times, but its log has {runs:?}", calls.len()));
        }
        for call in without_result {
            if !self.was_killed(call) {
                wrong.push(format!("{subject} lost the result of call {}, whose process lived", call.mark));
            }
        }
        wrong
    }

    /// A message is answered once. It is asked again only if the process that asked was killed, or gave up its lease of the channel because
    /// the database did not answer: then no answer that was not sent yet is sent. An answer is noted as sent just before it is sent, so each
    /// kill may lose one.
    pub fn messages(&self, frames: &[Value], count: usize) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut lost = Vec::new();
        for number in 0..count {
            let answers = messages::answers(frames, number);
            let calls = self.calls_about(&messages::subject(number));
            let living = calls.iter().filter(|call| !self.was_killed(call) && !self.met_outage(call)).count();
            let distinct: BTreeSet<&u64> = answers.iter().collect();
            let is_repeated = distinct.len() != answers.len();
            let of_living =
                |mark: &&u64| calls.iter().any(|call| call.mark == **mark && !self.was_killed(call));
            let is_answered_twice = answers.iter().filter(of_living).count() > 1;
            if answers.is_empty() && calls.last().is_some_and(|call| self.was_cut_off(call)) {
                lost.push(number);
            } else if answers.is_empty() || is_repeated || is_answered_twice || living > 1 {
                wrong.push(format!("message {number} has the answers {answers:?} of the calls {calls:?}"));
            }
        }
        let kills = self.lives.iter().filter(|life| life.killed.is_some()).count();
        if lost.len() > kills {
            wrong.push(format!("{kills} kills lose the answers to the messages {lost:?}"));
        }
        wrong
    }

    /// Every call is recorded once, except the last ones of a process that was killed. Returns how many those are.
    pub fn telemetry(&self, records: &[Value], answered: &[Answered]) -> (usize, Vec<String>) {
        let mut wrong = Vec::new();
        let mut recorded: HashMap<u64, usize> = HashMap::new();
        // A cancelled call has no count of the engine, so its record does not say which one it was.
        let (cancelled, counted): (Vec<&Value>, Vec<&Value>) =
            records.iter().partition(|record| record["estimated"] == true);
        let mut cancelled = cancelled.len();
        for record in counted {
            *recorded.entry(record["prompt_tokens"].as_u64().unwrap_or_default()).or_default() += 1;
        }
        let ends: HashMap<u64, _> = answered.iter().map(|answer| (answer.mark, answer.ended)).collect();
        // The latest start of a recorded call of each process.
        let mut latest: BTreeMap<usize, _> = BTreeMap::new();
        for call in self.calls.iter().filter(|call| recorded.contains_key(&call.mark)) {
            let began = latest.entry(call.process).or_insert(call.began);
            *began = call.began.max(*began);
        }
        let mut lost: BTreeMap<usize, usize> = BTreeMap::new();
        for call in &self.calls {
            match recorded.remove(&call.mark) {
                Some(1) => {}
                Some(times) => wrong.push(format!("{call:?} is recorded {times} times")),
                None if !self.was_killed(call) && self.met_outage(call) && cancelled > 0 => cancelled -= 1,
                None if !self.was_killed(call) => wrong.push(format!("{call:?} is not recorded")),
                None => {
                    *lost.entry(call.process).or_default() += 1;
                    // Records are written in order: if a later one was, an earlier one was too.
                    if let (Some(ended), Some(latest)) = (ends.get(&call.mark), latest.get(&call.process))
                        && ended < latest
                    {
                        wrong.push(format!("{call:?} is not recorded, but a later call of its process is"));
                    }
                }
            }
        }
        if !recorded.is_empty() {
            wrong.push(format!("records without a call: {recorded:?}"));
        }
        if lost.values().any(|count| *count > TELEMETRY_QUEUE) {
            wrong.push(format!("more records are lost than may wait: {lost:?}"));
        }
        (lost.values().sum(), wrong)
    }
}

/// The log of a task.
pub struct TaskRuns {
    pub subject: String,
    pub runs: Vec<Value>,
}
