//! The body of `POST /api/chat`: as typed → as resolved.

use hob_core::request_budget::MESSAGES;
use hob_core::{GenerateRequest, OverBudget};

use super::message::OpenCalls;
use super::settings::{OllamaRequest, WireBody};
use crate::error::ApiResult;
use crate::json::{over_budget, read};
use crate::openai::ignored_fields::IgnoredFields;

/// Parses a body. The error names the field.
pub(super) fn parse(body: &[u8]) -> ApiResult<OllamaRequest> {
    let mut body: WireBody = read(body)?;
    let wire_messages = body.messages.take().unwrap_or_default();
    if wire_messages.len() > MESSAGES {
        return Err(over_budget(OverBudget::too_many("messages", wire_messages.len(), "messages", MESSAGES)));
    }
    let mut ignored = IgnoredFields::default();
    let mut request = GenerateRequest::default();
    request.messages.reserve_exact(wire_messages.len());
    let mut open = OpenCalls::default();
    for (index, message) in wire_messages.into_iter().enumerate() {
        request.messages.push(message.resolve(index, &mut open, &mut ignored)?);
    }
    for (index, tool) in body.tools.take().into_iter().flatten().enumerate() {
        request.tools.push(tool.resolve(index, &mut ignored)?);
    }
    let of_generate = [
        ("prompt", body.prompt.is_some()),
        ("suffix", body.suffix.is_some()),
        ("system", body.system.is_some()),
        ("template", body.template.is_some()),
        ("raw", body.raw == Some(true)),
        ("images", body.images.is_some()),
        ("context", body.context.is_some()),
    ];
    for (field, _) in of_generate.into_iter().filter(|(_, is_given)| *is_given) {
        ignored.note(field);
    }
    request.continue_last_message();
    let is_question = !request.messages.is_empty();
    body.resolve(request, ignored, is_question)
}
