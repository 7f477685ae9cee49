//! The body of `POST /v1/completions`: as typed → as resolved.

use std::num::NonZeroU32;

use hob_core::request_budget::{self, ANSWERS, PROMPTS, TEXT_ANSWERS, TOP_LOGPROBS, thousands};
use hob_core::{
    AnswerWarning, CompletionRequest, MaxTokens, OverBudget, Prompt, ResponseFormat, Sampling, Temperature,
};
use hob_engines::text_completion::TextRequest;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::chat_request::{ResponseMode, Stop, StreamOptions, means_nothing, whole_within, within};
use super::ignored_fields::IgnoredFields;
use super::required_model;
use super::tools::WireFormat;
use crate::error::{ApiError, ApiResult};
use crate::json::{over_budget, read};
use crate::whole_number::{TokenId, WholeNumber};

/// A valid request.
#[derive(Debug, PartialEq)]
pub(crate) struct TextCompletionRequest {
    pub(crate) request: TextRequest,
    pub(crate) mode: ResponseMode,
    /// Fields of the request that have no effect.
    pub(crate) warnings: Vec<AnswerWarning>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireRequest {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    prompt: Option<Prompts>,
    #[serde(default)]
    suffix: Option<String>,
    #[serde(default)]
    echo: Option<bool>,
    #[serde(default)]
    best_of: Option<WholeNumber>,
    #[serde(default)]
    n: Option<WholeNumber>,
    /// How many alternatives to report with each token.
    #[serde(default)]
    logprobs: Option<WholeNumber>,
    #[serde(default)]
    max_tokens: Option<WholeNumber>,
    #[serde(default)]
    temperature: Option<f64>,
    #[serde(default)]
    top_p: Option<f64>,
    #[serde(default)]
    stop: Option<Stop>,
    #[serde(default)]
    seed: Option<WholeNumber>,
    #[serde(default)]
    presence_penalty: Option<f64>,
    #[serde(default)]
    frequency_penalty: Option<f64>,
    #[serde(default)]
    response_format: Option<WireFormat>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string, an array of strings, or an array (of arrays) of tokens")]
enum Prompts {
    Text(String),
    Tokens(Vec<TokenId>),
    Texts(Vec<String>),
    TokenLists(Vec<Vec<TokenId>>),
}

impl Prompts {
    fn resolve(self) -> ApiResult<Vec<Prompt>> {
        let prompts: Vec<Prompt> = match self {
            Prompts::Text(text) => vec![Prompt::Text(text)],
            Prompts::Tokens(ids) if ids.is_empty() => Vec::new(),
            Prompts::Tokens(ids) => vec![tokens(ids)],
            Prompts::Texts(texts) => texts.into_iter().map(Prompt::Text).collect(),
            Prompts::TokenLists(lists) => lists.into_iter().map(tokens).collect(),
        };
        if prompts.is_empty() {
            return Err(ApiError::invalid("prompt", "'prompt' must not be empty"));
        }
        if prompts.len() > PROMPTS {
            let over = OverBudget::too_many("prompt", prompts.len(), "prompts", PROMPTS);
            return Err(over_budget(over));
        }
        match prompts.iter().position(|prompt| *prompt == Prompt::Tokens(Vec::new())) {
            Some(index) => Err(ApiError::invalid(format!("prompt[{index}]"), "a prompt must not be empty")),
            None => Ok(prompts),
        }
    }
}

impl TextCompletionRequest {
    /// Parses a body. The error names the field.
    pub(crate) fn parse(body: &[u8]) -> ApiResult<Self> {
        let completion = read::<WireRequest>(body)?.resolve()?;
        request_budget::check_request(&completion.request.request.settings()).map_err(over_budget)?;
        Ok(completion)
    }
}

impl WireRequest {
    fn resolve(self) -> ApiResult<TextCompletionRequest> {
        let mut ignored = IgnoredFields::default();
        let model = required_model(self.model)?;
        let prompt = self.prompt.ok_or_else(|| ApiError::invalid("prompt", "'prompt' is required"))?;
        let prompts = prompt.resolve()?;
        let temperature = self.temperature.map(Temperature::new).transpose();
        let temperature = temperature.map_err(|error| ApiError::invalid("temperature", error.to_string()))?;
        let length = whole_within("max_tokens", self.max_tokens, 0..=i64::from(u32::MAX))?;
        let prompt_only = length == Some(0);
        if prompt_only && !(self.echo == Some(true) && self.logprobs.is_some()) {
            let message =
                "max_tokens can be 0 only with 'echo' and 'logprobs', for the probabilities of the prompt";
            return Err(ApiError::invalid("max_tokens", message));
        }
        let max_tokens = length.filter(|_| !prompt_only).map(MaxTokens::new).transpose();
        let max_tokens = max_tokens.map_err(|error| ApiError::invalid("max_tokens", error.to_string()))?;
        let n = whole_within("n", self.n, 1..=ANSWERS as i64)?;
        let best_of = whole_within("best_of", self.best_of, 1..=ANSWERS as i64)?;
        let logprobs = whole_within("logprobs", self.logprobs, 0..=TOP_LOGPROBS as i64)?;
        let streamed = self.stream.unwrap_or(false);
        check_answers(prompts.len(), n.unwrap_or(1), best_of, streamed)?;
        let sampling = Sampling {
            top_p: within("top_p", self.top_p, 0.0..=1.0)?,
            stop: self.stop.map(Stop::into_list).unwrap_or_default(),
            seed: self.seed.map(|seed| seed.0),
            presence_penalty: within("presence_penalty", self.presence_penalty, -2.0..=2.0)?,
            frequency_penalty: within("frequency_penalty", self.frequency_penalty, -2.0..=2.0)?,
            n: n.and_then(positive),
            logprobs: logprobs.is_some(),
            top_logprobs: logprobs.and_then(|count| u32::try_from(count).ok()),
        };
        let response_format = match self.response_format {
            None => ResponseFormat::Text,
            Some(format) => format.resolve(&mut ignored)?,
        };
        let mut include_usage = false;
        if let Some(options) = &self.stream_options {
            include_usage = options.include_usage.unwrap_or(false);
            ignored.note_all("stream_options", &options.rest);
        }
        let mut extra = self.extra;
        extra.retain(|field, value| !means_nothing(field, value));
        let request = CompletionRequest {
            model,
            // Editors send an empty suffix at the end of a file.
            suffix: self.suffix.filter(|suffix| !suffix.is_empty()),
            echo: self.echo.unwrap_or(false),
            prompt_only,
            temperature,
            max_tokens,
            sampling,
            response_format,
            extra,
            ..CompletionRequest::default()
        };
        Ok(TextCompletionRequest {
            request: TextRequest { prompts, request, best_of: best_of.and_then(positive) },
            mode: match streamed {
                true => ResponseMode::Streamed { include_usage },
                false => ResponseMode::Whole,
            },
            warnings: ignored.into_warnings(),
        })
    }
}

fn tokens(ids: Vec<TokenId>) -> Prompt {
    Prompt::Tokens(ids.into_iter().map(|TokenId(id)| id).collect())
}

fn positive(number: i64) -> Option<NonZeroU32> {
    NonZeroU32::new(u32::try_from(number).ok()?)
}

/// How many answers all prompts may have together, and whether the best can be chosen.
fn check_answers(prompts: usize, n: i64, best_of: Option<i64>, streamed: bool) -> ApiResult<()> {
    if let Some(best_of) = best_of {
        if best_of < n {
            let message = format!("best_of must be at least n, got {best_of} and {n}");
            return Err(ApiError::invalid("best_of", message));
        }
        if best_of > n && streamed {
            let message = "best_of cannot be greater than n in a stream: the best answer is known at the end";
            return Err(ApiError::invalid("best_of", message));
        }
    }
    let each = usize::try_from(best_of.unwrap_or(n)).unwrap_or(usize::MAX);
    let all = prompts.saturating_mul(each);
    match all > TEXT_ANSWERS {
        true => Err(over_budget(OverBudget {
            field: if best_of.is_some() { "best_of" } else { "n" }.to_owned(),
            what: format!("asks for {} answers to all prompts", thousands(all)),
            limit: Some(TEXT_ANSWERS),
        })),
        false => Ok(()),
    }
}

#[cfg(test)]
#[path = "completions_request_tests.rs"]
mod tests;
