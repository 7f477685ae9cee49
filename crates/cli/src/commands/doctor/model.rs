//! The default model: is there one, and does the engine have it.

use hob_core::{Engine, ModelInfo, ModelKind};

use super::report::{Check, Status};
use crate::output::text::one_line;

const NAME: &str = "model";

/// Whether a question that names no model can be answered.
pub fn check(engine: &dyn Engine, models: Option<&[ModelInfo]>, wanted: Option<&str>) -> (bool, Check) {
    let key = engine.key();
    let how_to_get = |name: &str| match key {
        "ollama" => format!("Get it with 'hob model pull {name}'"),
        _ => format!("Start {key} with a model, or name one of its models in [intelligence] default_model"),
    };
    match (wanted, models) {
        (Some(wanted), Some(models)) if models.iter().any(|model| engine.means(wanted, &model.id)) => {
            (true, Check::new(NAME, Status::Good, wanted))
        }
        (Some(wanted), Some(_)) if engine.lists_every_model() => {
            let check =
                Check::new(NAME, Status::Bad, format!("{key} has no model '{wanted}', which is the default"));
            (false, check.advise(how_to_get(wanted)))
        }
        (Some(wanted), _) => {
            (true, Check::new(NAME, Status::Good, format!("{wanted}, which {key} does not list")))
        }
        // A model that makes vectors is nobody's default: it cannot answer.
        (None, Some(models)) => match models.iter().find(|model| model.kind == ModelKind::Text) {
            Some(first) => {
                (true, Check::new(NAME, Status::Good, format!("{}, the first of {key}", one_line(&first.id))))
            }
            None => {
                let check = Check::new(NAME, Status::Bad, format!("{key} has no model"));
                (false, check.advise(how_to_get("qwen3:0.6b")))
            }
        },
        (None, None) => {
            let check = Check::new(
                NAME,
                Status::Bad,
                format!("{key} does not list its models, and no default is set"),
            );
            (false, check.advise("Set [intelligence] default_model"))
        }
    }
}

#[cfg(test)]
mod tests {
    use hob_testkit::ScriptedEngine;

    use super::*;

    #[test]
    fn only_a_model_that_is_there_can_answer() {
        let engine = ScriptedEngine::saying(&[]);
        let one = [ModelInfo::named("m")];
        for (models, wanted, status) in [
            (Some(&one[..]), None, Status::Good),
            (Some(&one[..]), Some("m"), Status::Good),
            (Some(&one[..]), Some("other"), Status::Bad),
            (Some(&[][..]), None, Status::Bad),
            (None, None, Status::Bad),
            (None, Some("m"), Status::Good),
        ] {
            let (can_answer, check) = check(&engine, models, wanted);
            assert_eq!((can_answer, check.status), (status == Status::Good, status), "{models:?} {wanted:?}");
            assert_eq!(check.advice.is_some(), status == Status::Bad);
        }
    }
}
