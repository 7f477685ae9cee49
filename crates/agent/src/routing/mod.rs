//! Which model suits a question: what is known of the models, what the question is like, and the policies that bring the two
//! together. All of it is pure. Where models, measurements and lots come from is not known here.
//!
//! | file | what |
//! |---|---|
//! | `facts` | what an engine's list, or else a name, tells of a model |
//! | `features` | what a question is like, and the class that makes it |
//! | `heuristic` | the policy that follows rules |
//! | `grpo` | the policy that learns |
//! | `reward` | how good an answer was, as far as one can tell without reading it |

mod facts;
mod features;
pub mod grpo;
mod heuristic;
pub mod reward;

pub use facts::candidate;
pub use features::{query, question};
pub use grpo::Grpo;
pub use heuristic::Heuristic;

use hob_core::RouterPolicy;
use hob_core::routing::{Candidate, Choice, Lot, ModelReason, NoChoice, Query};

/// A model that was chosen, and those that it was chosen from.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    pub model: String,
    pub reason: ModelReason,
    /// How likely a policy that learns found it; `None` where nothing was left to chance.
    pub probability: Option<f64>,
    /// Itself included.
    pub rivals: Vec<String>,
}

/// Chooses by `policy` among the models of `engine` that can answer at all.
pub fn choose(
    policy: &dyn RouterPolicy,
    query: &Query,
    candidates: &[Candidate],
    lot: Lot,
    engine: &str,
) -> Result<Chosen, NoChoice> {
    let able = able(query, candidates, engine)?;
    let choice = match able.as_slice() {
        [only] => Some(Choice {
            model: only.model.clone(),
            reason: ModelReason::new(match candidates.len() {
                1 => "it is the only model there is".to_owned(),
                all => format!("it is the only one of {all} models that can take the question"),
            }),
            probability: None,
        }),
        several => policy.choose(query, several, lot),
    };
    let Choice { reason, model, probability } =
        choice.ok_or_else(|| NoChoice::NoModel { engine: engine.to_owned() })?;
    let reason = ModelReason::new(format!("{}: {reason}", policy.name()));
    let rivals = able.into_iter().map(|candidate| candidate.model.clone()).collect();
    Ok(Chosen { model, reason, probability, rivals })
}

/// Those whose context holds question and answer, and who see where there is something to be seen.
fn able<'a>(
    query: &Query,
    candidates: &'a [Candidate],
    engine: &str,
) -> Result<Vec<&'a Candidate>, NoChoice> {
    // A context that nobody tells is taken to be long enough: the engine will say if it is not.
    let fits = |candidate: &&Candidate| candidate.context.is_none_or(|context| query.tokens <= context);
    let fitting: Vec<&Candidate> = candidates.iter().filter(fits).collect();
    if fitting.is_empty() {
        let longest = candidates
            .iter()
            .filter_map(|candidate| Some((candidate.context?, candidate)))
            .max_by(|(one, left), (other, right)| one.cmp(other).then_with(|| right.model.cmp(&left.model)));
        return Err(match longest {
            Some((context, Candidate { model, .. })) => NoChoice::NothingFits {
                engine: engine.to_owned(),
                tokens: query.tokens,
                model: model.clone(),
                context,
            },
            None => NoChoice::NoModel { engine: engine.to_owned() },
        });
    }
    // Which models see is known of a few names only, so where none of them is here nobody is turned away.
    let seeing: Vec<&Candidate> = fitting.iter().copied().filter(|candidate| candidate.sees).collect();
    Ok(if query.pictures && !seeing.is_empty() { seeing } else { fitting })
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
