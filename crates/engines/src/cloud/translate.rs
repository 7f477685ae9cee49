//! Shared steps of translating a chat-completions request into another format: a field without a counterpart is an
//! error that names it, arguments become objects, and consecutive messages of one role become one turn.

use std::borrow::Cow;

use hob_core::{
    AnswerWarning, Content, ContentPart, GenerateRequest, Image, JsonSchema, Message, Role, ToolCall,
    ignored_fields,
};
use serde_json::{Map, Value};

use crate::wire::unsupported_field::UnsupportedField;

/// Fails with the first of `fields` that the caller used.
pub(super) fn refuse<const N: usize>(fields: [(&str, bool); N]) -> Result<(), UnsupportedField> {
    match fields.into_iter().find(|(_, used)| *used) {
        Some((field, _)) => Err(UnsupportedField::new(field)),
        None => Ok(()),
    }
}

/// Zero is the default in every format.
pub(super) fn is_set(penalty: Option<f64>) -> bool {
    penalty.is_some_and(|penalty| penalty != 0.0)
}

/// The fields that have no effect on the answer of a provider whose format has the fields `own`. Fails for a field
/// that the provider would have to honour.
pub(super) fn ignored(
    request: &GenerateRequest,
    own: &[&str],
) -> Result<Vec<AnswerWarning>, UnsupportedField> {
    ignored_fields(request, own).map_err(UnsupportedField::new)
}

/// The caller's additional fields that belong to the provider's `own` format. Clients send null for an unset field.
pub(super) fn own_fields(extra: &Map<String, Value>, own: &[&str]) -> Map<String, Value> {
    let is_own = |name: &str, value: &Value| own.contains(&name) && !value.is_null();
    extra
        .iter()
        .filter(|(name, value)| is_own(name, value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Fails for an author's name, which these formats cannot express. A tool's name is known from its call.
pub(super) fn no_author(message: &Message, index: usize) -> Result<(), UnsupportedField> {
    if message.name.is_some() && message.role != Role::Tool {
        return Err(UnsupportedField::because(
            format!("messages[{index}].name"),
            "put the author's name into the text",
        ));
    }
    Ok(())
}

/// The texts of a message that may contain only text.
pub(super) fn texts(message: &Message, index: usize) -> Result<Vec<&str>, UnsupportedField> {
    match &message.content {
        Content::Empty => Ok(Vec::new()),
        Content::Text(text) => Ok(vec![text]),
        Content::Parts(parts) => parts
            .iter()
            .enumerate()
            .map(|(part, content)| match content {
                ContentPart::Text(text) => Ok(text.as_str()),
                ContentPart::Image(_) => Err(UnsupportedField::because(
                    image_field(index, part),
                    "images are allowed only in user messages",
                )),
                ContentPart::Other(other) => Err(unknown_part(other, index, part)),
            })
            .collect(),
    }
}

/// The text, images and documents of a message in a format's own pieces. `text` may drop an empty text.
pub(super) fn content_pieces<'a, P>(
    message: &'a Message,
    index: usize,
    text: impl Fn(&'a str) -> Option<P>,
    picture: impl Fn(&'a Image, usize, usize) -> Result<P, UnsupportedField>,
    document: impl Fn(&'a Value) -> Option<P>,
) -> Result<Vec<P>, UnsupportedField> {
    match &message.content {
        Content::Empty => Ok(Vec::new()),
        Content::Text(words) => Ok(text(words).into_iter().collect()),
        Content::Parts(parts) => parts
            .iter()
            .enumerate()
            .filter_map(|(part, content)| match content {
                ContentPart::Text(words) => text(words).map(Ok),
                ContentPart::Image(image) => Some(picture(image, index, part)),
                ContentPart::Other(other) => {
                    Some(document(other).ok_or_else(|| unknown_part(other, index, part)))
                }
            })
            .collect(),
    }
}

/// The error for a part of an unknown type.
fn unknown_part(part: &Value, message: usize, position: usize) -> UnsupportedField {
    let kind = part.get("type").and_then(Value::as_str).unwrap_or("type");
    UnsupportedField::because(
        format!("messages[{message}].content[{position}].{kind}"),
        "this provider accepts text and images",
    )
}

/// Media type and data of a part that is a PDF file inside the request.
pub(super) fn pdf(part: &Value) -> Option<(&str, &str)> {
    let data = part.get("file")?.get("file_data")?.as_str()?;
    let (media_type, data) = data.strip_prefix("data:")?.split_once(";base64,")?;
    (media_type == "application/pdf").then_some((media_type, data))
}

pub(super) fn image_field(message: usize, part: usize) -> String {
    format!("messages[{message}].content[{part}].image_url")
}

/// The arguments of `messages[message].tool_calls[call]` as an object, which both formats require.
pub(super) fn arguments(
    tool_call: &ToolCall,
    message: usize,
    call: usize,
) -> Result<Map<String, Value>, UnsupportedField> {
    // Many models write nothing for a tool without parameters.
    if tool_call.arguments.trim().is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(&tool_call.arguments).map_err(|_| {
        UnsupportedField::because(
            format!("messages[{message}].tool_calls[{call}].function.arguments"),
            "the arguments must be a JSON object",
        )
    })
}

/// The id of the call that a tool message answers.
pub(super) fn answered_call(message: &Message, index: usize) -> Result<&str, UnsupportedField> {
    message.tool_call_id.as_deref().ok_or_else(|| {
        UnsupportedField::because(
            format!("messages[{index}].tool_call_id"),
            "a tool message must name the call it answers",
        )
    })
}

/// The schema, with the caller's description if the schema has none.
pub(super) fn described(format: &JsonSchema) -> Cow<'_, Value> {
    match (&format.schema, &format.description) {
        (Value::Object(schema), Some(description)) if !schema.contains_key("description") => {
            let mut schema = schema.clone();
            schema.insert("description".to_owned(), Value::String(description.clone()));
            Cow::Owned(Value::Object(schema))
        }
        (schema, _) => Cow::Borrowed(schema),
    }
}

/// Consecutive messages of one role.
#[derive(Debug)]
pub(super) struct RoleTurn<P> {
    pub(super) role: &'static str,
    pub(super) pieces: Vec<P>,
}

/// Appends to the last turn if it has the same role, and starts a new turn otherwise: both formats require
/// alternating roles.
pub(super) fn say<P>(turns: &mut Vec<RoleTurn<P>>, role: &'static str, pieces: Vec<P>) {
    if pieces.is_empty() {
        return;
    }
    match turns.last_mut() {
        Some(last) if last.role == role => last.pieces.extend(pieces),
        _ => turns.push(RoleTurn { role, pieces }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(arguments: &str) -> ToolCall {
        ToolCall { id: "c".into(), name: "f".into(), arguments: arguments.into() }
    }

    #[test]
    fn arguments_that_are_not_an_object_are_refused_with_their_position() {
        assert_eq!(arguments(&call(" "), 0, 0), Ok(Map::new()));
        for bad in ["{", "[1]", "7", "null", "{} {}"] {
            let refused = arguments(&call(bad), 3, 1).unwrap_err();
            assert_eq!(refused.field, "messages[3].tool_calls[1].function.arguments", "{bad}");
        }
    }

    #[test]
    fn only_fields_of_the_format_pass() {
        let extra = |value: Value| value.as_object().cloned().unwrap_or_default();
        let fields = extra(json!({ "top_k": 3, "seed_k": null, "user": "ann", "future_field": 1 }));
        assert_eq!(own_fields(&fields, &["top_k", "seed_k"]), extra(json!({ "top_k": 3 })));
        let asking = |extra| GenerateRequest { extra, ..GenerateRequest::default() };
        assert_eq!(
            ignored(&asking(fields), &["top_k"]),
            Ok(vec![AnswerWarning::Ignored("future_field".to_owned())])
        );
        let refused = ignored(&asking(extra(json!({ "top_k": 3, "min_p": 0.1 }))), &["top_k"]);
        assert_eq!(refused, Err(UnsupportedField::new("min_p")));
    }

    #[test]
    fn a_schema_carries_the_description_it_was_sent_with() {
        let format = |schema: Value| JsonSchema {
            name: "city".into(),
            description: Some("a city".into()),
            schema,
            strict: None,
        };
        assert_eq!(
            *described(&format(json!({ "type": "object" }))),
            json!({ "type": "object", "description": "a city" })
        );
        assert_eq!(*described(&format(json!({ "description": "mine" }))), json!({ "description": "mine" }));
        assert_eq!(*described(&format(json!(true))), json!(true));
    }
}
