//! The default model: is one set, and does the engine have it.

use hob_core::model::AUTO;
use hob_core::{Engine, ModelInfo, ModelKind};

use super::report::{CheckStatus, DoctorCheck};
use crate::engine_advice;
use crate::missing_model_hint::is_downloadable;
use crate::output::text::one_line;
use crate::starter_model;

const NAME: &str = "model";

/// Whether a question that names no model can be answered.
pub fn check(engine: &dyn Engine, models: Option<&[ModelInfo]>, wanted: Option<&str>) -> (bool, DoctorCheck) {
    let key = engine.key();
    // An engine with models can use one of them; other engines need a model first.
    let offered = models.unwrap_or_default().iter().find(|model| model.kind == ModelKind::Text);
    let how_to_get = |wanted: &str| match offered {
        _ if key == "ollama" || (key == "embedded" && is_downloadable(wanted)) => {
            format!("Download it with 'hob model pull {wanted}'")
        }
        Some(offered) => {
            format!("Choose one of its models: [intelligence] default_model = \"{}\"", one_line(&offered.id))
        }
        None => engine_advice::how_to_get_a_model(key).to_owned(),
    };
    // 'auto' without any model counts as no model.
    let wanted = wanted.filter(|wanted| *wanted != AUTO || offered.is_some());
    match (wanted, models) {
        (Some(AUTO), Some(_)) => (
            true,
            DoctorCheck::new(
                NAME,
                CheckStatus::Good,
                format!("{AUTO}: Hob chooses one of {key}'s models for each question"),
            ),
        ),
        (Some(wanted), Some(models)) if models.iter().any(|model| engine.means(wanted, &model.id)) => {
            (true, DoctorCheck::new(NAME, CheckStatus::Good, described(wanted, "")))
        }
        (Some(wanted), Some(_)) if engine.lists_every_model() => {
            let check = DoctorCheck::new(
                NAME,
                CheckStatus::Bad,
                format!("{key} does not have the default model '{wanted}'"),
            );
            (false, check.advise(how_to_get(wanted)))
        }
        (Some(wanted), _) => {
            (true, DoctorCheck::new(NAME, CheckStatus::Good, format!("{wanted} (not listed by {key})")))
        }
        // An embedding model cannot answer, so it is never the default.
        (None, Some(models)) => match models.iter().find(|model| model.kind == ModelKind::Text) {
            Some(first) => (
                true,
                DoctorCheck::new(
                    NAME,
                    CheckStatus::Good,
                    described(&first.id, &format!(", the first model of {key}")),
                ),
            ),
            None => {
                let check = DoctorCheck::new(NAME, CheckStatus::Bad, format!("{key} has no model"));
                (false, check.advise(engine_advice::how_to_get_a_model(key)))
            }
        },
        (None, None) => {
            let check = DoctorCheck::new(
                NAME,
                CheckStatus::Bad,
                format!("{key} does not list its models, and no default is set"),
            );
            (false, check.advise("Set [intelligence] default_model"))
        }
    }
}

/// A model that answers, where it comes from, and a hint if it is the starter model.
fn described(model: &str, origin: &str) -> String {
    let name = one_line(model);
    match starter_model::trial_note(&name) {
        Some(trial) => format!("{name}{origin}\n{trial}"),
        None => format!("{name}{origin}"),
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
            (Some(&one[..]), None, CheckStatus::Good),
            (Some(&one[..]), Some("m"), CheckStatus::Good),
            (Some(&one[..]), Some("auto"), CheckStatus::Good),
            (Some(&[][..]), Some("auto"), CheckStatus::Bad),
            (Some(&one[..]), Some("other"), CheckStatus::Bad),
            (Some(&[][..]), None, CheckStatus::Bad),
            (None, None, CheckStatus::Bad),
            (None, Some("m"), CheckStatus::Good),
        ] {
            let (can_answer, check) = check(&engine, models, wanted);
            assert_eq!(
                (can_answer, check.status),
                (status == CheckStatus::Good, status),
                "{models:?} {wanted:?}"
            );
            assert_eq!(check.advice.is_some(), status == CheckStatus::Bad);
        }
    }

    #[test]
    fn a_default_model_that_hob_can_download_is_downloaded_first() {
        let engine = ScriptedEngine::saying(&[]).called("embedded");
        let models = [ModelInfo::named("m")];
        for (wanted, advice) in [
            ("qwen3:8b", "Download it with 'hob model pull qwen3:8b'"),
            ("mine", "Choose one of its models: [intelligence] default_model = \"m\""),
        ] {
            let (_, check) = check(&engine, Some(&models), Some(wanted));
            assert_eq!(check.advice.as_deref(), Some(advice), "{wanted}");
        }
    }

    #[test]
    fn the_starter_model_is_called_a_trial_model() {
        let engine = ScriptedEngine::saying(&[]);
        let models = [ModelInfo::named("smollm2-135m-instruct")];
        for wanted in [None, Some("smollm2-135m-instruct")] {
            let (can_answer, check) = check(&engine, Some(&models), wanted);
            assert!(can_answer && check.status == CheckStatus::Good);
            assert!(check.message.contains("is a small trial model"), "{}", check.message);
            assert!(check.message.contains("'hob model list --available'"), "{}", check.message);
        }
    }
}
