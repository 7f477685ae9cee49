use super::*;
use crate::{ModelRecord, QuestionClass, QuestionLanguage, QuestionLength, QuestionTopic};

const QUESTION: QuestionProfile = QuestionProfile {
    class: QuestionClass {
        topic: QuestionTopic::Code,
        length: QuestionLength::Short,
        language: QuestionLanguage::English,
    },
    tokens: 1,
    pictures: false,
};

fn names(models: &[&str]) -> Vec<String> {
    models.iter().map(|model| (*model).to_owned()).collect()
}

fn candidates(models: &[&str]) -> Vec<ModelCandidate> {
    models
        .iter()
        .map(|model| ModelCandidate { model: (*model).to_owned(), ..ModelCandidate::default() })
        .collect()
}

fn choose(policy: &Grpo, models: &[&str], draw: f64) -> PolicyChoice {
    let candidates = candidates(models);
    let candidates: Vec<&ModelCandidate> = candidates.iter().collect();
    policy.choose(&QUESTION, &candidates, RandomDraw::new(draw)).expect("there is something to choose from")
}

fn update<'a>(model: &'a str, candidates: &'a [String], reward: f64) -> RewardUpdate<'a> {
    RewardUpdate { model, candidates, probability: None, reward, earlier: None, strength: 1.0 }
}

/// A class in which every model has been tried often enough.
fn known(weights: &[(&str, f64)]) -> Grpo {
    let of = |weight| ModelRecord { weight, samples: ENOUGH_TRIES, rewards: 2.0, ..ModelRecord::default() };
    let models = weights.iter().map(|(model, weight)| ((*model).to_owned(), of(*weight))).collect();
    Grpo { record: ClassRecord { recent: vec![0.5; 8], models }, in_flight: BTreeMap::new() }
}

#[test]
fn unknown_models_are_tried_evenly() {
    let candidates = names(&["a", "b", "c"]);
    let mut policy = Grpo::default();
    let mut tried = BTreeMap::<String, u64>::new();
    for round in 0..3 * ENOUGH_TRIES {
        let choice = choose(&policy, &["a", "b", "c"], (round as f64 * 0.37).fract());
        assert!(choice.reason.as_str().starts_with("try "), "{}", choice.reason);
        *tried.entry(choice.model.clone()).or_default() += 1;
        learn(&mut policy.record, &update(&choice.model, &candidates, 0.5));
    }
    assert!(tried.values().all(|times| *times == ENOUGH_TRIES), "{tried:?}");
    let next = choose(&policy, &["a", "b", "c"], 0.0);
    assert_eq!(next.reason.as_str(), "33 % for code/short/english, with a mean reward of 0.50 in 4 answers");
}

#[test]
fn questions_in_flight_count_as_tries() {
    let in_flight = [("a".to_owned(), ENOUGH_TRIES)].into();
    let policy = Grpo { in_flight, ..Grpo::default() };
    for draw in [0.0, 0.5, 0.99] {
        assert_eq!(choose(&policy, &["a", "b"], draw).model, "b");
    }
}

#[test]
fn a_model_that_never_earns_a_reward_is_not_tried_forever() {
    let mut policy = known(&[("good", 0.0)]);
    let tried = ModelRecord { tries: ENOUGH_TRIES - 1, ..ModelRecord::default() };
    policy.record.models.insert("mute".into(), tried);
    let choice = choose(&policy, &["good", "mute"], 0.0);
    let why = "try 3 of 4 for code/short/english";
    assert_eq!((choice.model.as_str(), choice.reason.as_str()), ("mute", why));
    policy.record.models.entry("mute".into()).or_default().tries = ENOUGH_TRIES;
    assert_eq!(choose(&policy, &["good", "mute"], 0.0).model, "good");
    let why = "50 % for code/short/english, without any rewards yet";
    assert_eq!(choose(&policy, &["good", "mute"], 0.9).reason.as_str(), why);
}

#[test]
fn a_try_in_flight_and_in_the_record_counts_once() {
    let tried = ModelRecord { tries: 2, samples: 1, ..ModelRecord::default() };
    let record = ClassRecord { models: [("a".to_owned(), tried)].into(), ..ClassRecord::default() };
    let policy = Grpo { record, in_flight: [("a".to_owned(), 1)].into() };
    assert_eq!(policy.tries("a"), 2);
}

#[test]
fn only_the_random_number_and_the_weights_decide() {
    let policy = known(&[("a", 0.0), ("b", 3.0_f64.ln())]);
    for (draw, expected) in [(0.0, "a"), (0.24, "a"), (0.26, "b"), (0.999, "b")] {
        assert_eq!(choose(&policy, &["b", "a"], draw).model, expected, "{draw}");
        assert_eq!(choose(&policy, &["a", "b"], draw).model, expected, "whatever the order: {draw}");
    }
    assert!(choose(&policy, &["a", "b"], 0.9).probability.is_some_and(|share| (share - 0.75).abs() < 1e-9));
}

#[test]
fn better_rewards_raise_a_weight_and_worse_ones_lower_it() {
    let candidates = names(&["a", "b"]);
    let share = |policy: &Grpo| probabilities(&policy.record, &candidates)[0];
    let mut praised = known(&[("a", 0.0), ("b", 0.0)]);
    learn(&mut praised.record, &update("a", &candidates, 0.9));
    let mut blamed = known(&[("a", 0.0), ("b", 0.0)]);
    learn(&mut blamed.record, &update("a", &candidates, 0.1));
    let mut usual = known(&[("a", 0.0), ("b", 0.0)]);
    learn(&mut usual.record, &update("a", &candidates, 0.5));
    assert!(share(&praised) > 0.5 && share(&blamed) < 0.5, "{} {}", share(&praised), share(&blamed));
    assert_eq!(share(&usual), 0.5);
}

#[test]
fn weights_stay_bounded() {
    let candidates = names(&["a", "b"]);
    let mut policy = known(&[("a", 0.0), ("b", 0.0)]);
    for round in 0..10_000 {
        let (model, reward) = if round % 2 == 0 { ("a", 1.0) } else { ("b", 0.0) };
        learn(&mut policy.record, &RewardUpdate { strength: 3.0, ..update(model, &candidates, reward) });
    }
    let weights: Vec<f64> = policy.record.models.values().map(|known| known.weight).collect();
    assert_eq!(weights, [MAX_WEIGHT, -MAX_WEIGHT]);
    assert_eq!(policy.record.recent.len(), GROUP_SIZE);
}

#[test]
fn a_late_reward_changes_little() {
    let candidates = names(&["a", "b"]);
    // When it was chosen, it was half as likely as it is now.
    let mut policy = known(&[("a", 1.0), ("b", -1.0)]);
    let before = policy.record.models["a"].weight;
    learn(&mut policy.record, &RewardUpdate { probability: Some(0.4), ..update("a", &candidates, 0.9) });
    assert_eq!(policy.record.models["a"].weight, before);
    learn(&mut policy.record, &update("a", &candidates, 0.9));
    assert!(policy.record.models["a"].weight > before, "what people say does not go stale");
}

#[test]
fn a_new_reward_replaces_the_one_before() {
    let candidates = names(&["a", "b"]);
    let mut policy = Grpo::default();
    learn(&mut policy.record, &update("a", &candidates, 0.6));
    learn(&mut policy.record, &RewardUpdate { earlier: Some(0.6), ..update("a", &candidates, 1.0) });
    let known = policy.record.models["a"];
    assert_eq!((known.samples, known.mean_reward()), (1, Some(1.0)));
    assert_eq!(policy.record.recent, [1.0]);
    assert!(known.weight > 0.0, "praise counts from the first answer on");
}

#[test]
fn absent_models_keep_their_knowledge() {
    let mut policy = known(&[("a", 1.0), ("b", -0.5), ("away", 2.0)]);
    let present = names(&["a", "b"]);
    learn(&mut policy.record, &update("a", &present, 0.9));
    assert_eq!(policy.record.models["away"].weight, 2.0);
    let shares: f64 = probabilities(&policy.record, &present).iter().sum();
    assert!((shares - 1.0).abs() < 1e-9, "the present models share everything");
}

#[test]
fn invalid_rewards_are_ignored() {
    let candidates = names(&["a", "b"]);
    let mut policy = known(&[("a", 0.0), ("b", 0.0)]);
    let before = policy.record.clone();
    learn(&mut policy.record, &update("a", &candidates, f64::NAN));
    assert_eq!(policy.record, before);
    learn(&mut policy.record, &update("a", &names(&["b"]), 0.9));
    assert_eq!(policy.record.models["b"].weight, 0.0, "it was none of those it was chosen from");
}
