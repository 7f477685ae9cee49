//! Which model guesses for another one. Pure.

use std::sync::Arc;

use hob_models::{StoredModel, find_by_name};

use super::warn_once;
use crate::options::DraftOptions;

/// A model with its draft model, if the settings name one that it can have. `models` are all that are stored.
pub(crate) fn with_draft(
    target: StoredModel,
    models: Vec<StoredModel>,
    wanted: Option<&DraftOptions>,
) -> StoredModel {
    let Some(wanted) = wanted else { return target };
    let draft = choose(&target, models, &wanted.model).unwrap_or_else(|reason| {
        warn_once(&target.id, &reason);
        None
    });
    StoredModel { draft: draft.map(Arc::new), ..target }
}

/// The draft model; `None` if this model needs none, and an error if it should have one.
fn choose(
    target: &StoredModel,
    models: Vec<StoredModel>,
    wanted: &str,
) -> Result<Option<StoredModel>, String> {
    let embeds = |model: &StoredModel| model.header.as_ref().is_some_and(|header| header.is_embedding);
    if target.problem.is_some() || embeds(target) {
        return Ok(None);
    }
    let draft = find_by_name(models, wanted).ok_or_else(|| {
        format!("[engine.embedded] draft_model '{wanted}' is not downloaded; run 'hob model pull {wanted}'")
    })?;
    // The small models are used on their own, too.
    if draft.id == target.id || draft.size > target.size {
        return Ok(None);
    }
    if let Some(problem) = &draft.problem {
        return Err(format!("[engine.embedded] draft_model '{wanted}' cannot be used: {problem}"));
    }
    if embeds(&draft) {
        return Err(format!(
            "[engine.embedded] draft_model '{wanted}' is an embedding model; choose one that writes"
        ));
    }
    Ok(Some(draft))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(id: &str, size: u64) -> StoredModel {
        StoredModel {
            id: id.to_owned(),
            path: format!("{id}.gguf").into(),
            files: Vec::new(),
            projector: None,
            draft: None,
            size,
            parameters: 0,
            header: None,
            problem: None,
        }
    }

    fn chosen(target: &StoredModel, wanted: &str) -> Result<Option<String>, String> {
        let broken = StoredModel { problem: Some("it is cut off".to_owned()), ..stored("broken", 1) };
        let models = vec![stored("small", 10), stored("large", 100), broken];
        choose(target, models, wanted).map(|draft| draft.map(|draft| draft.id))
    }

    #[test]
    fn a_smaller_model_guesses_for_a_larger_one() {
        assert_eq!(chosen(&stored("large", 100), "small"), Ok(Some("small".to_owned())));
        assert_eq!(chosen(&stored("large", 100), "small.gguf"), Ok(Some("small".to_owned())));
        assert_eq!(chosen(&stored("small", 10), "small"), Ok(None));
        assert_eq!(chosen(&stored("small", 10), "large"), Ok(None));
    }

    #[test]
    fn a_draft_model_that_is_missing_or_broken_is_named_with_what_to_do() {
        assert_eq!(
            chosen(&stored("large", 100), "tiny"),
            Err("[engine.embedded] draft_model 'tiny' is not downloaded; run 'hob model pull tiny'"
                .to_owned())
        );
        assert_eq!(
            chosen(&stored("large", 100), "broken"),
            Err("[engine.embedded] draft_model 'broken' cannot be used: it is cut off".to_owned())
        );
    }

    #[test]
    fn a_model_that_cannot_answer_needs_no_draft() {
        let broken = StoredModel { problem: Some("it is cut off".to_owned()), ..stored("other", 100) };
        assert_eq!(chosen(&broken, "tiny"), Ok(None));
        let alone = with_draft(stored("large", 100), vec![stored("small", 10)], None);
        assert_eq!(alone.draft, None);
    }
}
