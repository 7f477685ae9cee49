//! The body of `POST /api/generate`: as typed → as resolved.

use hob_core::request_budget::thousands;
use hob_core::{CompletionRequest, GenerateRequest, Message, Prompt, Role};
use serde_json::Value;

use super::images::with_images;
use super::settings::{OllamaRequest, WireBody};
use super::template::{self, TemplateError, TemplateValues};
use crate::error::{ApiError, ApiResult};
use crate::json::read;
use crate::openai::ignored_fields::IgnoredFields;

/// How many bytes longer than its request a prompt may be.
const TEMPLATE_MARGIN: usize = 64 << 10;

/// A valid request.
#[derive(Debug, PartialEq)]
pub(super) struct OllamaPrompt {
    pub(super) parsed: OllamaRequest,
    /// The text to complete, and what follows the gap; `None` if the prompt is a question.
    pub(super) text: Option<(String, Option<String>)>,
}

/// Parses a body. The error names the field.
pub(super) fn parse(body: &[u8]) -> ApiResult<OllamaPrompt> {
    let longest = body.len() + TEMPLATE_MARGIN;
    let mut body: WireBody = read(body)?;
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let (prompt, suffix) = (given(body.prompt.take()), given(body.suffix.take()));
    let (system, template) = (given(body.system.take()), given(body.template.take()));
    let images = body.images.take().unwrap_or_default();
    let is_raw = body.raw == Some(true);
    let mut ignored = IgnoredFields::default();
    let has_tokens = |context: Value| context.as_array().is_none_or(|tokens| !tokens.is_empty());
    let of_chat = [
        ("context", body.context.take().is_some_and(has_tokens)),
        ("messages", body.messages.take().is_some_and(|messages| !messages.is_empty())),
        ("tools", body.tools.take().is_some_and(|tools| !tools.is_empty())),
    ];
    for (field, _) in of_chat.into_iter().filter(|(_, is_given)| *is_given) {
        ignored.note(field);
    }
    let is_question = prompt.is_some() || suffix.is_some() || !images.is_empty();
    let prompt = prompt.unwrap_or_default();
    let text = match (is_raw, template, suffix) {
        _ if !is_question => None,
        (false, None, None) => None,
        (true, template, suffix) => {
            if let Some(field) = [("template", template.is_some()), ("system", system.is_some())]
                .into_iter()
                .find_map(|(field, is_given)| is_given.then_some(field))
            {
                let message = format!("'{field}' has no place in a raw prompt: write it into 'prompt'");
                return Err(ApiError::invalid(field, message));
            }
            if suffix.is_some() {
                ignored.note("suffix");
            }
            Some((prompt.clone(), None))
        }
        (false, Some(template), suffix) => {
            let values = TemplateValues {
                system: system.as_deref().unwrap_or_default(),
                prompt: &prompt,
                suffix: suffix.as_deref().unwrap_or_default(),
            };
            let text = template::render(&template, values, longest).map_err(|error| {
                let message = match error {
                    TemplateError::Unread(unread) => format!(
                        "template: Hob reads the variables .System, .Prompt, .Suffix and .Response, and conditions on them, but not {unread}"
                    ),
                    TemplateError::TooLong => format!(
                        "template: it makes a prompt of more than {} bytes. Repeat its variables less often",
                        thousands(longest)
                    ),
                };
                ApiError::invalid("template", message)
            })?;
            Some((text, None))
        }
        (false, None, Some(suffix)) => {
            if system.is_some() {
                ignored.note("system");
            }
            Some((prompt.clone(), Some(suffix)))
        }
    };
    let mut request = GenerateRequest::default();
    if text.is_some() {
        if !images.is_empty() {
            let message = "'images' can be sent with a question only, not with raw, template or suffix";
            return Err(ApiError::invalid("images", message));
        }
        // A text has no template that could turn thinking on, and no agent continues it.
        let is_agent = body.agent.take().is_some_and(|agent| !matches!(agent.as_str(), "" | "none"));
        for (field, is_given) in [("think", body.think.take().is_some()), ("agent", is_agent)] {
            if is_given {
                ignored.note(field);
            }
        }
    } else if is_question {
        let system = system.map(|system| Message::new(Role::System, system));
        let content = with_images(prompt, images, "")?;
        request.messages = system.into_iter().chain([Message::new(Role::User, content)]).collect();
    }
    Ok(OllamaPrompt { parsed: body.resolve(request, ignored, is_question)?, text })
}

/// The request to continue a text, with the settings of `request`.
pub(super) fn continuing(
    request: GenerateRequest,
    (text, suffix): (String, Option<String>),
) -> CompletionRequest {
    CompletionRequest {
        model: request.model,
        prompt: Prompt::Text(text),
        suffix,
        echo: false,
        prompt_only: false,
        temperature: request.temperature,
        max_tokens: request.max_tokens,
        defaults: request.defaults,
        sampling: request.sampling,
        response_format: request.response_format,
        extra: request.extra,
        hints: request.hints,
    }
}
