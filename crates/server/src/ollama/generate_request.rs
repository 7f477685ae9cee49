//! The body of `POST /api/generate`: as typed → as resolved.

use hob_core::{GenerateRequest, Message, Role};
use serde_json::Value;

use super::images::with_images;
use super::settings::{OllamaRequest, WireBody};
use crate::error::ApiError;
use crate::json::read;
use crate::openai::ignored_fields::IgnoredFields;

/// Parses a body. The error names the field.
pub(super) fn parse(body: &[u8]) -> Result<OllamaRequest, ApiError> {
    let mut body: WireBody = read(body)?;
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let (prompt, suffix) = (given(body.prompt.take()), given(body.suffix.take()));
    let (system, template) = (given(body.system.take()), given(body.template.take()));
    let images = body.images.take().unwrap_or_default();
    let mut ignored = IgnoredFields::default();
    let has_context = |context: Value| context.as_array().is_none_or(|tokens| !tokens.is_empty());
    let of_chat = [
        ("context", body.context.take().is_some_and(has_context)),
        ("messages", body.messages.take().is_some_and(|messages| !messages.is_empty())),
        ("tools", body.tools.take().is_some_and(|tools| !tools.is_empty())),
    ];
    for (field, _) in of_chat.into_iter().filter(|(_, is_given)| *is_given) {
        ignored.note(field);
    }
    let refused =
        [("raw", body.raw == Some(true)), ("suffix", suffix.is_some()), ("template", template.is_some())];
    if let Some((field, _)) = refused.into_iter().find(|(_, is_given)| *is_given) {
        return Err(ApiError::invalid(field, format!("'{field}' is not supported")));
    }
    let mut request = GenerateRequest::default();
    let is_question = prompt.is_some() || !images.is_empty();
    if is_question {
        let system = system.map(|system| Message::new(Role::System, system));
        let content = with_images(prompt.unwrap_or_default(), images, "")?;
        request.messages = system.into_iter().chain([Message::new(Role::User, content)]).collect();
    }
    body.resolve(request, ignored, is_question)
}
