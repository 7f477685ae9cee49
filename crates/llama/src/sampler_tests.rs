use proptest::prelude::*;

use super::*;

fn drawn(params: SamplingParams, scores: &[f32], times: usize) -> Vec<i32> {
    let mut sampler = Sampler::new(params);
    (0..times).filter_map(|_| sampler.choose(scores)).collect()
}

#[test]
fn zero_temperature_takes_the_most_likely() {
    let mut scores = vec![0.0; 1000];
    scores[777] = 3.0;
    scores[888] = 3.0;
    assert_eq!(drawn(SamplingParams::new(0.0, 1), &scores, 2), [777, 777]);
}

#[test]
fn the_same_seed_draws_the_same() {
    let scores: Vec<f32> = (0..100).map(|i| (i as f32 * 0.7).sin()).collect();
    let first = drawn(SamplingParams::new(1.0, 42), &scores, 50);
    assert_eq!(first, drawn(SamplingParams::new(1.0, 42), &scores, 50));
    assert_ne!(first, drawn(SamplingParams::new(1.0, 43), &scores, 50));
}

#[test]
fn more_candidates_than_there_are_tokens_are_all_of_them() {
    let scores: Vec<f32> = (0..2000).map(|i| (i as f32 * 0.7).sin()).collect();
    let with = |top_k| drawn(SamplingParams { top_k, ..SamplingParams::new(1.0, 42) }, &scores, 50);
    for top_k in [2000, 1 << 62, usize::MAX] {
        assert_eq!(with(top_k), with(0), "{top_k}");
    }
}

#[test]
fn a_narrow_top_p_leaves_only_the_most_likely() {
    let params = SamplingParams { top_p: 0.1, ..SamplingParams::new(2.0, 7) };
    assert!(drawn(params, &[1.0, 2.0, 1.5, 0.0], 50).iter().all(|&token| token == 1));
}

#[test]
fn min_p_drops_unlikely_tokens() {
    let params = SamplingParams { top_p: 1.0, min_p: 0.5, ..SamplingParams::new(2.0, 7) };
    assert!(drawn(params, &[5.0, 4.9, 1.0], 100).iter().all(|&token| token < 2));
}

#[test]
fn penalties_avoid_repetition() {
    let params = SamplingParams { presence_penalty: 1.0, ..SamplingParams::new(0.0, 0) };
    let mut sampler = Sampler::new(params);
    assert_eq!(sampler.choose(&[2.0, 1.5]), Some(0));
    sampler.accept(0);
    assert_eq!(sampler.choose(&[2.0, 1.5]), Some(1));
}

#[test]
fn penalties_consider_the_last_tokens_only() {
    let params = SamplingParams { frequency_penalty: 1.0, repeat_last_n: 1, ..SamplingParams::new(0.0, 0) };
    let mut sampler = Sampler::new(params);
    sampler.accept(0);
    sampler.accept(1);
    assert_eq!(sampler.choose(&[2.0, 2.5]), Some(0));
}

#[test]
fn a_bias_moves_a_single_token() {
    let params =
        SamplingParams { bias: vec![(1, 100.0), (-5, 1.0), (99, 1.0)], ..SamplingParams::new(0.0, 0) };
    assert_eq!(drawn(params, &[2.0, 1.5], 1), [1]);
}

#[test]
fn a_bias_adds_to_a_penalty() {
    let params = SamplingParams {
        bias: vec![(1, 1.0), (0, -1.0), (1, 0.5)],
        presence_penalty: 2.0,
        ..SamplingParams::new(0.0, 0)
    };
    let mut sampler = Sampler::new(params);
    // 1.0, 2.5, 1.5, and then 1.0, 0.5, 1.5.
    let scores = [2.0, 1.0, 1.5];
    assert_eq!(sampler.choose(&scores), Some(1));
    sampler.accept(1);
    assert_eq!(sampler.choose(&scores), Some(2));
    let free = sampler.choose_allowed(&scores, |_| Ok::<(), ()>(()));
    assert_eq!(free, Ok(Some(2)));
}

#[test]
fn forbidden_tokens_are_never_chosen() {
    for temperature in [0.0, 1.0] {
        let mut sampler = Sampler::new(SamplingParams::new(temperature, 3));
        let choice = sampler.choose_allowed(&[9.0, 1.0, 8.0], |candidates| {
            for candidate in candidates.iter_mut().filter(|c| c.token != 1) {
                candidate.score = f32::NEG_INFINITY;
            }
            Ok::<(), ()>(())
        });
        assert_eq!(choice, Ok(Some(1)));
        let nothing = sampler.choose_allowed(&[9.0], |candidates| {
            candidates[0].score = f32::NEG_INFINITY;
            Ok::<(), ()>(())
        });
        assert_eq!(nothing, Ok(None));
    }
}

proptest! {
    #[test]
    fn changed_scores_give_the_same_choices_with_and_without_a_copy(
        scores in prop::collection::vec(-10.0f32..10.0, 1..600),
        bias in prop::collection::vec((0i32..700, -20.0f32..20.0), 1..40),
        top_k in 1usize..50,
        temperature in prop::sample::select(vec![0.0f32, 0.8, 3.0]),
    ) {
        let mut plain = scores.clone();
        for &(token, bias) in &bias {
            if let Some(score) = plain.get_mut(token as usize) {
                *score += bias;
            }
        }
        let params = SamplingParams { top_k, ..SamplingParams::new(temperature, 42) };
        let changed = drawn(SamplingParams { bias, ..params }, &scores, 20);
        prop_assert_eq!(changed, drawn(params, &plain, 20));
    }

    #[test]
    fn the_kept_candidates_are_the_best_and_of_equals_the_first(
        // Many are equal, and some are impossible.
        scores in prop::collection::vec(prop_oneof![-10.0f32..10.0, (-3i8..3).prop_map(f32::from), Just(f32::NEG_INFINITY)], 1..3000),
        k in 1usize..50,
    ) {
        let mut kept = Vec::new();
        keep_top(&scores, k, &mut kept);
        let mut sorted: Vec<TokenCandidate> = (0..).zip(&scores).map(|(token, &score)| TokenCandidate { token, score }).collect();
        sorted.retain(|candidate| candidate.score > f32::NEG_INFINITY);
        sorted.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.token.cmp(&b.token)));
        sorted.truncate(k);
        prop_assert_eq!(kept, sorted);
    }

    #[test]
    fn the_kept_share_is_that_of_the_sorted_candidates(scores in prop::collection::vec(-4.0f32..4.0, 1..3000), share in 0.0f32..1.0) {
        let mut kept = Vec::new();
        keep_top(&scores, 0, &mut kept);
        let best = peak(&scores);
        keep_share(&mut kept, share, best);
        let mut sorted = scores.clone();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let total: f32 = scores.iter().map(|score| (score - best).exp()).sum();
        let mut sum = 0.0;
        let last = sorted.iter().position(|score| {
            sum += (score - best).exp() / total;
            sum >= share
        });
        sorted.truncate(last.map_or(sorted.len(), |last| last + 1));
        prop_assert_eq!(kept.iter().map(|c| c.score).collect::<Vec<_>>(), sorted);
    }
}
