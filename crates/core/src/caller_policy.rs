//! What a request may do for its caller: which of its fields reach an engine, which URLs Hob downloads, and whether it may go to an
//! engine or a model. Every request passes here first, from HTTP, the terminal, a channel or the scheduler. Pure. `CallerRole` and
//! `CallerRights` define the rights.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::ask::AskError;
use crate::caller::CallerRole;
use crate::completion::CompletionRequest;
use crate::generate::{AnswerWarning, GenerateRequest, is_documented_field, is_documented_message_field};
use crate::key::CallerRights;
use crate::media::{MediaForm, MediaRequest};
use crate::message::{Content, ContentPart};
use crate::response_prefill::PREFILL;

/// The number of ignored fields that an answer names, and the length of each name. Limited, because callers choose the names.
const MAX_NAMED: usize = 16;
const MAX_NAME: usize = 64;

/// Applies the rights of the caller: refuses URLs that may not be downloaded, and drops fields that may not reach an engine. The
/// warnings name what was dropped.
pub fn admit_question(
    request: &mut GenerateRequest,
    role: CallerRole,
) -> Result<Vec<AnswerWarning>, AskError> {
    check_attachments(request, role)?;
    Ok(match role.may_send_any_field() {
        true => Vec::new(),
        false => drop_undocumented(request),
    })
}

/// The same for a text to continue, which names nothing that could be fetched.
pub fn admit_text(request: &mut CompletionRequest, role: CallerRole) -> Vec<AnswerWarning> {
    if role.may_send_any_field() {
        return Vec::new();
    }
    let mut fields = GenerateRequest {
        extra: std::mem::take(&mut request.extra),
        hints: std::mem::take(&mut request.hints),
        ..GenerateRequest::default()
    };
    let warnings = drop_undocumented(&mut fields);
    (request.extra, request.hints) = (fields.extra, fields.hints);
    warnings
}

/// The same for sound and pictures. A form is passed on whole, so a part that is not documented is refused.
pub fn admit_media(request: &mut MediaRequest, role: CallerRole) -> Result<Vec<AnswerWarning>, AskError> {
    if role.may_send_any_field() {
        return Ok(Vec::new());
    }
    let task = request.task;
    match &mut request.form {
        MediaForm::Json(fields) => {
            let mut dropped = Vec::new();
            fields.retain(|field, _| {
                let stays = task.is_documented_field(field);
                if !stays {
                    dropped.push(shown(field));
                }
                stays
            });
            dropped.truncate(MAX_NAMED);
            Ok(dropped.into_iter().map(AnswerWarning::Ignored).collect())
        }
        MediaForm::Multipart { parts, .. } => match parts.iter().find(|part| !task.is_documented_field(part))
        {
            None => Ok(Vec::new()),
            Some(part) => Err(AskError::Attachment {
                param: shown(part),
                reason: "only the owner of this server may send this field".to_owned(),
            }),
        },
    }
}

impl CallerRights {
    /// Refuses an engine or a model that this caller may not use.
    pub fn check(&self, engine: &str, model: &str) -> Result<(), AskError> {
        self.check_engine(engine, model)?;
        self.check_model(model)
    }

    /// Refuses an engine that this caller may not use, whatever the model.
    pub fn check_engine(&self, engine: &str, model: &str) -> Result<(), AskError> {
        match &self.key {
            _ if self.may_use_engine(engine) => Ok(()),
            Some(key) => Err(AskError::EngineNotAllowed {
                key: Arc::clone(&key.name),
                engine: engine.to_owned(),
                model: model.to_owned(),
            }),
            None => Err(AskError::CloudNotAllowed { model: model.to_owned() }),
        }
    }

    /// Refuses a model that the key of this caller does not name.
    pub fn check_model(&self, model: &str) -> Result<(), AskError> {
        match self.may_use_model(model) {
            true => Ok(()),
            false => Err(self.model_refused(model)),
        }
    }

    /// Refuses a model that Hob may not choose for this caller.
    pub fn check_given(&self, model: &str) -> Result<(), AskError> {
        match self.may_be_given(model) {
            true => Ok(()),
            false => Err(self.model_refused(model)),
        }
    }

    /// Only a key restricts models.
    fn model_refused(&self, model: &str) -> AskError {
        let key = self.key.as_ref().map(|key| Arc::clone(&key.name)).unwrap_or_default();
        AskError::ModelNotAllowed { key, model: model.to_owned() }
    }
}

/// Removes every field that the API does not document.
fn drop_undocumented(request: &mut GenerateRequest) -> Vec<AnswerWarning> {
    let mut dropped = Vec::new();
    retain(&mut request.extra, is_documented_field, |field| dropped.push(shown(field)));
    let is_harmless = |field: &str| field == PREFILL || is_documented_field(field);
    retain(&mut request.hints, is_harmless, |field| dropped.push(shown(field)));
    // A client sends the same field with every message; naming it once is enough.
    let mut named = HashSet::new();
    for (index, message) in request.messages.iter_mut().enumerate() {
        retain(&mut message.extra, is_documented_message_field, |field| {
            if named.insert(field.to_owned()) {
                dropped.push(format!("messages[{index}].{}", shown(field)));
            }
        });
    }
    let more = dropped.len().saturating_sub(MAX_NAMED);
    dropped.truncate(MAX_NAMED);
    if more > 0 {
        dropped.push(format!("{more} more"));
    }
    dropped.into_iter().map(AnswerWarning::Ignored).collect()
}

fn retain(fields: &mut Map<String, Value>, is_documented: fn(&str) -> bool, mut dropped: impl FnMut(&str)) {
    fields.retain(|field, _| {
        let stays = is_documented(field);
        if !stays {
            dropped(field);
        }
        stays
    });
}

/// The name of a field with only characters that a header allows.
fn shown(field: &str) -> String {
    let plain = |c: char| if c.is_ascii_graphic() { c } else { '?' };
    field.chars().take(MAX_NAME).map(plain).collect()
}

/// Refuses URLs that Hob never downloads, and those that this caller may not send. An engine that got such a URL would connect to it
/// from inside the owner's network, or read a file of its own machine.
fn check_attachments(request: &GenerateRequest, role: CallerRole) -> Result<(), AskError> {
    for (index, message) in request.messages.iter().enumerate() {
        let Content::Parts(parts) = &message.content else { continue };
        for (position, part) in parts.iter().enumerate() {
            let refused = match part {
                ContentPart::Text(_) => Ok(()),
                ContentPart::Image(image) => check_image(&image.url, role),
                ContentPart::Other(part) if role.may_name_image_addresses() => check_schemes(part),
                ContentPart::Other(part) => check_strangers_part(part),
            };
            refused.map_err(|Refused { field, reason }| AskError::Attachment {
                param: format!("messages[{index}].content[{position}].{field}"),
                reason,
            })?;
        }
    }
    Ok(())
}

/// A part of a message that is not passed on.
struct Refused {
    /// Within the part.
    field: String,
    reason: String,
}

impl Refused {
    fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Refused { field: field.into(), reason: reason.into() }
    }
}

fn check_image(url: &str, role: CallerRole) -> Result<(), Refused> {
    if is_inline(url) {
        return Ok(());
    }
    if !is_web_address(url) {
        return Err(Refused::new(
            "image_url",
            "send an image as a data: URL, or name its http or https address",
        ));
    }
    match role.may_name_image_addresses() {
        true => Ok(()),
        false => Err(Refused::new(
            "image_url",
            "only the owner of this server may name an image by its address; send the image itself, as a data: URL",
        )),
    }
}

/// A part that only some engines support, from a caller who may send URLs, but not URLs of the engine's own files.
fn check_schemes(part: &Value) -> Result<(), Refused> {
    // vLLM reads a URL without an object around it, and a part without a type.
    for (name, value) in part.as_object().into_iter().flatten() {
        let plain = value.as_str().filter(|_| name.ends_with("_url"));
        let mut addresses = [plain, value["url"].as_str(), value["file_url"].as_str()].into_iter().flatten();
        if addresses.any(|url| !is_inline(url) && !is_web_address(url)) {
            return Err(Refused::new(shown(name), "send a data: URL, or an http or https address"));
        }
    }
    Ok(())
}

/// A part that only some engines support, from a caller who may not send URLs: only known kinds, with their content
/// inline.
fn check_strangers_part(part: &Value) -> Result<(), Refused> {
    let kind = part["type"].as_str().unwrap_or_default();
    let fields: &[&str] = match kind {
        "input_audio" => &["data", "format"],
        "file" => &["file_data", "filename"],
        "video_url" | "audio_url" => &["url", "detail"],
        _ => {
            let reason =
                format!("only the owner of this server may send content of the type '{}'", shown(kind));
            return Err(Refused::new("type", reason));
        }
    };
    let is_known = |name: &str| name == "type" || name == kind;
    let unknown = part.as_object().into_iter().flatten().map(|(name, _)| name).find(|name| !is_known(name));
    if let Some(name) = unknown {
        return Err(Refused::new(shown(name), "this field is unknown"));
    }
    let content = part[kind].as_object();
    let content = content.ok_or_else(|| Refused::new(kind, format!("'{kind}' must be an object")))?;
    for (name, value) in content {
        let field = || format!("{kind}.{}", shown(name));
        if !fields.contains(&name.as_str()) {
            return Err(Refused::new(field(), "only the owner of this server may send this field"));
        }
        let is_inside = match (name.as_str(), value.as_str()) {
            (_, None) => false,
            ("url", Some(url)) => is_inline(url),
            // Base64 has no colon, but a URL has one.
            ("data" | "file_data", Some(data)) => is_inline(data) || !data.contains(':'),
            (_, Some(_)) => true,
        };
        if !is_inside {
            let reason = "only the owner of this server may name an address; send the content itself";
            return Err(Refused::new(field(), reason));
        }
    }
    Ok(())
}

/// Whether a URL is an address that Hob may download from, by its scheme.
pub fn is_web_address(url: &str) -> bool {
    let begins_with =
        |scheme: &str| url.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme));
    begins_with("http://") || begins_with("https://")
}

fn is_inline(url: &str) -> bool {
    url.starts_with("data:")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::{Message, Role};

    #[test]
    fn thousands_of_unknown_fields_are_not_all_named() {
        let mut request = GenerateRequest::default();
        for number in 0..5_000 {
            request.extra.insert(format!("{number}\r\nset-cookie: x{}", "y".repeat(200)), json!(1));
        }
        let warnings = admit_question(&mut request, CallerRole::Stranger).unwrap();
        assert!(request.extra.is_empty());
        assert_eq!(warnings.len(), MAX_NAMED + 1);
        assert_eq!(warnings[MAX_NAMED].text(), "ignored=4984 more");
        for warning in &warnings[..MAX_NAMED] {
            let text = warning.text();
            assert!(text.len() <= "ignored=".len() + MAX_NAME && !text.contains(['\r', '\n']), "{text}");
        }
    }

    #[test]
    fn a_text_of_a_stranger_keeps_only_documented_fields_and_hints() {
        let fields = |names: &[&str]| names.iter().map(|&name| (name.to_owned(), json!(1))).collect();
        let sent = || CompletionRequest {
            extra: fields(&["logit_bias", "guided_regex"]),
            hints: fields(&["verbosity", "rope_scale"]),
            ..CompletionRequest::default()
        };
        let (mut of_stranger, mut of_owner) = (sent(), sent());
        let warnings = admit_text(&mut of_stranger, CallerRole::Stranger);
        let warnings: Vec<String> = warnings.iter().map(|warning| warning.text().into_owned()).collect();
        assert_eq!(warnings, ["ignored=guided_regex", "ignored=rope_scale"]);
        let documented = CompletionRequest {
            extra: fields(&["logit_bias"]),
            hints: fields(&["verbosity"]),
            ..CompletionRequest::default()
        };
        assert_eq!(of_stranger, documented);
        assert!(admit_text(&mut of_owner, CallerRole::Owner).is_empty());
        assert_eq!(of_owner, sent());
    }

    /// The place of the part that is refused; `None` if none is.
    fn refused(part: Value, role: CallerRole) -> Option<String> {
        let parts = vec![ContentPart::Text("look".into()), ContentPart::Other(part)];
        let mut request = GenerateRequest {
            messages: vec![Message::new(Role::User, Content::Parts(parts))],
            ..GenerateRequest::default()
        };
        match admit_question(&mut request, role) {
            Ok(_) => None,
            Err(AskError::Attachment { param, .. }) => Some(param),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_stranger_may_send_content_but_no_urls() {
        for (part, field) in [
            (
                json!({ "type": "video_url", "video_url": { "url": "http://10.0.0.1/x.mp4" } }),
                "video_url.url",
            ),
            (json!({ "type": "video_url", "video_url": { "url": "file:///x" } }), "video_url.url"),
            (json!({ "type": "video_url", "video_url": "http://10.0.0.1/x.mp4" }), "video_url"),
            (json!({ "type": "file", "file": { "file_id": "file-1" } }), "file.file_id"),
            (json!({ "type": "file", "file": { "file_data": "https://example.org" } }), "file.file_data"),
            (
                json!({ "type": "input_audio", "input_audio": { "data": "http://10.0.0.1" } }),
                "input_audio.data",
            ),
            (
                json!({ "type": "input_audio", "input_audio": { "data": "AAAA" }, "url": "http://10.0.0.1" }),
                "url",
            ),
            (json!({ "type": "image_embeds", "image_embeds": "AAAA" }), "type"),
            (json!({}), "type"),
        ] {
            let place = format!("messages[0].content[1].{field}");
            assert_eq!(refused(part.clone(), CallerRole::Stranger), Some(place), "{part}");
        }
        for part in [
            json!({ "type": "video_url", "video_url": { "url": "data:video/mp4;base64,AAAA" } }),
            json!({ "type": "file", "file": { "file_data": "data:application/pdf;base64,AA", "filename": "a: b.pdf" } }),
            json!({ "type": "input_audio", "input_audio": { "data": "//uQ", "format": "mp3" } }),
        ] {
            assert_eq!(refused(part, CallerRole::Stranger), None);
        }
    }

    #[test]
    fn the_owner_may_send_urls_but_none_of_the_engines_own_files() {
        for part in [
            json!({ "type": "video_url", "video_url": { "url": "https://example.org/x.mp4" } }),
            json!({ "type": "video_url", "video_url": "https://example.org/x.mp4" }),
            json!({ "type": "video_url", "video_url": "data:video/mp4;base64,AAAA" }),
            json!({ "type": "image_embeds", "image_embeds": "AAAA" }),
        ] {
            assert_eq!(refused(part, CallerRole::Owner), None);
        }
        for part in [
            json!({ "type": "video_url", "video_url": { "url": "file:///x.mp4" } }),
            json!({ "type": "video_url", "video_url": "file:///x.mp4" }),
            json!({ "video_url": { "url": "https://example.com/x.mp4", "file_url": "file:///x.mp4" } }),
            json!({ "video_url": "file:///x.mp4" }),
        ] {
            let place = "messages[0].content[1].video_url".to_owned();
            assert_eq!(refused(part.clone(), CallerRole::Owner), Some(place), "{part}");
        }
    }
}
