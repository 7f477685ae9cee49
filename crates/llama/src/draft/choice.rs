//! Which model guesses for another one. Pure.

use std::sync::Arc;

use hob_models::{StoredModel, find_by_name};

use super::vocabulary::MOST_MORE;
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
    check_headers(target, &draft)?;
    Ok(Some(draft))
}

/// Refuses what the headers already show, before memory is planned for the draft model: tokens that cannot be taken back, and another
/// number of tokens. The tokens themselves are compared when both models are loaded.
fn check_headers(target: &StoredModel, draft: &StoredModel) -> Result<(), String> {
    let (Some(ours), Some(theirs)) = (&target.header, &draft.header) else { return Ok(()) };
    if ours.recurrence.is_some() {
        return Err("it cannot take tokens back".to_owned());
    }
    if theirs.recurrence.is_some() {
        return Err(format!("'{}' cannot take tokens back", draft.id));
    }
    match (ours.vocabulary, theirs.vocabulary) {
        (Some(ours), Some(theirs)) if ours.abs_diff(theirs) > MOST_MORE as u64 => Err(format!(
            "'{}' has another vocabulary: they have {ours} and {theirs} tokens. Choose a draft model of the same family",
            draft.id
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use hob_models::GgufHeader;
    use hob_models::gguf::Recurrence;

    use super::*;
    use crate::fixtures::stored_model;

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
    fn a_header_that_shows_another_vocabulary_is_enough() {
        let model = stored_model();
        let header = model.header.as_deref().expect("a header").clone();
        let words = header.vocabulary.expect("a vocabulary");
        let with = |header| StoredModel { header: Some(Arc::new(header)), ..stored("other", 100) };
        let larger = GgufHeader { vocabulary: Some(words + 129), ..header.clone() };
        let refused = check_headers(&with(larger), &model).expect_err("another vocabulary");
        assert!(refused.contains(&format!("{} and {words} tokens", words + 129)), "{refused}");
        let little_larger = GgufHeader { vocabulary: Some(words + 128), ..header.clone() };
        assert_eq!(check_headers(&with(little_larger), &model), Ok(()));
        let recurrence = Some(Recurrence { numbers: 1, attention_interval: None });
        let recurrent = GgufHeader { recurrence, ..header };
        assert!(check_headers(&with(recurrent), &model).is_err());
    }

    #[test]
    fn a_model_that_cannot_answer_needs_no_draft() {
        let broken = StoredModel { problem: Some("it is cut off".to_owned()), ..stored("other", 100) };
        assert_eq!(chosen(&broken, "tiny"), Ok(None));
        let alone = with_draft(stored("large", 100), vec![stored("small", 10)], None);
        assert_eq!(alone.draft, None);
    }
}
