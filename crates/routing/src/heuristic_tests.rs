use super::*;
use crate::{QuestionClass, QuestionLanguage};

fn model(name: &str, billions: u64) -> ModelCandidate {
    let parameters = (billions > 0).then_some(billions * 1_000_000_000);
    ModelCandidate { model: name.into(), parameters, ..ModelCandidate::default() }
}

fn coder(name: &str, billions: u64) -> ModelCandidate {
    ModelCandidate { made_for: ModelSpecialty::Code, ..model(name, billions) }
}

fn at(speed: f64, candidate: ModelCandidate) -> ModelCandidate {
    ModelCandidate { speed: Some(speed), ..candidate }
}

fn about(topic: QuestionTopic, length: QuestionLength) -> QuestionProfile {
    let class = QuestionClass { topic, length, language: QuestionLanguage::English };
    QuestionProfile { class, tokens: 1, pictures: false }
}

fn choice(query: &QuestionProfile, candidates: &[ModelCandidate]) -> Option<(String, String)> {
    let candidates: Vec<&ModelCandidate> = candidates.iter().collect();
    let choice = Heuristic.choose(query, &candidates, RandomDraw::new(0.0))?;
    Some((choice.model, choice.reason.to_string()))
}

#[test]
fn each_kind_of_question_has_its_model() {
    let models = [model("small", 1), model("large", 70), coder("coder", 7), model("medium", 8)];
    for (topic, length, expected, why) in [
        (
            QuestionTopic::Plain,
            QuestionLength::Short,
            "small",
            "the question is short and simple, so the smallest of 3 models",
        ),
        (
            QuestionTopic::Plain,
            QuestionLength::Medium,
            "medium",
            "the question is simple, but not short, so the middle one of 3 models by size",
        ),
        (
            QuestionTopic::Plain,
            QuestionLength::Long,
            "large",
            "the input is long, so the largest of 3 models",
        ),
        (QuestionTopic::Code, QuestionLength::Short, "coder", "it is about code, so the only model for code"),
        (QuestionTopic::Code, QuestionLength::Long, "coder", "it is about code, so the only model for code"),
        (
            QuestionTopic::Maths,
            QuestionLength::Short,
            "large",
            "it is about mathematics, so the largest of 3 models",
        ),
        (
            QuestionTopic::Steps,
            QuestionLength::Medium,
            "large",
            "it needs several steps, so the largest of 3 models",
        ),
        (QuestionTopic::Tools, QuestionLength::Short, "large", "it needs tools, so the largest of 3 models"),
    ] {
        let expected = Some((expected.to_owned(), why.to_owned()));
        assert_eq!(choice(&about(topic, length), &models), expected, "{topic:?} {length:?}");
    }
}

#[test]
fn the_choice_does_not_depend_on_the_order_of_the_list() {
    let mut models =
        vec![model("b", 7), model("a", 7), coder("d", 3), model("c", 1), coder("e", 3), model("f", 0)];
    let questions: Vec<QuestionProfile> = QuestionTopic::ALL
        .into_iter()
        .flat_map(|topic| QuestionLength::ALL.map(|length| about(topic, length)))
        .collect();
    let choices = |models: &[ModelCandidate]| -> Vec<_> {
        questions.iter().map(|query| choice(query, models)).collect()
    };
    let first = choices(&models);
    for _ in 0..models.len() {
        models.rotate_left(1);
        assert_eq!(choices(&models), first);
    }
}

#[test]
fn the_largest_model_for_code_is_chosen() {
    let models = [coder("small", 3), coder("large", 32), model("general", 70)];
    let chosen = choice(&about(QuestionTopic::Code, QuestionLength::Short), &models);
    assert_eq!(chosen.map(|(model, _)| model).as_deref(), Some("large"));
}

#[test]
fn without_a_model_for_code_the_largest_answers() {
    let models = [model("small", 1), model("large", 70)];
    let why = "it is about code, and there is no model for code, so the largest of 2 models";
    assert_eq!(
        choice(&about(QuestionTopic::Code, QuestionLength::Short), &models),
        Some(("large".into(), why.into()))
    );
}

#[test]
fn models_for_code_answer_other_questions_only_without_an_alternative() {
    let models = [coder("small", 1), coder("large", 7)];
    let chosen = choice(&about(QuestionTopic::Plain, QuestionLength::Short), &models);
    assert_eq!(chosen.map(|(model, _)| model).as_deref(), Some("small"));
}

#[test]
fn the_fastest_of_the_small_models_answers() {
    let plain = about(QuestionTopic::Plain, QuestionLength::Short);
    let models = [at(20.0, model("a", 2)), at(90.0, model("b", 3)), at(200.0, model("c", 8))];
    let why = "the question is short and simple, so the fastest small one of 3 models";
    assert_eq!(choice(&plain, &models), Some(("b".into(), why.into())));
    let measured_once = [model("a", 2), at(90.0, model("b", 3))];
    assert_eq!(choice(&plain, &measured_once).map(|(model, _)| model).as_deref(), Some("a"));
}

#[test]
fn a_model_that_is_too_slow_is_skipped() {
    let hard = about(QuestionTopic::Maths, QuestionLength::Short);
    let models = [model("small", 1), at(12.0, model("medium", 8)), at(0.4, model("huge", 70))];
    let why = "it is about mathematics, so the largest that is not too slow of 3 models";
    assert_eq!(choice(&hard, &models), Some(("medium".into(), why.into())));
    let all_crawl = [at(0.1, model("small", 1)), at(0.4, model("huge", 70))];
    assert_eq!(choice(&hard, &all_crawl).map(|(model, _)| model).as_deref(), Some("huge"));
}

#[test]
fn a_model_of_unknown_size_is_neither_the_smallest_nor_the_largest() {
    let models = [model("known", 7), model("also-known", 8), model("mystery", 0)];
    for length in QuestionLength::ALL {
        let chosen = choice(&about(QuestionTopic::Plain, length), &models);
        assert_ne!(chosen.map(|(model, _)| model).as_deref(), Some("mystery"), "{length:?}");
    }
    let nobody_knows = [at(5.0, model("a", 0)), at(50.0, model("b", 0))];
    let why = "the question is short and simple, so the fastest of 2 models";
    assert_eq!(
        choice(&about(QuestionTopic::Plain, QuestionLength::Short), &nobody_knows),
        Some(("b".into(), why.into()))
    );
}
