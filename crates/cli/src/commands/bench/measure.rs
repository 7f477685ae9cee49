//! Measures how fast an engine answers, on the same path as every request.

use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt, stream};
use hob_app::AskService;
use hob_core::{
    AgentPreference, AskError, Caller, Delta, GenerateRequest, MaxTokens, Message, RequestSource, Role,
    Temperature,
};

/// The length of an answer in tokens: long enough for a stable rate, short enough for a slow machine.
const ANSWER_TOKENS: i64 = 128;

/// One question and its answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Time to the complete answer.
    pub latency: Duration,
    /// Time to the first piece.
    pub first_token: Duration,
    pub tokens: u64,
}

/// A summary of times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub mean: Duration,
    pub p50: Duration,
    pub p95: Duration,
    pub min: Duration,
    pub max: Duration,
}

impl Spread {
    /// `None` without times. A percentile is a measured time: the smallest one with that share at or below it.
    pub fn of(times: impl IntoIterator<Item = Duration>) -> Option<Self> {
        let mut times: Vec<Duration> = times.into_iter().collect();
        times.sort_unstable();
        let (min, max) = (*times.first()?, *times.last()?);
        let at = |percent: usize| times[(times.len() * percent).div_ceil(100).max(1) - 1];
        let mean = times.iter().sum::<Duration>().div_f64(times.len() as f64);
        Some(Spread { mean, p50: at(50), p95: at(95), min, max })
    }
}

/// Answers to concurrent requests.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadResult {
    pub samples: Vec<Sample>,
    /// From the first question to the last answer.
    pub time: Duration,
}

impl LoadResult {
    pub fn tokens(&self) -> u64 {
        self.samples.iter().map(|sample| sample.tokens).sum()
    }

    pub fn tokens_per_second(&self) -> f64 {
        self.tokens() as f64 / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// A bench of one model.
pub struct Bench<'a> {
    pub system: &'a AskService,
    pub model: &'a str,
}

impl Bench<'_> {
    /// Asks `samples` questions, at most `at_once` at a time, and reports every answer. The first failure ends the bench, because
    /// the figures of a failing engine would be misleading.
    pub async fn rush(
        &self,
        samples: usize,
        at_once: usize,
        answered: &(dyn Fn() + Sync),
    ) -> Result<LoadResult, AskError> {
        let clock = Instant::now();
        let asking = stream::iter(0..samples).map(|number| async move {
            let sample = self.ask(number).await;
            answered();
            sample
        });
        let samples = asking.buffer_unordered(at_once.max(1)).try_collect().await?;
        Ok(LoadResult { samples, time: clock.elapsed() })
    }

    /// One question that loads the model and is not counted.
    pub async fn warm_up(&self) -> Result<(), AskError> {
        self.ask(usize::MAX).await.map(drop)
    }

    async fn ask(&self, number: usize) -> Result<Sample, AskError> {
        // Each question starts differently, so that a prefix cache does not improve the figures.
        let question =
            format!("Exercise {number}. Explain in about a hundred words how a bicycle stays upright.");
        let request = GenerateRequest {
            model: self.model.to_owned(),
            messages: vec![Message::new(Role::User, question)],
            temperature: Temperature::new(0.0).ok(),
            max_tokens: MaxTokens::new(ANSWER_TOKENS).ok(),
            ..GenerateRequest::default()
        };
        let caller =
            Caller { agent: AgentPreference::None, ..Caller::trusted(RequestSource::Bench, "bench") };
        let clock = Instant::now();
        let mut deltas = self.system.stream(request, &caller).await?.deltas;
        let (mut first_token, mut tokens) = (None, 0);
        while let Some(delta) = deltas.next().await {
            match delta? {
                Delta::Done { usage } => tokens = usage.map_or(0, |usage| usage.completion_tokens),
                _ => {
                    first_token.get_or_insert_with(|| clock.elapsed());
                }
            }
        }
        let latency = clock.elapsed();
        Ok(Sample { latency, first_token: first_token.unwrap_or(latency), tokens })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use hob_agents::ToolSet;
    use hob_app::AskServiceParts;
    use hob_core::EventBus;
    use hob_telemetry::NoInferenceLog;
    use hob_testkit::ScriptedEngine;

    use super::*;

    fn seconds(times: &[u64]) -> Option<Spread> {
        Spread::of(times.iter().copied().map(Duration::from_secs))
    }

    #[test]
    fn percentiles_are_measured_values() {
        let all: Vec<u64> = (1..=100).rev().collect();
        let spread = |mean, p50, p95, min, max| {
            let [p50, p95, min, max] = [p50, p95, min, max].map(Duration::from_secs);
            Some(Spread { mean: Duration::from_millis(mean), p50, p95, min, max })
        };
        assert_eq!(seconds(&all), spread(50_500, 50, 95, 1, 100));
        assert_eq!(seconds(&[3, 1, 2]), spread(2_000, 2, 3, 1, 3));
        assert_eq!(seconds(&[7]), spread(7_000, 7, 7, 7, 7));
        assert_eq!(seconds(&[]), None);
    }

    #[tokio::test]
    async fn every_question_goes_to_the_engine_and_starts_differently() {
        let engine = Arc::new(ScriptedEngine::saying(&["one", "two"]));
        let system = AskService::new(AskServiceParts {
            engine: Arc::clone(&engine) as _,
            default_model: None,
            agent: hob_agents::agent("simple"),
            tools: ToolSet::default(),
            max_turns: 1,
            bus: EventBus::new(),
            log: Arc::new(NoInferenceLog),
        });
        let answered = AtomicUsize::new(0);
        let count = || {
            answered.fetch_add(1, Ordering::Relaxed);
        };
        let rush = Bench { system: &system, model: "m" }.rush(5, 2, &count).await.unwrap();
        assert_eq!((rush.samples.len(), rush.tokens(), answered.into_inner()), (5, 10, 5));
        assert!(rush.tokens_per_second() > 0.0);
        assert!(rush.samples.iter().all(|sample| sample.first_token <= sample.latency));
        let mut questions: Vec<_> = engine.requests().into_iter().map(|request| request.messages).collect();
        questions.dedup();
        assert_eq!(questions.len(), 5);
    }
}
