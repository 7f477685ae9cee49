use super::*;
use crate::{Heuristic, QuestionClass, QuestionLanguage, QuestionLength, QuestionTopic};

const QUESTION: QuestionProfile = QuestionProfile {
    class: QuestionClass {
        topic: QuestionTopic::Plain,
        length: QuestionLength::Short,
        language: QuestionLanguage::English,
    },
    tokens: 3000,
    pictures: false,
};

const LONG: QuestionProfile = QuestionProfile { tokens: 5000, ..QUESTION };

fn model(name: &str, context: Option<u64>) -> ModelCandidate {
    ModelCandidate { model: name.into(), context, ..ModelCandidate::default() }
}

fn by_rules(
    query: &QuestionProfile,
    candidates: &[ModelCandidate],
) -> Result<(String, String), NoSuitableModel> {
    let choice = choose(&Heuristic, query, candidates, RandomDraw::new(0.0), "ollama")?;
    Ok((choice.model, choice.reason.to_string()))
}

#[test]
fn a_single_model_is_chosen_and_the_reason_says_so() {
    let expected = Ok(("m".to_owned(), "heuristic: it is the only model".to_owned()));
    assert_eq!(by_rules(&QUESTION, &[model("m", None)]), expected);
}

#[test]
fn only_models_whose_context_is_long_enough_are_chosen_from() {
    let models = [model("a", Some(2999)), model("b", Some(3000)), model("c", Some(512))];
    let why = "heuristic: it is the only one of 3 models that can answer the question";
    assert_eq!(by_rules(&QUESTION, &models), Ok(("b".to_owned(), why.to_owned())));
    assert_eq!(
        by_rules(&QUESTION, &[model("a", Some(512)), model("b", None)]).map(|(model, _)| model),
        Ok("b".into())
    );
}

#[test]
fn a_long_question_goes_where_the_context_is_known_to_be_long_enough() {
    let models = [model("a", None), model("b", Some(8192)), model("c", Some(512))];
    let why = "heuristic: it is the only one of 3 models that can answer the question";
    assert_eq!(by_rules(&LONG, &models), Ok(("b".to_owned(), why.to_owned())));
    let short = choose(&Heuristic, &QUESTION, &models, RandomDraw::new(0.0), "ollama").unwrap();
    assert_eq!(short.candidates, ["a", "b"]);
}

#[test]
fn without_a_known_context_a_long_question_is_asked_and_the_doubt_is_reported() {
    let why = "heuristic: it is the only one of 2 models that can answer the question; the length of its \
         context is unknown";
    let models = [model("a", None), model("c", Some(512))];
    assert_eq!(by_rules(&LONG, &models), Ok(("a".to_owned(), why.to_owned())));
}

#[test]
fn models_that_cannot_answer_are_not_candidates() {
    let models = [model("a", Some(512)), model("b", None), model("c", None)];
    let chosen = choose(&Heuristic, &QUESTION, &models, RandomDraw::new(0.0), "ollama").unwrap();
    assert_eq!((chosen.candidates, chosen.probability), (vec!["b".to_owned(), "c".to_owned()], None));
}

#[test]
fn without_a_fitting_model_the_numbers_are_reported() {
    let refused = by_rules(&LONG, &[model("a", Some(2048)), model("b", Some(4096))]).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "'auto' finds no model on ollama whose context holds about 5000 tokens of question and answer; the longest is b's with 4096. \
         Shorten the conversation, or lower max_tokens."
    );
}

#[test]
fn without_a_model_the_engine_is_named() {
    let refused = by_rules(&QUESTION, &[]).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "'auto' leaves the choice of a model to Hob, but ollama has none that can answer. Give it one; 'hob model list' shows what \
         there is."
    );
}

#[test]
fn images_go_to_a_model_with_vision_if_one_is_known() {
    let with_vision = ModelCandidate { sees: true, ..model("z", None) };
    let picture = QuestionProfile { pictures: true, ..QUESTION };
    let models = [model("a", None), with_vision, model("b", None)];
    assert_eq!(by_rules(&picture, &models).map(|(model, _)| model), Ok("z".into()));
    assert_eq!(by_rules(&picture, &models[..1]).map(|(model, _)| model), Ok("a".into()));
}
