//! A drafter with a real model, which guesses what the model itself would write.

use std::iter;

use hob_models::StoredModel;

use super::*;
use crate::fixtures::{on_processor, short_model, stored_model};
use crate::loaded_model::LoadedModel;
use crate::options::{DraftOptions, LlamaOptions};

const TEXT: &str = "The capital of France is Paris. The capital of Italy is Rome. The capital of Spain is";

fn load() -> (LoadedModel, DraftModel) {
    load_both(&stored_model())
}

fn load_both(stored: &StoredModel) -> (LoadedModel, DraftModel) {
    let draft = DraftOptions { model: stored.id.clone(), when: DraftUse::Always };
    let options =
        LlamaOptions { context: Some(1024), parallel: Some(3), draft: Some(draft), ..on_processor() };
    let target = LoadedModel::load_file(stored, &stored.path, &options).expect("a model");
    let draft = DraftModel::load(&target, stored, &options).expect("its draft model");
    (target, draft)
}

fn drafter<'model>(target: &LoadedModel, draft: &'model DraftModel) -> Drafter<'model> {
    Drafter::new(draft, target.model.n_vocab()).expect("a drafter")
}

fn task(slot: usize, text: &[Token], most: usize) -> DraftTask<'_> {
    let (next, text) = text.split_last().expect("a token");
    DraftTask { slot, text, next: *next, most, written: 0, trust: DraftTrust::default() }
}

/// The guesses for each text, in the slots from 0 on.
fn guesses(drafter: &mut Drafter<'_>, texts: &[&[Token]], most: usize) -> Vec<Vec<Token>> {
    let tasks: Vec<DraftTask<'_>> =
        texts.iter().enumerate().map(|(slot, text)| task(slot, text, most)).collect();
    drafter.draft(&tasks, &[], 0.0, |_| false).expect("guesses").guesses
}

#[test]
fn several_guesses_are_those_that_would_be_made_one_by_one() {
    let (target, draft) = load();
    let mut drafter = drafter(&target, &draft);
    let mut text = target.tokens(TEXT, true);
    let [together] = &guesses(&mut drafter, &[&text], 8)[..] else { panic!("one text") };
    assert_eq!(together.len(), 8);
    let one_by_one = iter::repeat_with(|| {
        let guess = guesses(&mut drafter, &[&text], 1)[0][0];
        text.push(guess);
        guess
    });
    assert_eq!(*together, one_by_one.take(8).collect::<Vec<_>>());
    assert!(target.text_of(together).contains("Madrid"), "{}", target.text_of(together));
}

#[test]
fn wrong_guesses_are_taken_back() {
    let (target, draft) = load();
    let mut drafter = drafter(&target, &draft);
    let text = target.tokens(TEXT, true);
    let first = guesses(&mut drafter, &[&text], 8).remove(0);
    // The target chose the first two of them, and then something else.
    let other = target.tokens(" not known", false);
    let changed: Vec<Token> = text.iter().chain(&first[..2]).chain(&other).copied().collect();
    let after = guesses(&mut drafter, &[&changed], 8).remove(0);
    let mut fresh = Drafter::new(&draft, target.model.n_vocab()).expect("a drafter");
    assert_eq!(after, guesses(&mut fresh, &[&changed], 8)[0]);
    assert_eq!(guesses(&mut drafter, &[&text], 8)[0], first);
}

#[test]
fn several_answers_are_guessed_for_together_and_share_what_they_have() {
    let (target, draft) = load();
    let mut drafter = drafter(&target, &draft);
    let texts: Vec<Vec<Token>> =
        [" Madrid. The capital of Sweden is", " Madrid. Who lives there?", " a city"]
            .map(|end| target.tokens(&format!("{TEXT}{end}"), true))
            .to_vec();
    let alone: Vec<Vec<Token>> = texts
        .iter()
        .map(|text| {
            let mut fresh = Drafter::new(&draft, target.model.n_vocab()).expect("a drafter");
            guesses(&mut fresh, &[text], 4).remove(0)
        })
        .collect();
    guesses(&mut drafter, &[&texts[0]], 4);
    let all: Vec<&[Token]> = texts.iter().map(Vec::as_slice).collect();
    assert_eq!(guesses(&mut drafter, &all, 4), alone);
}

#[test]
fn a_long_text_is_read_over_several_steps_beside_the_guesses_for_others() {
    let (target, draft) = load_both(&short_model());
    let mut drafter = drafter(&target, &draft);
    let long: Vec<Token> = target.tokens(TEXT, true).repeat(16)[..300].to_vec();
    let short = target.tokens(TEXT, true);
    let mut steps = Vec::new();
    for _ in 0..4 {
        let tasks = [task(0, &long, 2), task(1, &short, 2)];
        let drafts = drafter.draft(&tasks, &[], 0.0, |_| false).expect("guesses");
        steps.push((drafts.guesses[0].len(), drafts.guesses[1].len(), drafts.caught_up));
    }
    assert_eq!(steps, [(0, 2, true), (0, 2, true), (2, 2, true), (2, 2, false)]);
}

#[test]
fn a_long_prompt_is_read_when_the_answer_is_worth_it() {
    let (target, mut draft) = load_both(&short_model());
    draft.when = DraftUse::Faster;
    let mut drafter = drafter(&target, &draft);
    let text: Vec<Token> = target.tokens(TEXT, true).repeat(16)[..100].to_vec();
    let mut rounds = |written| {
        let task = DraftTask { written, ..task(0, &text, 2) };
        drafter.draft(&[task], &[], 0.0, |_| false).expect("guesses").rounds
    };
    assert_eq!([0, 1, 2, 3, 3].map(&mut rounds), [0, 0, 0, 2, 2]);
}

#[test]
fn guesses_end_where_they_are_unlikely_where_the_text_ends_and_at_unknown_tokens() {
    let (target, draft) = load();
    let mut drafter = drafter(&target, &draft);
    let text = target.tokens(TEXT, true);
    let all = guesses(&mut drafter, &[&text], 8).remove(0);
    let draft = |drafter: &mut Drafter<'_>, text: &[Token], least, end| {
        drafter
            .draft(&[task(0, text, 8)], &[], least, |token| Some(token) == end)
            .expect("guesses")
            .guesses
            .remove(0)
    };
    assert!(draft(&mut drafter, &text, 1.1, None).is_empty());
    let some = draft(&mut drafter, &text, 0.5, None);
    assert!(!some.is_empty() && all.starts_with(&some), "{some:?} of {all:?}");
    let end = all.iter().position(|token| *token == all[2]).expect("it is there");
    assert_eq!(draft(&mut drafter, &text, 0.0, Some(all[2])), all[..end]);
    // A picture, or a token that only the target has.
    let unknown: Vec<Token> = text.iter().copied().chain([target.model.n_vocab(), 5]).collect();
    assert!(draft(&mut drafter, &unknown, 0.0, None).is_empty());
}

#[test]
fn the_memory_grows_with_what_it_holds_up_to_its_limit() {
    let (target, draft) = load_both(&short_model());
    let mut drafter = drafter(&target, &draft);
    let text = target.tokens(TEXT, true);
    let before = guesses(&mut drafter, &[&text], 4);
    assert_eq!(drafter.wanted_cells(&[task(0, &text, 4)]), None);
    let long: Vec<Token> = text.repeat(100)[..1500].to_vec();
    assert_eq!(drafter.wanted_cells(&[task(1, &long, 4)]), Some(2048));
    drafter.enlarge(2048).expect("more memory");
    assert_eq!((drafter.slots.cells(), drafter.slots.len(0)), (2048, text.len() + 3));
    assert_eq!(guesses(&mut drafter, &[&text], 4), before);
    let longest: Vec<Token> = text.repeat(1000)[..8000].to_vec();
    assert_eq!(drafter.wanted_cells(&[task(1, &longest, 4)]), Some(8192));
    // Without more memory, a long text has no guesses, and the others have.
    drafter.refuse(8192);
    assert_eq!(drafter.wanted_cells(&[task(1, &longest, 4)]), None);
    let all = guesses(&mut drafter, &[&text, &longest], 4);
    assert_eq!(all, [before[0].clone(), Vec::new()]);
}

#[test]
fn a_memory_that_is_full_is_an_error_and_no_crash() {
    let (target, draft) = load_both(&short_model());
    let mut drafter = drafter(&target, &draft);
    drafter.forget_its_limit();
    let long: Vec<Token> = target.tokens(TEXT, true).repeat(100)[..1500].to_vec();
    let tasks = [task(0, &long, 4)];
    let error = (0..20).find_map(|_| drafter.draft(&tasks, &[], 0.0, |_| false).err());
    assert!(error.is_some());
}

#[test]
fn the_most_likely_token_has_its_probability() {
    let expected = most_likely(&[0.0, 2.0, f32::NEG_INFINITY, 1.0]).expect("a token");
    let sum = (-2.0_f32).exp() + 1.0 + (-1.0_f32).exp();
    assert_eq!(expected.token, 1);
    assert!((expected.probability - 1.0 / sum).abs() < 1e-6, "{expected:?}");
    assert_eq!(most_likely(&[f32::NAN; 3]), None);
    assert_eq!(most_likely(&[]), None);
}

#[test]
fn the_memory_grows_only_for_texts_that_get_guesses() {
    let (target, draft) = load_both(&short_model());
    let drafter = drafter(&target, &draft);
    let wanted = |text: &[Token]| drafter.wanted_cells(&[task(0, text, 8)]);
    assert_eq!(wanted(&[1; 2000]), Some(2048));
    // Longer than the memory can be, and with a picture.
    assert_eq!(wanted(&[1; 8200]), None);
    let mut with_picture = [1; 2000];
    with_picture[1500] = -1;
    assert_eq!(wanted(&with_picture), None);
}
