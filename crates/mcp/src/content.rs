//! Converts the result of a tool to text for a model.

use hob_core::ToolError;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

/// Joins texts, and mentions other content.
pub fn as_text(result: CallToolResult) -> Result<String, ToolError> {
    let mut parts: Vec<String> = result.content.into_iter().map(describe).collect();
    if let Some(structured) = result.structured_content
        && !parts.iter().any(|part| is_rendering(part, &structured))
    {
        parts.push(structured.to_string());
    }
    let text = parts.join("\n");
    let is_empty = text.trim().is_empty();
    match (result.is_error.unwrap_or(false), is_empty) {
        (true, true) => Err(ToolError::new("the tool failed without a reason")),
        (true, false) => Err(ToolError::new(text)),
        (false, true) => Ok("(no output)".to_owned()),
        (false, false) => Ok(text),
    }
}

/// Servers repeat structured content as text for older clients.
fn is_rendering(text: &str, structured: &Value) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|parsed| parsed == *structured)
}

fn describe(block: ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => format!("[an image ({}), not shown]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[audio ({}), not played]", audio.mime_type),
        ContentBlock::ResourceLink(link) => format!("[the resource '{}' at {}]", link.name, link.uri),
        ContentBlock::Resource(resource) => match resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                format!("[the resource at {uri}]\n{text}")
            }
            ResourceContents::BlobResourceContents { uri, mime_type, .. } => {
                format!("[the resource at {uri} ({}), not text]", mime_type.as_deref().unwrap_or("unknown"))
            }
            _ => "[a resource of an unknown kind]".to_owned(),
        },
        _ => "[content of an unknown kind]".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text_of(result: Value) -> Result<String, String> {
        as_text(serde_json::from_value(result).unwrap()).map_err(|error| error.0)
    }

    #[test]
    fn texts_are_joined_and_the_rest_is_mentioned() {
        let result = json!({"content": [
            {"type": "text", "text": "one"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "resource_link", "name": "notes", "uri": "file:///notes"},
            {"type": "resource", "resource": {"uri": "demo://1", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "demo://2", "blob": "AAAA", "mimeType": "application/zip"}},
            {"type": "text", "text": "two"},
        ]});
        let expected = "one\n\
            [an image (image/png), not shown]\n\
            [audio (audio/wav), not played]\n\
            [the resource 'notes' at file:///notes]\n\
            [the resource at demo://1]\ninside\n\
            [the resource at demo://2 (application/zip), not text]\n\
            two";
        assert_eq!(text_of(result), Ok(expected.to_owned()));
    }

    #[test]
    fn structured_content_is_given_once() {
        let structured = json!({"celsius": 21});
        let alone = json!({"content": [], "structuredContent": structured});
        assert_eq!(text_of(alone), Ok(r#"{"celsius":21}"#.to_owned()));
        let repeated = json!({"content": [{"type": "text", "text": "{ \"celsius\": 21 }"}], "structuredContent": structured});
        assert_eq!(text_of(repeated), Ok("{ \"celsius\": 21 }".to_owned()));
        let summed_up =
            json!({"content": [{"type": "text", "text": "warm"}], "structuredContent": structured});
        assert_eq!(text_of(summed_up), Ok("warm\n{\"celsius\":21}".to_owned()));
    }

    #[test]
    fn a_failure_without_a_text_is_an_error() {
        let spoken = json!({"content": [{"type": "text", "text": "no such city"}], "isError": true});
        assert_eq!(text_of(spoken), Err("no such city".to_owned()));
        assert_eq!(
            text_of(json!({"content": [], "isError": true})),
            Err("the tool failed without a reason".to_owned())
        );
        assert_eq!(text_of(json!({"content": []})), Ok("(no output)".to_owned()));
    }
}
