//! One item of `input`: a message, a call, the output of a call, or reasoning.

use std::fmt;

use hob_core::{Content, ContentPart, Image, Role, SealedReasoning};
use serde_json::{Map, Value, json};

use super::encrypted_reasoning::EncryptedContent;
use super::namespaces::offered_name;
use crate::error::{ApiError, ApiResult};
use crate::openai::content::simplest;
use crate::openai::ignored_fields::IgnoredFields;

/// What an item is.
#[derive(Debug, PartialEq)]
pub(super) enum ItemKind {
    Message {
        role: Role,
        content: Content,
    },
    Reasoning {
        text: String,
        /// The block that a provider wants back.
        sealed: Option<SealedReasoning>,
    },
    Call(ItemCall),
    /// Its `arguments` are the text.
    CustomCall(ItemCall),
    Output {
        call: String,
        content: Content,
    },
    /// Tools that are offered from here on.
    Tools(Vec<Value>),
    /// A kind that has no meaning here, such as a search that another service made. The answer names it.
    Unknown,
}

#[derive(Debug, PartialEq)]
pub(super) struct ItemCall {
    pub(super) id: String,
    /// As engines know the tool.
    pub(super) name: String,
    pub(super) arguments: String,
}

/// An item before it is read.
pub(super) struct Item<'a> {
    pub(super) path: fmt::Arguments<'a>,
    pub(super) value: &'a Value,
}

impl Item<'_> {
    /// The type of an item. A message need not say that it is one.
    pub(super) fn kind(value: &Value) -> Option<&str> {
        match value.get("type") {
            Some(Value::String(kind)) => Some(kind),
            None | Some(Value::Null) if value.get("role").is_some() => Some("message"),
            _ => None,
        }
    }

    pub(super) fn read(&self, ignored: &mut IgnoredFields) -> ApiResult<ItemKind> {
        let Value::Object(_) = self.value else {
            return Err(self.wrong("", "an object"));
        };
        let Some(kind) = Self::kind(self.value) else { return Err(self.missing("type")) };
        match kind {
            "message" => self.message(ignored),
            "reasoning" => self.reasoning(ignored),
            "function_call" => Ok(ItemKind::Call(self.call("arguments")?)),
            "custom_tool_call" => Ok(ItemKind::CustomCall(self.call("input")?)),
            "function_call_output" | "custom_tool_call_output" => self.output(ignored),
            "additional_tools" => match self.value.get("tools") {
                Some(Value::Array(tools)) => Ok(ItemKind::Tools(tools.clone())),
                _ => Err(self.wrong("tools", "an array")),
            },
            "item_reference" => {
                let message = "an item cannot be referred to here; send the item itself";
                Err(ApiError::invalid(format!("{}.id", self.path), message))
            }
            other => {
                ignored.note(&format!("input[].type={other}"));
                Ok(ItemKind::Unknown)
            }
        }
    }

    fn message(&self, ignored: &mut IgnoredFields) -> ApiResult<ItemKind> {
        let role = match self.text("role")? {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" | "developer" => Role::System,
            other => {
                let message =
                    format!("'{other}' is not a role. Roles are user, assistant, system and developer");
                return Err(ApiError::invalid(format!("{}.role", self.path), message));
            }
        };
        let content = match self.value.get("content") {
            None => return Err(self.missing("content")),
            Some(content) => self.content("content", content, ignored)?,
        };
        // The parts of an answer are one text.
        let between = if role == Role::Assistant { "" } else { "\n" };
        let content = plain(content, between);
        Ok(ItemKind::Message { role, content })
    }

    /// Reasoning: plain, or sealed, or else its summary.
    fn reasoning(&self, ignored: &mut IgnoredFields) -> ApiResult<ItemKind> {
        let encrypted = self.value.get("encrypted_content").and_then(Value::as_str);
        let (carried, sealed) = match encrypted.map(EncryptedContent::read) {
            None => (String::new(), None),
            Some(None) => {
                ignored.note("input[].encrypted_content");
                (String::new(), None)
            }
            Some(Some(EncryptedContent::Text(text))) => (text, None),
            Some(Some(EncryptedContent::Block(block))) => match &block {
                SealedReasoning::Signed { text, .. } => (text.clone(), Some(block)),
                SealedReasoning::Redacted { .. } => (String::new(), Some(block)),
            },
        };
        let mut text = self.texts("content")?;
        if text.is_empty() {
            text = carried;
        }
        if text.is_empty() {
            text = self.texts("summary")?;
        }
        if text.is_empty() && sealed.is_none() {
            return Ok(ItemKind::Unknown);
        }
        Ok(ItemKind::Reasoning { text, sealed })
    }

    /// The texts of a list of parts, one below the other.
    fn texts(&self, field: &str) -> ApiResult<String> {
        let parts = match self.value.get(field) {
            None | Some(Value::Null) => return Ok(String::new()),
            Some(Value::Array(parts)) => parts,
            Some(_) => return Err(self.wrong(field, "an array")),
        };
        let texts: Option<Vec<&str>> = parts.iter().map(|part| part["text"].as_str()).collect();
        texts
            .map(|texts| texts.join("\n"))
            .ok_or_else(|| self.wrong(field, "an array of parts with a 'text'"))
    }

    fn call(&self, field: &str) -> ApiResult<ItemCall> {
        let arguments = match self.value.get(field) {
            None | Some(Value::Null) => return Err(self.missing(field)),
            Some(Value::String(arguments)) => arguments.clone(),
            // Some clients send the object itself.
            Some(arguments @ Value::Object(_)) => arguments.to_string(),
            Some(_) => return Err(self.wrong(field, "a string")),
        };
        let namespace = self.value.get("namespace").and_then(Value::as_str).unwrap_or_default();
        let name = offered_name(namespace, self.text("name")?);
        Ok(ItemCall { id: self.text("call_id")?.to_owned(), name, arguments })
    }

    fn output(&self, ignored: &mut IgnoredFields) -> ApiResult<ItemKind> {
        let content = match self.value.get("output") {
            None => return Err(self.missing("output")),
            Some(Value::Null) => Content::Text(String::new()),
            Some(output) => plain(self.content("output", output, ignored)?, "\n"),
        };
        Ok(ItemKind::Output { call: self.text("call_id")?.to_owned(), content })
    }

    fn content(&self, field: &str, content: &Value, ignored: &mut IgnoredFields) -> ApiResult<Content> {
        match content {
            Value::String(text) => Ok(Content::Text(text.clone())),
            Value::Array(parts) => {
                let mut resolved = Vec::with_capacity(parts.len());
                for (index, part) in parts.iter().enumerate() {
                    let part = Item { path: format_args!("{}.{field}[{index}]", self.path), value: part };
                    resolved.push(part.part(ignored)?);
                }
                Ok(simplest(resolved))
            }
            _ => Err(self.wrong(field, "a string or an array of parts")),
        }
    }

    /// One part of a message or of an output.
    fn part(&self, ignored: &mut IgnoredFields) -> ApiResult<ContentPart> {
        let Value::Object(fields) = self.value else { return Err(self.wrong("", "an object")) };
        match self.text("type")? {
            "input_text" | "output_text" | "text" => {
                self.note_rest(fields, &["text", "annotations", "logprobs"], ignored);
                Ok(ContentPart::Text(self.text("text")?.to_owned()))
            }
            "refusal" => Ok(ContentPart::Text(self.text("refusal")?.to_owned())),
            "input_image" => {
                self.refuse_stored_file(fields)?;
                let url = match fields.get("image_url") {
                    // Some clients write it as in chat completions.
                    Some(Value::Object(image)) => image.get("url").and_then(Value::as_str),
                    url => url.and_then(Value::as_str),
                };
                let url = url.ok_or_else(|| self.missing("image_url"))?.to_owned();
                let detail = fields.get("detail").and_then(Value::as_str).map(str::to_owned);
                self.note_rest(fields, &["image_url", "detail", "file_id"], ignored);
                Ok(ContentPart::Image(Image { url, detail }))
            }
            "input_file" => {
                self.refuse_stored_file(fields)?;
                let is_address = fields.get("file_url").is_some_and(|url| !url.is_null());
                let field = if is_address { "file_url" } else { "file_data" };
                let mut file = Map::from_iter([(field.to_owned(), json!(self.text(field)?))]);
                if let Some(name) = fields.get("filename").filter(|name| !name.is_null()) {
                    file.insert("filename".to_owned(), name.clone());
                }
                self.note_rest(fields, &[field, "filename", "file_id"], ignored);
                Ok(ContentPart::Other(json!({ "type": "file", "file": file })))
            }
            "input_audio" => match fields.get("input_audio") {
                Some(audio @ Value::Object(_)) => {
                    Ok(ContentPart::Other(json!({ "type": "input_audio", "input_audio": audio })))
                }
                _ => Err(self.wrong("input_audio", "an object")),
            },
            other => {
                let message = format!(
                    "'{other}' is not a supported type of content. Supported are input_text, input_image, input_file, \
                     input_audio, output_text and refusal"
                );
                Err(ApiError::invalid(format!("{}.type", self.path), message))
            }
        }
    }

    fn refuse_stored_file(&self, fields: &Map<String, Value>) -> ApiResult<()> {
        match fields.get("file_id") {
            None | Some(Value::Null) => Ok(()),
            Some(_) => {
                let message = "this server stores no files; send the content itself";
                Err(ApiError::invalid(format!("{}.file_id", self.path), message))
            }
        }
    }

    fn note_rest(&self, fields: &Map<String, Value>, known: &[&str], ignored: &mut IgnoredFields) {
        for (field, value) in fields {
            if field != "type" && !known.contains(&field.as_str()) && !value.is_null() {
                ignored.note(&format!("input[].content[].{field}"));
            }
        }
    }

    fn text(&self, field: &str) -> ApiResult<&str> {
        match self.value.get(field) {
            None | Some(Value::Null) => Err(self.missing(field)),
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(self.wrong(field, "a string")),
        }
    }

    fn place(&self, field: &str) -> String {
        match field {
            "" => self.path.to_string(),
            field => format!("{}.{field}", self.path),
        }
    }

    fn missing(&self, field: &str) -> ApiError {
        let place = self.place(field);
        let message = format!("{place} is missing");
        ApiError::invalid(place, message)
    }

    fn wrong(&self, field: &str, expected: &str) -> ApiError {
        let place = self.place(field);
        let message = format!("{place}: expected {expected}");
        ApiError::invalid(place, message)
    }
}

/// Parts that are only text as one text. More engines and templates accept that.
fn plain(content: Content, between: &str) -> Content {
    let Content::Parts(parts) = content else { return content };
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| match part {
            ContentPart::Text(text) => Some(text.as_str()),
            ContentPart::Image(_) | ContentPart::Other(_) => None,
        })
        .collect();
    match texts {
        Some(texts) => Content::Text(texts.join(between)),
        None => Content::Parts(parts),
    }
}
