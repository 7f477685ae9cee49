//! What to do where a model does not read the pictures of a question.

use anyhow::Error as AnyError;
use hob_models::catalogue::{ModelAbility, smallest_with};

use super::events::AnswerFailure;

/// The error of a question with pictures. If the engine refused the pictures, it names a model that reads them.
pub fn explain_pictures(error: AnyError) -> AnyError {
    let is_about_pictures = |failure: &AnswerFailure| {
        let message = failure.message.to_lowercase();
        let words = ["image", "picture", "vision", "multimodal", "mmproj"];
        words.iter().any(|word| message.contains(word)) && !message.contains("hob model pull")
    };
    match (error.downcast::<AnswerFailure>(), smallest_with(ModelAbility::Vision)) {
        (Ok(mut failure), Some(entry)) if is_about_pictures(&failure) => {
            let message = failure.message.trim_end_matches('.');
            failure.message = format!(
                "{message}. If the model does not read pictures, 'hob model pull {0}' downloads one that does; then use '-m {0}'.",
                entry.short_name
            );
            failure.into()
        }
        (Ok(failure), _) => failure.into(),
        (Err(error), _) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_picture_names_a_model_that_reads_pictures() {
        let explained = |message: &str| explain_pictures(AnswerFailure::new(message).into()).to_string();
        assert_eq!(
            explained("ollama answered 500: this model is missing data required for image input."),
            "ollama answered 500: this model is missing data required for image input. If the model does not read pictures, \
             'hob model pull gemma3:4b' downloads one that does; then use '-m gemma3:4b'."
        );
        for other in ["ollama cannot be reached", "no pictures: 'hob model pull gemma3:4b' downloads a model"]
        {
            assert_eq!(explained(other), other);
        }
    }
}
