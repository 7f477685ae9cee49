use super::*;
use crate::question_class::{Language, QueryClass};

fn model(name: &str, billions: u64) -> Candidate {
    let parameters = (billions > 0).then_some(billions * 1_000_000_000);
    Candidate { model: name.into(), parameters, ..Candidate::default() }
}

fn coder(name: &str, billions: u64) -> Candidate {
    Candidate { made_for: MadeFor::Code, ..model(name, billions) }
}

fn at(speed: f64, candidate: Candidate) -> Candidate {
    Candidate { speed: Some(speed), ..candidate }
}

fn about(topic: Topic, length: Length) -> Query {
    let class = QueryClass { topic, length, language: Language::English };
    Query { class, tokens: 1, pictures: false }
}

fn choice(query: &Query, candidates: &[Candidate]) -> Option<(String, String)> {
    let candidates: Vec<&Candidate> = candidates.iter().collect();
    let choice = Heuristic.choose(query, &candidates, Lot::new(0.0))?;
    Some((choice.model, choice.reason.to_string()))
}

#[test]
fn each_kind_of_question_has_its_model() {
    let house = [model("small", 1), model("large", 70), coder("coder", 7), model("medium", 8)];
    for (topic, length, expected, why) in [
        (
            Topic::Plain,
            Length::Short,
            "small",
            "the question is short and plain, so the smallest of 3 models",
        ),
        (
            Topic::Plain,
            Length::Medium,
            "medium",
            "the question is plain, but not short, so the middle one of 3 models by size",
        ),
        (Topic::Plain, Length::Long, "large", "there is much to read, so the largest of 3 models"),
        (Topic::Code, Length::Short, "coder", "it is about code, so the only model for code"),
        (Topic::Code, Length::Long, "coder", "it is about code, so the only model for code"),
        (Topic::Maths, Length::Short, "large", "it is about mathematics, so the largest of 3 models"),
        (Topic::Steps, Length::Medium, "large", "it takes several steps, so the largest of 3 models"),
        (Topic::Tools, Length::Short, "large", "it takes tools, so the largest of 3 models"),
    ] {
        let expected = Some((expected.to_owned(), why.to_owned()));
        assert_eq!(choice(&about(topic, length), &house), expected, "{topic:?} {length:?}");
    }
}

#[test]
fn the_choice_does_not_depend_on_the_order_of_the_list() {
    let mut house =
        vec![model("b", 7), model("a", 7), coder("d", 3), model("c", 1), coder("e", 3), model("f", 0)];
    let questions: Vec<Query> =
        Topic::ALL.into_iter().flat_map(|topic| Length::ALL.map(|length| about(topic, length))).collect();
    let choices =
        |house: &[Candidate]| -> Vec<_> { questions.iter().map(|query| choice(query, house)).collect() };
    let first = choices(&house);
    for _ in 0..house.len() {
        house.rotate_left(1);
        assert_eq!(choices(&house), first);
    }
}

#[test]
fn among_models_for_code_the_largest_is_taken() {
    let house = [coder("small", 3), coder("large", 32), model("general", 70)];
    let chosen = choice(&about(Topic::Code, Length::Short), &house);
    assert_eq!(chosen.map(|(model, _)| model).as_deref(), Some("large"));
}

#[test]
fn without_a_model_for_code_the_largest_has_to_do() {
    let house = [model("small", 1), model("large", 70)];
    let why = "it is about code, and no model here is made for that, so the largest of 2 models";
    assert_eq!(choice(&about(Topic::Code, Length::Short), &house), Some(("large".into(), why.into())));
}

#[test]
fn models_for_code_answer_other_questions_only_where_there_is_nobody_else() {
    let house = [coder("small", 1), coder("large", 7)];
    let chosen = choice(&about(Topic::Plain, Length::Short), &house);
    assert_eq!(chosen.map(|(model, _)| model).as_deref(), Some("small"));
}

#[test]
fn of_models_that_are_about_as_small_the_fastest_answers() {
    let plain = about(Topic::Plain, Length::Short);
    let house = [at(20.0, model("a", 2)), at(90.0, model("b", 3)), at(200.0, model("c", 8))];
    let why = "the question is short and plain, so the fastest small one of 3 models";
    assert_eq!(choice(&plain, &house), Some(("b".into(), why.into())));
    let measured_once = [model("a", 2), at(90.0, model("b", 3))];
    assert_eq!(choice(&plain, &measured_once).map(|(model, _)| model).as_deref(), Some("a"));
}

#[test]
fn a_model_that_crawls_is_passed_over() {
    let hard = about(Topic::Maths, Length::Short);
    let house = [model("small", 1), at(12.0, model("medium", 8)), at(0.4, model("huge", 70))];
    let why = "it is about mathematics, so the largest that is not too slow here of 3 models";
    assert_eq!(choice(&hard, &house), Some(("medium".into(), why.into())));
    let all_crawl = [at(0.1, model("small", 1)), at(0.4, model("huge", 70))];
    assert_eq!(choice(&hard, &all_crawl).map(|(model, _)| model).as_deref(), Some("huge"));
}

#[test]
fn a_model_of_unknown_size_is_neither_the_smallest_nor_the_largest() {
    let house = [model("known", 7), model("also-known", 8), model("mystery", 0)];
    for length in Length::ALL {
        let chosen = choice(&about(Topic::Plain, length), &house);
        assert_ne!(chosen.map(|(model, _)| model).as_deref(), Some("mystery"), "{length:?}");
    }
    let nobody_knows = [at(5.0, model("a", 0)), at(50.0, model("b", 0))];
    let why = "the question is short and plain, so the fastest of 2 models";
    assert_eq!(choice(&about(Topic::Plain, Length::Short), &nobody_knows), Some(("b".into(), why.into())));
}
