//! The policy in a made-up world whose truth is known, so that its regret can be counted: what the best model of each class would
//! have earned, less what the chosen one did.

use fastrand::Rng;

use super::*;
use crate::{Knowledge, QuestionClass, QuestionLanguage, QuestionLength, QuestionTopic};

const MODELS: [&str; 4] = ["tiny", "coder", "medium", "large"];

/// What each model is worth for each topic. No single one is the best for all of them.
const WORTH: [(QuestionTopic, [f64; 4]); 3] = [
    (QuestionTopic::Plain, [0.75, 0.55, 0.60, 0.35]),
    (QuestionTopic::Code, [0.35, 0.80, 0.55, 0.60]),
    (QuestionTopic::Maths, [0.30, 0.50, 0.55, 0.85]),
];

/// Rewards lie this far around what a model is worth.
const NOISE: f64 = 0.25;

const ROUNDS: usize = 2000;

struct World {
    rng: Rng,
    knowledge: Knowledge,
}

impl World {
    fn new(seed: u64) -> Self {
        World { rng: Rng::with_seed(seed), knowledge: Knowledge::new() }
    }

    /// One question among `models`, answered and learnt from. Gives what was lost by not choosing the best.
    fn ask(&mut self, models: &[&str], worth: impl Fn(QuestionTopic, &str) -> f64) -> f64 {
        let (topic, _) = WORTH[self.rng.usize(..WORTH.len())];
        let class =
            QuestionClass { topic, length: QuestionLength::Short, language: QuestionLanguage::English };
        let record = self.knowledge.entry(class).or_default();
        let policy = Grpo { record: record.clone(), in_flight: BTreeMap::new() };
        let candidates: Vec<ModelCandidate> = models
            .iter()
            .map(|model| ModelCandidate { model: (*model).to_owned(), ..ModelCandidate::default() })
            .collect();
        let candidates: Vec<&ModelCandidate> = candidates.iter().collect();
        let query = QuestionProfile { class, tokens: 1, pictures: false };
        let choice = policy.choose(&query, &candidates, RandomDraw::new(self.rng.f64())).expect("a choice");
        let candidates: Vec<String> = models.iter().map(|model| (*model).to_owned()).collect();
        let reward = worth(topic, &choice.model) + NOISE * (2.0 * self.rng.f64() - 1.0);
        let update = RewardUpdate {
            model: &choice.model,
            candidates: &candidates,
            probability: choice.probability,
            reward,
            earlier: None,
            strength: 1.0,
        };
        learn(record, &update);
        let best = models.iter().map(|model| worth(topic, model)).fold(0.0, f64::max);
        best - worth(topic, &choice.model)
    }

    fn regret(
        &mut self,
        rounds: usize,
        models: &[&str],
        worth: impl Fn(QuestionTopic, &str) -> f64 + Copy,
    ) -> f64 {
        (0..rounds).map(|_| self.ask(models, worth)).sum::<f64>() / rounds as f64
    }
}

fn worth(topic: QuestionTopic, model: &str) -> f64 {
    let place = MODELS.iter().position(|known| *known == model);
    let of_topic = WORTH.iter().find(|(known, _)| *known == topic);
    place.zip(of_topic).map_or(0.0, |(place, (_, worth))| worth[place])
}

/// The mean regret of answering everything with `model`.
fn fixed(model: &str) -> f64 {
    let lost = WORTH.iter().map(|(topic, of)| of.iter().copied().fold(0.0, f64::max) - worth(*topic, model));
    lost.sum::<f64>() / WORTH.len() as f64
}

fn best_fixed() -> f64 {
    MODELS.iter().map(|model| fixed(model)).fold(f64::MAX, f64::min)
}

/// The mean regret of random choices.
fn uniform() -> f64 {
    MODELS.iter().map(|model| fixed(model)).sum::<f64>() / MODELS.len() as f64
}

#[test]
fn regret_goes_down_and_ends_far_below_any_fixed_choice() {
    for seed in 0..20 {
        let mut world = World::new(seed);
        let quarters: Vec<f64> = (0..4).map(|_| world.regret(ROUNDS / 4, &MODELS, worth)).collect();
        let all = quarters.iter().sum::<f64>() / 4.0;
        assert!(all < best_fixed() / 2.0 && all < uniform() / 2.0, "seed {seed}: {all} of {}", best_fixed());
        assert!(quarters[3] < quarters[0] / 3.0, "seed {seed}: {quarters:?}");
        assert!(quarters[3] < best_fixed() / 8.0, "seed {seed}: {quarters:?}");
    }
}

#[test]
fn a_better_model_that_is_added_later_is_found() {
    for seed in 0..20 {
        let mut world = World::new(seed);
        let without: Vec<&str> = MODELS[..3].to_vec();
        world.regret(ROUNDS / 2, &without, worth);
        world.regret(ROUNDS / 2, &MODELS, worth);
        let after = world.regret(ROUNDS / 4, &MODELS, worth);
        assert!(after < best_fixed() / 6.0, "seed {seed}: {after}");
    }
}

#[test]
fn a_model_that_returns_keeps_its_knowledge() {
    let (without, away) = (&MODELS[..3], MODELS[3]);
    let (mut remembered, mut forgotten) = (0.0, 0.0);
    for seed in 0..20 {
        let mut world = World::new(seed);
        world.regret(ROUNDS, &MODELS, worth);
        world.regret(ROUNDS / 20, without, worth);
        let mut forgetful = World { rng: world.rng.clone(), knowledge: world.knowledge.clone() };
        for record in forgetful.knowledge.values_mut() {
            record.models.remove(away);
        }
        remembered += world.regret(ROUNDS / 20, &MODELS, worth);
        forgotten += forgetful.regret(ROUNDS / 20, &MODELS, worth);
    }
    assert!(remembered < forgotten / 2.0, "{remembered} {forgotten}");
}

#[test]
fn the_policy_follows_changes() {
    let turned = |topic: QuestionTopic, model: &str| 1.1 - worth(topic, model);
    for seed in 0..20 {
        let mut world = World::new(seed);
        world.regret(ROUNDS, &MODELS, worth);
        let at_first = world.regret(ROUNDS / 10, &MODELS, turned);
        world.regret(ROUNDS, &MODELS, turned);
        let in_the_end = world.regret(ROUNDS / 4, &MODELS, turned);
        assert!(in_the_end < at_first / 2.0, "seed {seed}: {at_first} {in_the_end}");
    }
}
