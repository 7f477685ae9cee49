//! Which models can answer a question, and the choice of a policy among them.

use hob_core::engine::CLOUD;
use hob_core::{ListedModel, ModelReason, NoSuitableModel};

use crate::model_facts::model_candidate;
use crate::{ModelCandidate, PolicyChoice, QuestionProfile, RandomDraw, RouterPolicy};

/// The number of models to choose from. A provider may list hundreds, too many to learn about each.
const MAX_CANDIDATES: usize = 64;

/// A question and answer of this many tokens fit into a context of unknown length.
const FITS_ANYWHERE: u64 = 4096;

/// The chosen model, and the models it was chosen from.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelChoice {
    pub model: String,
    pub reason: ModelReason,
    /// The probability of the choice; `None` if it was not random.
    pub probability: Option<f64>,
    /// Including the chosen one.
    pub candidates: Vec<String>,
}

/// The models that can answer, with their speed, which `speed` knows by engine and model. Cloud models only if the cloud is the default
/// engine: the fallback decides when the cloud replaces an engine that is down.
pub(crate) fn candidates(
    models: &[ListedModel],
    default_engine: &str,
    speed: impl Fn(&str, &str) -> Option<f64>,
) -> Vec<ModelCandidate> {
    let may_answer = |listed: &&ListedModel| listed.engine != CLOUD || default_engine == CLOUD;
    let known = models.iter().filter(may_answer).filter_map(|ListedModel { engine, model }| {
        let speed = speed(engine, &model.id);
        Some(ModelCandidate { speed, ..model_candidate(model)? })
    });
    known.take(MAX_CANDIDATES).collect()
}

/// Chooses with `policy` among the models of `engine` that can answer.
pub fn choose(
    policy: &dyn RouterPolicy,
    query: &QuestionProfile,
    candidates: &[ModelCandidate],
    draw: RandomDraw,
    engine: &str,
) -> Result<ModelChoice, NoSuitableModel> {
    let able = able(query, candidates, engine)?;
    let choice = match able.as_slice() {
        [only] => Some(PolicyChoice {
            model: only.model.clone(),
            reason: ModelReason::new(match candidates.len() {
                1 => "it is the only model".to_owned(),
                all => format!("it is the only one of {all} models that can answer the question"),
            }),
            probability: None,
        }),
        several => policy.choose(query, several, draw),
    };
    let PolicyChoice { reason, model, probability } =
        choice.ok_or_else(|| NoSuitableModel::NoModel { engine: engine.to_owned() })?;
    let is_chosen = |candidate: &&&ModelCandidate| candidate.model == model;
    let doubt = match able.iter().find(is_chosen) {
        Some(ModelCandidate { context: None, .. }) if query.tokens > FITS_ANYWHERE => {
            "; the length of its context is unknown"
        }
        _ => "",
    };
    let reason = ModelReason::new(format!("{}: {reason}{doubt}", policy.name()));
    let candidates = able.into_iter().map(|candidate| candidate.model.clone()).collect();
    Ok(ModelChoice { model, reason, probability, candidates })
}

/// The models whose context is long enough, and that support images if there are any.
fn able<'a>(
    query: &QuestionProfile,
    candidates: &'a [ModelCandidate],
    engine: &str,
) -> Result<Vec<&'a ModelCandidate>, NoSuitableModel> {
    let is_known_to_fit =
        |candidate: &ModelCandidate| candidate.context.is_some_and(|context| query.tokens <= context);
    let none_is_known_to = !candidates.iter().any(is_known_to_fit);
    // A context of unknown length may be too short, and some engines then drop the beginning silently. So such models are used
    // only if no other model is long enough.
    let may_fit = |candidate: &ModelCandidate| {
        candidate.context.is_none() && (none_is_known_to || query.tokens <= FITS_ANYWHERE)
    };
    let fits = |candidate: &&ModelCandidate| is_known_to_fit(candidate) || may_fit(candidate);
    let fitting: Vec<&ModelCandidate> = candidates.iter().filter(fits).collect();
    if fitting.is_empty() {
        let longest = candidates
            .iter()
            .filter_map(|candidate| Some((candidate.context?, candidate)))
            .max_by(|(one, left), (other, right)| one.cmp(other).then_with(|| right.model.cmp(&left.model)));
        return Err(match longest {
            Some((context, ModelCandidate { model, .. })) => NoSuitableModel::NothingFits {
                engine: engine.to_owned(),
                tokens: query.tokens,
                model: model.clone(),
                context,
            },
            None => NoSuitableModel::NoModel { engine: engine.to_owned() },
        });
    }
    // Vision is known for a few names only, so if there are none, no model is excluded.
    let with_vision: Vec<&ModelCandidate> =
        fitting.iter().copied().filter(|candidate| candidate.sees).collect();
    Ok(if query.pictures && !with_vision.is_empty() { with_vision } else { fitting })
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
