//! How long an answer may get. Anthropic requires a limit, and each model has a largest one, which is in the list of models.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use hob_core::{AnswerWarning, EngineError, GenerateRequest};

/// The limit where neither the caller nor the list of models has one: every current model can write this much.
pub(super) const SMALLEST_MAXIMUM: u32 = 8_192;

/// The largest limit of each model; `None` until the models were listed once.
#[derive(Debug, Default)]
pub(super) struct OutputLimits(RwLock<Option<HashMap<String, u32>>>);

/// The limit of one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutputLimit {
    pub(super) tokens: u32,
    /// Says that the answer can be shorter than the caller allows.
    pub(super) warning: Option<AnswerWarning>,
    /// Whether the caller left it open.
    is_ours: bool,
}

impl OutputLimits {
    pub(super) fn is_known(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(super) fn replace(&self, limits: HashMap<String, u32>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(limits);
    }

    /// Limits that cannot be listed now count as unknown, and are not requested again for every answer: the next list of the
    /// models has them.
    pub(super) fn give_up(&self) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
    }

    /// The largest limit of a model. Models are listed with the date of their release, and can be named without it.
    fn of(&self, model: &str) -> Option<u32> {
        let limits = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let limits = limits.as_ref()?;
        let is_dated = |id: &str| id.strip_prefix(model).is_some_and(|date| date.starts_with("-20"));
        limits
            .get(model)
            .or_else(|| limits.iter().find(|(id, _)| is_dated(id)).map(|(_, limit)| limit))
            .copied()
    }

    /// The limit of the answer to a request.
    pub(super) fn limit(&self, request: &GenerateRequest) -> OutputLimit {
        let given = |tokens| OutputLimit { tokens, warning: None, is_ours: false };
        match (request.max_tokens(), self.of(&request.model)) {
            (Some(tokens), Some(most)) if request.is_max_tokens_soft && tokens > most => {
                OutputLimit { warning: Some(AnswerWarning::LengthLimited(most)), ..given(most) }
            }
            (Some(tokens), _) => given(tokens),
            (None, Some(most)) => OutputLimit { is_ours: true, ..given(most) },
            (None, None) => OutputLimit::smallest(),
        }
    }
}

impl OutputLimit {
    /// What every model can write.
    fn smallest() -> Self {
        let warning = Some(AnswerWarning::LengthLimited(SMALLEST_MAXIMUM));
        OutputLimit { tokens: SMALLEST_MAXIMUM, warning, is_ours: true }
    }

    /// A smaller limit, if this one is ours and is why Anthropic refused: older models refuse a limit that does not fit into their
    /// context after the prompt.
    pub(super) fn after(&self, error: &EngineError) -> Option<Self> {
        let EngineError::Refused { status: 400, message, .. } = error else { return None };
        let is_reason = self.is_ours && self.tokens > SMALLEST_MAXIMUM && message.contains("max_tokens");
        is_reason.then(Self::smallest)
    }
}

#[cfg(test)]
mod tests {
    use hob_core::{AnswerDefaults, MaxTokens};

    use super::*;

    fn asking(model: &str, max_tokens: Option<i64>) -> GenerateRequest {
        GenerateRequest {
            model: model.into(),
            max_tokens: max_tokens.and_then(|tokens| MaxTokens::new(tokens).ok()),
            defaults: AnswerDefaults { max_tokens: None, ..AnswerDefaults::default() },
            ..GenerateRequest::default()
        }
    }

    fn known() -> OutputLimits {
        let limits = OutputLimits::default();
        limits.replace(HashMap::from([
            ("claude-opus-4-5-20251101".to_owned(), 64_000),
            ("claude-opus-4-20250514".to_owned(), 32_000),
        ]));
        limits
    }

    #[test]
    fn an_answer_without_a_limit_gets_the_models_own() {
        let limit = |model| known().limit(&asking(model, None));
        for (model, tokens) in [
            ("claude-opus-4-5-20251101", 64_000),
            ("claude-opus-4-5", 64_000),
            ("claude-opus-4", 32_000),
            ("claude-opus-4-20250514", 32_000),
        ] {
            assert_eq!(limit(model), OutputLimit { tokens, warning: None, is_ours: true }, "{model}");
        }
        assert_eq!(limit("claude-x"), OutputLimit::smallest());
        assert_eq!(OutputLimits::default().limit(&asking("claude-opus-4-5", None)), OutputLimit::smallest());
    }

    #[test]
    fn a_limit_of_the_caller_is_lowered_only_if_the_caller_allows_it() {
        let strict = asking("claude-opus-4-5", Some(128_000));
        let given = OutputLimit { tokens: 128_000, warning: None, is_ours: false };
        assert_eq!(known().limit(&strict), given);
        let soft = GenerateRequest { is_max_tokens_soft: true, ..strict };
        let warning = Some(AnswerWarning::LengthLimited(64_000));
        assert_eq!(known().limit(&soft), OutputLimit { tokens: 64_000, warning, is_ours: false });
        assert_eq!(OutputLimits::default().limit(&soft), given);
    }

    #[test]
    fn a_limit_of_hob_that_the_context_cannot_hold_is_lowered() {
        let refused = |status, message: &str| EngineError::Refused {
            engine: "cloud (Anthropic)".into(),
            status,
            message: message.into(),
            code: None,
            param: None,
            retry_after: None,
        };
        let no_room =
            refused(400, "input length and `max_tokens` exceed context limit: 190000 + 64000 > 200000");
        let of_hob = known().limit(&asking("claude-opus-4-5", None));
        assert_eq!(of_hob.after(&no_room), Some(OutputLimit::smallest()));
        assert_eq!(of_hob.after(&refused(400, "prompt is too long: 210012 tokens > 200000 maximum")), None);
        assert_eq!(of_hob.after(&refused(529, "max_tokens")), None);
        assert_eq!(OutputLimit::smallest().after(&no_room), None);
        assert_eq!(known().limit(&asking("claude-opus-4-5", Some(64_000))).after(&no_room), None);
    }
}
